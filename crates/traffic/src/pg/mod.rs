//! Traffic of PostgreSQL's clients.

pub mod script;
