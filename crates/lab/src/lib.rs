//! Practice hosts on one machine, for tests of every kind: two hosts on a link, containers on a
//! bridge, or a server with NUMA nodes and a multi-queue NIC.
//!
//! A lab only adds things to its machine: namespaces, taps, cgroups, processes, and files under one
//! directory. Each is recorded in the lab's [`state`] before it is made. So `down` and the next
//! `up` can always find and remove what is left, and nothing else is touched.

pub mod agent;
pub mod arch;
pub mod cgroup;
pub mod channel;
pub mod containers;
pub mod cpio;
pub mod error;
pub mod frame;
mod fuzzed;
pub mod host;
pub mod image;
pub mod link;
mod modules;
pub mod netns;
pub mod package;
pub mod pair;
pub mod preset;
pub mod server;
pub mod state;
pub mod testing;
pub mod thread_migration;
pub mod tool;

pub use error::LabError;
pub use fuzzed::PARSERS;
pub use state::{Lab, Registry};
