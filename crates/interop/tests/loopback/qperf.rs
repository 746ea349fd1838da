//! qperf in both roles, against the real program on loopback.

mod measuring;
mod peer;
mod real;
mod serving;
mod streaming;
