//! Practice hosts on one machine, on which everything can be tried for real: two hosts on a
//! link, containers on a bridge, a server with NUMA nodes and a multi-queue NIC.
//!
//! A lab changes the machine it runs on only by adding things of its own (namespaces, taps,
//! cgroups, processes, files under one folder), each written to the lab's [`state`] before it
//! is made. So whatever happens, `down` and the next `up` find what is left and remove it, and
//! nothing else is ever touched.

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
pub mod listing;
mod modules;
pub mod netns;
pub mod package;
pub mod pair;
pub mod preset;
pub mod server;
pub mod state;
pub mod testing;
pub mod tool;
pub mod wander;

pub use error::LabError;
pub use fuzzed::PARSERS;
pub use state::{Lab, Registry};
