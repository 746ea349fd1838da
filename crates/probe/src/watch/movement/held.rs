//! Programs that may be missing, and their status.

use std::{collections::HashMap, io};

use model::{Reading, watch::ProgramStatus};

use super::super::permission;
use crate::bpf::{
    Object, ProgramSpec,
    double_buffer::{DrainedTable, Own},
    drops::Drops,
    messages::MessageCalls,
    migrated_threads::MigratedThreads,
    object,
    retransmits::Retransmits,
};

/// The object of a set of programs.
pub trait HasObject {
    fn object(&mut self) -> &mut Object;
    fn object_ref(&self) -> &Object;
}

macro_rules! has_object {
    ($($programs:ty),*) => {
        $(impl HasObject for $programs {
            fn object(&mut self) -> &mut Object {
                &mut self.object
            }
            fn object_ref(&self) -> &Object {
                &self.object
            }
        })*
    };
}

has_object!(Drops, MigratedThreads, MessageCalls, Retransmits);

/// The attached programs, or why there are none.
#[derive(Debug)]
pub struct Programs<P> {
    name: &'static str,
    wanted: &'static [ProgramSpec],
    attached: Result<P, Reading<()>>,
    /// Of the last interval.
    own: Own,
}

impl<P: HasObject> Programs<P> {
    /// Attaches them, if that is asked for and permitted.
    pub fn new(
        (name, wanted): (&'static str, &'static [ProgramSpec]),
        asked: &Reading<()>,
        attach: impl FnOnce() -> Result<P, Reading<()>>,
    ) -> Self {
        let attached = match asked {
            Reading::Known(()) => attach().map_err(permission::refused),
            why => Err(why.clone()),
        };
        Self { name, wanted, attached, own: Own::default() }
    }

    /// The programs themselves, if they are attached.
    pub fn attached(&mut self) -> Option<&mut P> {
        self.attached.as_mut().ok()
    }

    /// What they counted since the last time, and how many events found no room.
    ///
    /// # Errors
    /// Why there is nothing.
    pub fn take<K, V, T>(
        &mut self,
        take: impl FnOnce(&mut P) -> io::Result<DrainedTable<K, V>>,
    ) -> Result<(HashMap<K, V>, u64), Reading<T>> {
        let programs = match &mut self.attached {
            Ok(programs) => programs,
            Err(why) => return Err(none(why)),
        };
        match take(programs) {
            Ok(turn) => {
                self.own = turn.own;
                Ok((turn.sums, turn.own.lost))
            }
            Err(e) => {
                self.own = Own::default();
                Err(Reading::absent(format!("{}: {e}", self.name)))
            }
        }
    }

    /// Begins a look at the programs' cost.
    pub fn begin_cost(&mut self) {
        if let Ok(programs) = &mut self.attached {
            programs.object().begin_look();
        }
    }

    pub fn end_cost(&mut self) {
        if let Ok(programs) = &mut self.attached {
            programs.object().end_look();
        }
    }

    /// The programs' state over the last interval.
    pub fn status(&self) -> Vec<ProgramStatus> {
        match &self.attached {
            Ok(programs) => {
                let runs = self.wanted.iter().zip(self.own.runs).map(|(w, n)| (w.program, n));
                programs.object_ref().status(&runs.collect())
            }
            Err(why) => object::unloaded(self.name, self.wanted, why),
        }
    }
}

fn none<T>(why: &Reading<()>) -> Reading<T> {
    match why {
        Reading::Denied(why) => Reading::Denied(why.clone()),
        Reading::Absent(why) => Reading::Absent(why.clone()),
        Reading::Known(()) => Reading::absent("not attached"),
    }
}
