//! What can be said of many measured values: distributions in bounded memory, quantiles with
//! their intervals, humps. Pure.

pub mod histogram;

pub use histogram::Histogram;
