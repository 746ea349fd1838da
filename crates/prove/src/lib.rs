//! Experiments: the effect of a change, with known error rates.
//!
//! [`spec`] (what was written) → [`experiment`] (checked) → [`conduct`] (interleaved runs, each
//! written to the [`record`]) → [`conclude`] (pure: runs in, document out).

mod around;
mod braces;
mod child;
pub mod classes;
pub mod conclude;
pub mod conduct;
mod disturbance;
mod error;
mod evidence;
pub mod experiment;
pub mod figure;
mod fuzzed;
mod levels;
pub mod load;
pub mod metric;
mod notes;
mod pipe_reader;
pub mod placement;
pub mod record;
pub mod record_path;
mod settings;
pub mod spec;
pub mod start;
mod words;
pub mod workload;

pub use error::ProveError;
pub use experiment::Experiment;
pub use fuzzed::PARSERS;
pub use settings::Knobs;
