//! Reversible changes to a host.
//!
//! [`change_request`] (the request) → [`plan`] (pure: the changes, their impact, the refusals) →
//! [`apply`] (journal the old value, write, read back) → [`undo`] (from the journal alone). A knob
//! is a file under [`knobs`]; nothing else of a host is ever written.

pub mod applied;
pub mod apply;
pub mod author;
mod boot_loader;
mod cgroup_place;
pub mod change_request;
pub mod confirm;
mod coupled_values;
mod cpu_attribute;
pub mod drift;
mod drivers;
pub mod error;
mod fuzzed;
pub mod host;
pub mod host_freeze;
mod identity;
pub mod journal;
pub mod knob;
pub mod knobs;
pub mod lock;
mod members;
pub mod mtu_path;
pub mod need;
pub mod netns;
mod nic_attribute;
pub mod operator;
pub mod owned_file;
pub mod pending;
pub mod persist;
pub mod phase;
pub mod plan;
pub mod planner;
pub mod privilege;
pub mod process_tag;
pub mod profile;
pub mod residue;
pub mod rollback;
pub mod session;
pub mod settle;
mod side_effects;
mod stacked;
pub mod status;
pub mod suggestion;
pub mod target;
pub mod trial;
pub mod trial_setup;
pub mod undo;
mod undo_forecast;
pub mod undo_result;
pub mod value;
mod verification;
pub mod watchdog;

pub use error::TuneError;
pub use fuzzed::PARSERS;
pub use host::Host;
pub use journal::Store;
