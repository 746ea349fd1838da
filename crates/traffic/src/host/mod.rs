//! What one end observes of its host during a measurement. Client and server run this code.
//!
//! - [`counter_snapshot`] and [`window`]: clocks and kernel counters before and after, and their
//!   changes.
//! - [`placement`] and [`pin`]: choosing CPUs for the threads, and pinning them.
//! - [`incoming`]: the CPU that received the packets, and the CPU of the thread.
//! - [`mod@identity`]: identity of this end, and whether both ends run on one host.
//! - [`softirq`]: softirq time by context, if requested.
//! - [`route`]: the interface towards the other end.

pub mod clocks;
pub mod counter_snapshot;
pub mod evidence;
pub mod identity;
pub mod incoming;
pub mod pin;
pub mod placement;
pub mod route;
pub mod softirq;
pub mod window;

pub use counter_snapshot::CounterSnapshot;
pub use identity::{Identity, identity, same_host};
pub use pin::Pinned;
pub use placement::{Choice, LocalPlacement, PlacementRequest, Role};
pub use window::{Extras, ThreadWindow, Window, added, between, per_unit};
