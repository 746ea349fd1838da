//! Combines this host and, where its operator consents, the server's: both as one trial host. A knob of
//! the server begins with [`PEER`].

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
    change_request::{ChangeRequest, PEER},
    planner,
    trial::{TrialHost, Trials},
};

use crate::peer_end::PeerEnd;

/// The hosts where changes are tried; a trial may have changes on either or on both.
#[derive(Debug)]
pub struct Hosts<'a> {
    local: &'a TrialHost,
    peer: Option<&'a PeerEnd>,
    last: AtomicU64,
    made: Mutex<BTreeMap<u64, TrialSets>>,
    /// The numbers of the server's plans, by their changes.
    plans: Mutex<BTreeMap<Vec<(String, String)>, usize>>,
}

/// The change sets of one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrialSets {
    /// Its number in this host's journal; `None` where nothing changes here. `peer` likewise for
    /// the server.
    pub local: Option<u64>,
    pub peer: Option<u64>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plans change requests for both hosts in their present state; with the number of the server's
/// plan, where it has a part.
///
/// # Errors
/// A knob of the server without a server; this host cannot be planned; the server does not answer,
/// or refuses the request.
pub fn plan(
    host: &Host,
    peer: Option<&PeerEnd>,
    own_connection: bool,
    change_requests: Vec<ChangeRequest>,
) -> Result<(Plan, Option<usize>), TuneError> {
    let (there, here): (Vec<ChangeRequest>, Vec<ChangeRequest>) =
        change_requests.into_iter().partition(|w| w.knob.starts_with(PEER));
    let mut plan = planner::of_trial(host, here)?;
    if there.is_empty() {
        return Ok((plan, None));
    }
    let Some(peer) = peer else {
        return Err(TuneError::Usage(format!("{PEER}… is a knob of the server: --responder HOST")));
    };
    let bare =
        |w: ChangeRequest| ChangeRequest { knob: w.knob.trim_start_matches(PEER).to_owned(), ..w };
    let there: Vec<ChangeRequest> = there.into_iter().map(bare).collect();
    let (number, theirs) = peer.plan(&there, own_connection)?;
    let named = |knob: String| format!("{PEER}{knob}");
    plan.changes.extend(theirs.changes.into_iter().map(|mut c| {
        c.knob = named(c.knob);
        c
    }));
    plan.refused.extend(theirs.refused.into_iter().map(|mut r| {
        r.knob = named(r.knob);
        r.why = format!("the server: {}", r.why);
        r
    }));
    plan.unchanged.extend(theirs.unchanged.into_iter().map(|mut u| {
        u.knob = named(u.knob);
        u
    }));
    Ok((plan, Some(number)))
}

/// The server's part of a plan.
fn key(plan: &Plan) -> Vec<(String, String)> {
    let peer = plan.changes.iter().filter(|c| c.knob.starts_with(PEER));
    peer.map(|c| (c.knob.clone(), c.new.clone())).collect()
}

impl<'a> Hosts<'a> {
    /// Locks the changes of both hosts.
    ///
    /// # Errors
    /// Another process is changing the server.
    pub fn open(local: &'a TrialHost, peer: Option<&'a PeerEnd>) -> Result<Self, TuneError> {
        if let Some(peer) = peer {
            peer.begin()?;
        }
        Ok(Self {
            local,
            peer,
            last: AtomicU64::new(0),
            made: Mutex::default(),
            plans: Mutex::default(),
        })
    }

    pub fn local(&self) -> &TrialHost {
        self.local
    }

    pub fn peer(&self) -> Option<&PeerEnd> {
        self.peer
    }

    /// Plans change requests for both hosts in their present state.
    ///
    /// # Errors
    /// A host cannot be read, or the server does not answer.
    pub fn plan(
        &self,
        own_connection: bool,
        change_requests: Vec<ChangeRequest>,
    ) -> Result<Plan, TuneError> {
        let (plan, number) = plan(self.local.host(), self.peer, own_connection, change_requests)?;
        if let Some(number) = number {
            locked(&self.plans).insert(key(&plan), number);
        }
        Ok(plan)
    }

    /// The change sets of this host that are on trial, in ascending order.
    pub fn on_trial(&self) -> Vec<(u64, TrialSets)> {
        locked(&self.made).iter().map(|(id, made)| (*id, *made)).collect()
    }

    fn made(&self, id: u64) -> TrialSets {
        locked(&self.made).get(&id).copied().unwrap_or_default()
    }

    fn theirs(&self) -> Result<&PeerEnd, TuneError> {
        self.peer.ok_or_else(|| TuneError::Environment("there is no server".into()))
    }

    /// Ends a trial on both hosts and keeps its changes. If one host cannot keep them, the other
    /// reverts its own.
    ///
    /// # Errors
    /// A journal cannot be written.
    pub fn keep(&self, id: u64) -> Result<TrialSets, TuneError> {
        let made = self.made(id);
        if let Some(peer) = made.peer {
            self.theirs()?.keep(peer)?;
        }
        if let Some(local) = made.local
            && let Err(e) = self.local.keep(local)
        {
            if let Some(peer) = made.peer {
                self.theirs()?.roll_back(peer)?;
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
        let mut made = TrialSets::default();
        if !theirs.is_empty() {
            let none = || TuneError::Environment("the server was not asked for a plan".into());
            let number = locked(&self.plans).get(&theirs).copied().ok_or_else(none)?;
            made.peer = Some(self.theirs()?.try_out(number)?);
        }
        let mut ours = plan.clone();
        ours.changes.retain(|c| !c.knob.starts_with(PEER));
        if !ours.changes.is_empty() {
            match self.local.try_out(&ours) {
                Ok(id) => made.local = Some(id),
                Err(e) => {
                    if let Some(peer) = made.peer {
                        self.theirs()?.take_back(peer)?;
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
        if let Some(local) = made.local {
            self.local.holds(local)?;
        }
        match made.peer {
            Some(peer) => self.theirs()?.holds(peer),
            None => Ok(()),
        }
    }

    /// The other host is tried even where the first fails.
    fn take_back(&self, id: u64) -> Result<(), TuneError> {
        let made = self.made(id);
        let local = made.local.map_or(Ok(()), |local| self.local.take_back(local));
        let peer = match made.peer {
            Some(peer) => self.theirs().and_then(|f| f.take_back(peer)),
            None => Ok(()),
        };
        local.and(peer)?;
        locked(&self.made).remove(&id);
        Ok(())
    }
}
