//! qperf in both roles, against the real program on loopback.

mod far;
mod measuring;
mod real;
mod serving;
mod streaming;
