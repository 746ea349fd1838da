//! Tests without root, servers or guests: the code's structure, the documents, captured hosts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod architecture;
mod archive_ena;
mod archive_log;
mod archives;
mod captured;
mod circles;
mod compare;
mod doc_comments;
mod docs;
mod earlier;
mod frozen;
mod fuzz;
mod history;
mod history_figures;
mod licences;
mod looks;
mod pages;
mod place;
mod prose;
mod site;
mod words;

#[path = "../support/mod.rs"]
mod support;
