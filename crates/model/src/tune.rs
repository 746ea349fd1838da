//! Changing a host, reversibly: the [`Plan`], the journal's [`Record`]s, and what came of them.

pub mod journal;
pub mod outcome;
pub mod persisted;
pub mod plan;
pub mod profile;

pub use journal::{By, Event, NicId, ReadBack, Record, Saved};
pub use outcome::{ChangeSet, Drift, Drifted, Log, Now, Outcome, State, Status};
pub use persisted::{FileAct, KeptValue, NotKept, Persisted, PersistedFile};
pub use plan::{
    Ground, HostId, Member, Plan, Planned, Radius, Reach, Refused, RefusedAs, Unchanged,
};
pub use profile::{Profile, ProfileLine, Profiles, Wanted};
