//! Tests of `explain`, `fix` and `prove`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod explain;
mod explain_disturbed;
mod explain_passive;
mod explain_pg;
mod fix;
mod fix_attacked;
mod prove;
mod prove_builds;
mod prove_host;
mod prove_knobs;
mod prove_still;

#[path = "../support/mod.rs"]
mod support;
