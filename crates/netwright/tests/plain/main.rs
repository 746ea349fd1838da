//! What needs no root, no server and no guest: the code's shape, the documents, captured hosts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod architecture;
mod archives;
mod captured;
mod circles;
mod docs;
mod fuzz;
mod licences;
mod looks;
mod prose;
mod words;

#[path = "../support/mod.rs"]
mod support;
