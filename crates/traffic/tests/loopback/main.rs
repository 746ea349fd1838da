//! Both ends of our own protocol, on loopback and in namespaces.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod connect;
mod rtt;
mod stream;
