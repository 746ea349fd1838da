//! The protocols of [`iperf3`] and [`qperf`], as client and server of the unmodified programs.
//!
//! These servers run beside netwright's own (`traffic::serve`), and these clients give the same
//! documents as its own.

mod fuzzed;
pub mod iperf3;
pub mod qperf;

pub use fuzzed::PARSERS;
