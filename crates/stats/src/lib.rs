//! What can be said of many measured values: distributions in bounded memory, quantiles with
//! their intervals, modes; closed queueing networks. Pure.

pub mod batches;
pub mod bootstrap;
mod bucket;
pub mod decompose;
pub mod enough;
mod grouping;
pub mod histogram;
pub mod interval;
pub mod modes;
pub mod paired;
pub mod predict;
pub mod queueing;
pub mod random;
pub mod rank_sum;
pub mod rate;
mod scale;
pub mod series;
pub mod student;
pub mod trial;

pub use batches::Batches;
pub use enough::{Enough, enough};
pub use histogram::Histogram;
pub use interval::{Estimate, NoInterval};
pub use series::Series;
