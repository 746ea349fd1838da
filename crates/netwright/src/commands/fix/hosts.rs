//! This host and, where its operator consents, the far end's: one bench for both. A knob of the
//! far end begins with [`FAR`].

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use model::tune::Plan;
use tune::{
    Host, TuneError,
    trial::{Bench, Trials},
    wish::Wish,
};

use super::judge;
use crate::{
    commands::far::{FAR, near::Far},
    exit::Failure,
};

/// Where changes are tried; each is one at either host or at both.
#[derive(Debug)]
pub struct Hosts<'a> {
    near: &'a Bench,
    far: Option<&'a Far>,
    last: AtomicU64,
    made: Mutex<BTreeMap<u64, Made>>,
    /// The far end's plans, by what they change.
    plans: Mutex<BTreeMap<Vec<(String, String)>, usize>>,
}

/// The change sets of one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Made {
    /// In this host's journal.
    pub near: Option<u64>,
    /// In the far end's.
    pub far: Option<u64>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A plan for some wishes at both hosts, each as it is now; with the far end's number for its
/// part, where it has one.
pub fn plan(
    host: &Host,
    far: Option<&Far>,
    own_connection: bool,
    wishes: Vec<Wish>,
) -> Result<(Plan, Option<usize>), Failure> {
    let (there, here): (Vec<Wish>, Vec<Wish>) =
        wishes.into_iter().partition(|w| w.knob.starts_with(FAR));
    let mut plan = judge::plan(host, here)?;
    if there.is_empty() {
        return Ok((plan, None));
    }
    let Some(far) = far else {
        return Err(Failure::Usage(format!("{FAR}… is a knob of the far end: --responder HOST")));
    };
    let bare = |w: Wish| Wish { knob: w.knob.trim_start_matches(FAR).to_owned(), ..w };
    let there: Vec<Wish> = there.into_iter().map(bare).collect();
    let (number, theirs) = far.plan(&there, own_connection)?;
    let named = |knob: String| format!("{FAR}{knob}");
    plan.changes.extend(theirs.changes.into_iter().map(|mut c| {
        c.knob = named(c.knob);
        c
    }));
    plan.refused.extend(theirs.refused.into_iter().map(|mut r| {
        r.knob = named(r.knob);
        r.why = format!("the far end: {}", r.why);
        r
    }));
    plan.unchanged.extend(theirs.unchanged.into_iter().map(|mut u| {
        u.knob = named(u.knob);
        u
    }));
    Ok((plan, Some(number)))
}

/// What a plan changes at the far end.
fn key(plan: &Plan) -> Vec<(String, String)> {
    let far = plan.changes.iter().filter(|c| c.knob.starts_with(FAR));
    far.map(|c| (c.knob.clone(), c.new.clone())).collect()
}

impl<'a> Hosts<'a> {
    /// Takes both hosts' changes to itself.
    ///
    /// # Errors
    /// Somebody else is changing the far end.
    pub fn open(near: &'a Bench, far: Option<&'a Far>) -> Result<Self, TuneError> {
        if let Some(far) = far {
            far.begin()?;
        }
        Ok(Self {
            near,
            far,
            last: AtomicU64::new(0),
            made: Mutex::default(),
            plans: Mutex::default(),
        })
    }

    /// This host.
    pub fn near(&self) -> &Bench {
        self.near
    }

    /// The other one.
    pub fn far(&self) -> Option<&Far> {
        self.far
    }

    /// A plan for some wishes as both are now.
    ///
    /// # Errors
    /// A host cannot be read, or the far end is gone.
    pub fn plan(&self, own_connection: bool, wishes: Vec<Wish>) -> Result<Plan, Failure> {
        let (plan, number) = plan(self.near.host(), self.far, own_connection, wishes)?;
        if let Some(number) = number {
            locked(&self.plans).insert(key(&plan), number);
        }
        Ok(plan)
    }

    /// What of this host is on trial of what was made here, ascending.
    pub fn on_trial(&self) -> Vec<(u64, Made)> {
        locked(&self.made).iter().map(|(id, made)| (*id, *made)).collect()
    }

    fn made(&self, id: u64) -> Made {
        locked(&self.made).get(&id).copied().unwrap_or_default()
    }

    fn theirs(&self) -> Result<&Far, TuneError> {
        self.far.ok_or_else(|| TuneError::Environment("there is no far end".into()))
    }

    /// Ends a trial at both hosts: what was made stays. Not kept at one, it is undone at the
    /// other.
    ///
    /// # Errors
    /// A journal cannot be told.
    pub fn keep(&self, id: u64) -> Result<Made, TuneError> {
        let made = self.made(id);
        if let Some(far) = made.far {
            self.theirs()?.keep(far)?;
        }
        if let Some(near) = made.near
            && let Err(e) = self.near.keep(near)
        {
            if let Some(far) = made.far {
                self.theirs()?.roll_back(far)?;
            }
            return Err(e);
        }
        locked(&self.made).remove(&id);
        Ok(made)
    }
}

impl Trials for Hosts<'_> {
    fn try_out(&self, plan: &Plan) -> Result<u64, TuneError> {
        let theirs = key(plan);
        let mut made = Made::default();
        if !theirs.is_empty() {
            let none = || TuneError::Environment("the far end was not asked for a plan".into());
            let number = locked(&self.plans).get(&theirs).copied().ok_or_else(none)?;
            made.far = Some(self.theirs()?.try_out(number)?);
        }
        let mut ours = plan.clone();
        ours.changes.retain(|c| !c.knob.starts_with(FAR));
        if !ours.changes.is_empty() {
            match self.near.try_out(&ours) {
                Ok(id) => made.near = Some(id),
                Err(e) => {
                    if let Some(far) = made.far {
                        self.theirs()?.take_back(far)?;
                    }
                    return Err(e);
                }
            }
        }
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        locked(&self.made).insert(id, made);
        Ok(id)
    }

    fn holds(&self, id: u64) -> Result<(), TuneError> {
        let made = self.made(id);
        if let Some(near) = made.near {
            self.near.holds(near)?;
        }
        match made.far {
            Some(far) => self.theirs()?.holds(far),
            None => Ok(()),
        }
    }

    /// Also where one of the two fails, the other is tried.
    fn take_back(&self, id: u64) -> Result<(), TuneError> {
        let made = self.made(id);
        let near = made.near.map_or(Ok(()), |near| self.near.take_back(near));
        let far = match made.far {
            Some(far) => self.theirs().and_then(|f| f.take_back(far)),
            None => Ok(()),
        };
        near.and(far)?;
        locked(&self.made).remove(&id);
        Ok(())
    }
}
