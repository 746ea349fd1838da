//! `measure pg --driver pgbench`: the real pgbench runs the transactions; its log of each
//! transaction becomes the same kind of result.
//!
//! - `find`: locates the program.
//! - `command`: translates the request into its options, and refuses unsupported ones.
//! - `child`: the process, which ends when we do.
//! - `reported`: parses its report; `log`: parses its transaction log.
//! - `round`: one run, combining all of these.
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
