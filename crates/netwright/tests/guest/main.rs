//! Tests that boot a guest.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod doctor_guest;
mod lab;
mod lab_aarch64;
mod lab_virtual;
mod tune_boot;
mod tune_guest;
mod tune_power;
mod watch_lab;

#[path = "../support/mod.rs"]
mod support;
