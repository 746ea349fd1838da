//! qperf in both roles, against the real program on loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "qperf/far.rs"]
mod far;
#[path = "qperf/measuring.rs"]
mod measuring;
#[path = "qperf/real.rs"]
mod real;
#[path = "qperf/serving.rs"]
mod serving;
#[path = "qperf/streaming.rs"]
mod streaming;
