//! Reversible changes of a host: the [`Plan`], the journal's [`Record`]s, and the outcomes.

mod at_stake;
mod change_note;
mod change_state;
mod drifted;
pub mod journal;
pub mod outcome;
mod persist_note;
pub mod persisted;
pub mod plan;
mod plan_note;
pub mod profile;
mod trouble;

pub use at_stake::{AtStake, NapiValue};
pub use change_note::ChangeNote;
pub use change_state::ChangeState;
pub use drifted::Drifted;
pub use journal::{By, Event, ReadBack, Record, Saved};
pub use outcome::{ChangeSet, Drift, Log, Now, Outcome, Status};
pub use persist_note::PersistNote;
pub use persisted::{FileAct, KeptValue, NotKept, Persisted, PersistedFile};
pub use plan::{
    Basis, Disruption, HostId, Impact, LinkMember, NicId, Plan, Planned, Refused, RefusedAs,
    Unchanged,
};
pub use plan_note::PlanNote;
pub use profile::{LeftOut, Profile, ProfileLine, ProfileValue, Profiles};
pub use trouble::{NAMESPACE_GONE, Trouble};
