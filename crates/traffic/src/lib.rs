//! Traffic with known shape, and the far end for it.
//!
//! A measurement has two ends. The near one (`client`) asks the far one (`serve`) for a test
//! over a control connection (`control`), both move data with the loops of `rtt`,
//! `stream` and `connect`, and both look at themselves over exactly the same window
//! (`host`). Two foreign far ends and near ends are spoken too: `iperf3`, `qperf`.

pub mod error;
pub mod host;

pub use error::{Doing, Error, Result};
