//! The only reader of a host: `/proc`, `/sys`, netlink and ethtool, through a [`Root`] that is
//! the live host, a directory, or a snapshot archive. A source that is absent or denied is a
//! value ([`model::Reading`]), not a crash.

pub mod ask;
pub mod bpf;
pub mod error;
pub mod facts;
mod fuzzed;
pub mod given;
pub mod irqbalance;
pub mod perf;
pub mod root;
pub mod samples;
pub mod serving;
pub mod snapshot;
pub mod watch;

pub use error::ReadError;
pub use fuzzed::{PARSERS, host_of};
pub use root::Root;
