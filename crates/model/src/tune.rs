//! Reversible changes of a host: the [`Plan`], the journal's [`Record`]s, and the outcomes.

mod at_stake;
mod change_note;
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
pub use journal::{By, Event, ReadBack, Record, Saved};
pub use outcome::{ChangeSet, ChangeState, Drift, Drifted, Log, Now, Outcome, Status};
pub use persist_note::PersistNote;
pub use persisted::{FileAct, KeptValue, NotKept, Persisted, PersistedFile};
pub use plan::{
    Basis, Disruption, HostId, Impact, LinkMember, NicId, Plan, Planned, Refused, RefusedAs,
    Unchanged,
};
pub use plan_note::PlanNote;
pub use profile::{LeftOut, Profile, ProfileLine, ProfileValue, Profiles};
pub use trouble::{NAMESPACE_GONE, Trouble};
