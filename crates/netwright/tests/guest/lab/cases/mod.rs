//! Field cases from beginning to end: `doctor`, `tune plan`, `tune apply`, `tune rollback`.

pub mod migration;
pub mod queues;
