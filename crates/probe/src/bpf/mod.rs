//! eBPF: programs that add up in the kernel, each on its own, and their state as data.
//!
//! A folder holds three things side by side: the C program, the Rust that attaches and reads it,
//! and in its doc comment the dictionary of what it counts. A program that cannot be attached
//! takes its own figures with it and nothing else.

pub mod drops;
pub mod exchanges;
pub mod messages;
pub mod migrated_threads;
pub mod object;
pub mod refusal;
pub mod retransmits;
pub mod run_stats;
pub mod softirq;
pub mod table;
pub mod turns;
pub mod waits;

pub use object::{Object, ProgramSpec};
