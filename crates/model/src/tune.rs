//! Changing a host, reversibly: the [`Plan`], the journal's [`Record`]s, and what came of them.

pub mod journal;
pub mod outcome;
pub mod persisted;
pub mod plan;
pub mod profile;

pub use journal::{By, Event, ReadBack, Record, Saved};
pub use outcome::{ChangeSet, ChangeState, Drift, Drifted, Log, Now, Outcome, Status};
pub use persisted::{FileAct, KeptValue, NotKept, Persisted, PersistedFile};
pub use plan::{
    Basis, Disruption, HostId, Impact, LinkMember, NicId, Plan, Planned, Refused, RefusedAs,
    Unchanged,
};
pub use profile::{Profile, ProfileLine, ProfileValue, Profiles};
