//! Both ends of every protocol, on loopback and in namespaces.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod connect;
mod hostile;
mod iperf3;
mod iperf3_client;
mod qperf;
mod rtt;
mod stream;
