//! A PostgreSQL client that measures transactions.
//!
//! - `strings`, `environment`, `address`, `passfile`, `security`: from the command line to servers,
//!   passwords and TLS options.
//! - `wire`, `login`: the server's messages, and the login; without I/O.
//! - `script`, `builtin`, `plan`: a transaction's commands, ready to send.
//! - `session`: one blocking connection, for queries before and after the measurement.
//! - `init`: pgbench's tables.
//! - `client`, `session_state`, `protocol`: a client on its connection, as the engine runs it.
//! - `pgbench`: runs the real pgbench instead.
//! - `recorder`, `result`, `unsent`: distributions, counts, and context.

mod address;
mod builtin;
mod client;
mod environment;
pub(crate) mod fuzzed;
pub mod init;
mod login;
pub mod measure;
mod passfile;
mod pgbench;
mod plan;
mod protocol;
mod recorder;
mod result;
pub mod script;
mod security;
mod session;
mod session_state;
mod strings;
mod unsent;
mod why;
mod wire;

pub use strings::without_password;
