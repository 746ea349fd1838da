//! Traffic with known shape, and the server for it.
//!
//! A measurement has two ends. The near one (`client`) asks the far one ([`serve`]) for a test
//! over a control connection (`control`), both move data with the loops of `rtt` or make
//! connections with those of `connect`, and both look at themselves over exactly the same window
//! ([`host`]). Foreign servers are spoken too: [`iperf3`] and [`qperf`]. `http`, `pg`
//! and `redis` ask any server; `engine` runs their load.

pub mod budget;
mod client;
mod connect;
mod control;
mod engine;
pub mod error;
mod fuzzed;
pub mod host;
mod http;
pub mod iperf3;
mod net;
mod nothing;
pub mod pg;
pub mod qperf;
mod redis;
mod rtt;
pub mod serve;
mod stream;
pub mod temp_folder;

pub use connect::{measure::measure as measure_connect, ports::forecast as forecast_connect};
pub use control::secret::Secret;
pub use engine::{
    conduct::{Progress, Run},
    dial::is_here,
    measured::Measured,
};
pub use error::{Error, ErrorContext, Result};
pub use fuzzed::PARSERS;
pub use http::{
    measure::measure as measure_http, statuses::of_statuses as what_statuses_say, url::Url,
};
pub use net::{
    exact_timers,
    target::{PORT, Target, resolve as addresses},
};
pub use nothing::Judged;
pub use pg::measure::measure as measure_pg;
pub use redis::{RedisUrl, measure as measure_redis};
pub use rtt::measure::measure as measure_rtt;
pub use stream::{measure::measure as measure_stream, stream_window::Heard};

/// This program, as it names itself to the other end.
pub const PROGRAM: &str = concat!("netwright ", env!("CARGO_PKG_VERSION"));
