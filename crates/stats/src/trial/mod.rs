//! A verdict on a change from runs made interleaved, with known rates of error.
//!
//! Runs come in blocks. A block holds every level twice, in a random order and then mirrored
//! (A B B A or B A A B), so that what drifts evenly hits all alike ([`order`]). Its effect is the
//! difference of the levels' mean logarithms. Where the change does nothing, only the coin that
//! chose the order decides the effect's sign: the tests here rest on that coin ([`signed_rank`],
//! [`test_martingale`]) and hold whatever the host does, be it drift, neighbours that resemble one
//! another, two modes or outliers (Fisher, The Design of Experiments, 1935, chapter II).
//!
//! An experiment may stop early and be looked at after each block: [`decide`] says how its error
//! is shared out.

pub mod block_series;
pub mod decide;
pub mod holm;
pub mod order;
pub mod several;
pub mod signed_rank;
pub mod test_martingale;
pub mod two_groups;
pub mod two_places;

#[cfg(test)]
mod simulated;

pub use decide::{Finding, Outcome, Rule, judge};
