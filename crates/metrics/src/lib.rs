//! What `export` offers to a monitoring system: [`families`] of a [`Scrape`], and `mesh` the [`mesh()`] of
//! a [`MeshScrape`]; both written by [`text`].
//!
//! The number of series is bounded by CPUs, interfaces, queues and [`limits`]; no series is named
//! after a peer, unless the operator asked for a probe of that peer or for a mesh.

mod cpu;
pub mod family;
pub mod fleet;
mod host;
pub mod limits;
mod mesh;
mod network;
pub mod probes;
mod scrape;
#[cfg(test)]
mod tests;
pub mod text;
pub mod totals;
mod waits;

pub use family::{Family, Kind};
pub use host::Process;
pub use mesh::{MeshScrape, mesh};
pub use scrape::{Scrape, families};
