//! Traffic of known characteristics, and the server for it.
//!
//! A measurement has two ends. The client ([`client`]) asks the server ([`serve`]) for a test over a
//! control connection ([`control`]). Both move data with the loops of [`rtt`] and [`stream`] or make
//! connections (`connect`), and both look at themselves over exactly the same window ([`host`]).
//! What runs a load is the [`engine`], for these tests and for those of the crates `workloads` and
//! `interop`; sockets are [`net`].
//!
//! Each module imports only those before it: error, control, net, host, client, engine, then rtt,
//! stream, connect and offload, then serve.

pub mod budget;
pub mod client;
mod connect;
pub mod control;
mod empty_run;
pub mod engine;
pub mod error;
mod fuzzed;
pub mod host;
pub mod net;
mod offload;
pub mod rtt;
pub mod serve;
pub mod stream;
pub mod temp_folder;

pub use connect::{measure::measure as measure_connect, ports::forecast as forecast_connect};
pub use control::secret::Secret;
pub use empty_run::MarkEmptyRuns;
pub use engine::{
    conduct::{Progress, Run},
    dial::is_here,
    measured::Measured,
};
pub use error::{Error, ErrorContext, Result};
pub use fuzzed::PARSERS;
pub use net::{
    exact_timers,
    target::{PORT, Target, resolve as addresses},
};
pub use offload::measure::measure as measure_offload;
pub use rtt::{exchange::LEAST_WITH_OVERRUN, measure::measure as measure_rtt};
pub use stream::{measure::measure as measure_stream, stream_window::OnInterval};

/// Name and version of this program, as sent to the other end.
pub const PROGRAM: &str = concat!("netwright ", env!("CARGO_PKG_VERSION"));
