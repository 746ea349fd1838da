//! `measure pg --driver pgbench`: the real pgbench makes the transactions, and what it writes of
//! each one becomes the same result.
//!
//! - `find`: the program.
//! - `command`: what was asked, in its options, and what it has none for.
//! - `child`: the process, ended when we are.
//! - `reported`: its report; `log`: its line for each transaction.
//! - `round`: one run, from all of them.
//!
//! **Source**: PostgreSQL's documentation, "pgbench", "Per-Transaction Logging" among others.

mod child;
mod command;
mod find;
pub mod log;
pub mod reported;
mod round;

pub use command::check;
pub use find::{Tool, find};
pub use round::{By, conducted, one};
