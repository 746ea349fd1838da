//! Transactions of PostgreSQL: the client's side alone.
//!
//! - `strings`, `around`, `address`, `passfile`, `security`: from what was typed to servers and passwords,
//!   and to what is asked of TLS.
//! - `wire`, `login`: the server's messages, and how a session begins; without I/O.
//! - `script`, `builtin`, `plan`: what a transaction does, ready to be sent.
//! - `session`: one connection that waits for its answers, for what is asked around the
//!   measurement.
//! - `init`: pgbench's tables.
//! - `client`, `session_state`, `protocol`: what a client does on its connection, as the engine runs it.
//! - `pgbench`: the real one in their place.
//! - `recorder`, `result`, `unsent`: distributions, counts, and what stood around them.

mod address;
mod around;
mod builtin;
mod client;
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
