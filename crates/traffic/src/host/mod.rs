//! What one end knows of itself during a measurement. Both ends run this code.
//!
//! - [`mark`] and [`window`]: a look at clocks and kernel counters before and after, and what
//!   happened in between.

pub mod clocks;
pub mod evidence;
pub mod mark;
pub mod window;

pub use mark::Mark;
pub use window::{Extras, ThreadWindow, Window, between, per_unit};
