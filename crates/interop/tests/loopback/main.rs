//! Both ends of every protocol, against the real programs, on loopback and in namespaces.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod iperf3;
mod iperf3_client;
mod qperf;
