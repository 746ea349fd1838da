//! eBPF programs that sum up in the kernel, and their state as data.
//!
//! A folder has the C program, the Rust code that attaches and reads it, and in its doc comment the
//! list of its counts. A program that cannot be attached loses only its own figures.

pub mod double_buffer;
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
pub mod waits;

pub use object::{Object, ProgramSpec};

/// The clang that compiled the objects, as it names itself.
pub const COMPILER: &str = env!("NETWRIGHT_CLANG");

/// The objects that are built in, in alphabetical order: the name of each, and its bytes as clang wrote them.
pub fn objects() -> [(&'static str, &'static [u8]); 7] {
    [
        (drops::NAME, drops::BYTES),
        (exchanges::NAME, exchanges::BYTES),
        (messages::NAME, messages::BYTES),
        (migrated_threads::NAME, migrated_threads::BYTES),
        (retransmits::NAME, retransmits::BYTES),
        (softirq::NAME, softirq::BYTES),
        (waits::NAME, waits::BYTES),
    ]
}
