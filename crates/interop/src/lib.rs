//! The protocols of programs that cannot be changed: [`iperf3`] and [`qperf`], both ends of each.
//!
//! Their servers stand beside our own (`traffic::serve`), and their clients give the same documents as
//! our own.

mod fuzzed;
pub mod iperf3;
pub mod qperf;

pub use fuzzed::PARSERS;
