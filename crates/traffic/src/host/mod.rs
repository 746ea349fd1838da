//! What one end knows of itself during a measurement. Both ends run this code.
//!
//! - [`mark`] and [`window`]: a look at clocks and kernel counters before and after, and what
//!   happened in between.
//! - [`placement`] and [`pin`]: on which CPUs the threads run and why, and putting them there.
//! - [`incoming`]: which CPU received the packets, and which one the thread is on.
//! - [`mod@identity`]: who this end is, and whether both ends are one host.
//! - [`softirq`]: softirq time by context, where it was asked for.
//! - [`route`]: by which interface the other end is reached.

pub mod clocks;
pub mod evidence;
pub mod identity;
pub mod incoming;
pub mod mark;
pub mod pin;
pub mod placement;
pub mod route;
pub mod softirq;
pub mod window;

pub use identity::{Identity, identity, same_host};
pub use mark::Mark;
pub use pin::Pinned;
pub use placement::{ChangeRequest, Choice, LocalPlacement, Role};
pub use window::{Extras, ThreadWindow, Window, added, between, per_unit};
