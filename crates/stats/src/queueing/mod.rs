//! Closed queueing networks: how many transactions a second so many clients get out of CPUs,
//! queues and delays, where they wait, and what would change that.
//!
//! A client cycles through the stations, one transaction at a time, as a client of a database or
//! a web server does. [`Network::solve`] is exact for networks of product form (Baskett, Chandy,
//! Muntz and Palacios, JACM 22, 1975): exponential service at queues, any at delays. Real service
//! is often steadier; [`Curve`] predicts from a measured curve instead and gives both ends of what
//! variability may do. [`simple`] is the sum done by hand.

mod bounds;
mod convolution;
mod flow;
pub mod simple;
#[cfg(test)]
mod simulation;
mod solve;
mod station;
#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use flow::{Apart, Curve};
pub use solve::{Solved, SolvedStation};
pub use station::{MOST_CLIENTS, Network, NoNetwork, Station, StationKind};
