//! Experiments: the effect of a change, with known error rates.
//!
//! [`spec`] (what was written) → [`experiment`] (checked) → [`conduct`] (interleaved runs, each
//! written to the [`record`]) → [`conclude`] (pure: runs in, document out).

pub mod builds;
mod child;
mod command_line;
pub mod conclude;
pub mod conduct;
pub mod cpu_class;
mod disturbance;
mod error;
mod evidence;
pub mod experiment;
pub mod figure;
mod fuzzed;
mod host_observer;
mod levels;
pub mod limit;
pub mod metric;
mod notes;
mod pipe_reader;
mod placeholder;
pub mod placement;
pub mod record;
pub mod record_path;
mod settings;
pub mod spec;
pub mod start;
pub mod workload;
pub mod workload_loop;

pub use error::ProveError;
pub use experiment::Experiment;
pub use fuzzed::PARSERS;
pub use settings::Knobs;
