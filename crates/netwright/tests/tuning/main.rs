//! Tests of changes and their rollback, in namespaces of this host.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod ansible;
mod doctor_peer;
mod fleet_guide;
mod peer_tune;
mod tune;
mod tune_crash;
mod tune_host_values;
mod tune_netns;
mod tune_persist;
mod tune_routes;
mod tune_side_effects;
mod tune_tuned;

#[path = "../support/mod.rs"]
mod support;
