//! The results of measurements: the request, which can be run again, the runs with their
//! distributions, and the state of both ends.

mod common;
mod connect;
mod http;
mod offload;
mod pg;
mod redis;
mod rtt;
mod spec;
mod stream;
mod trust;
mod wait_split;

pub use common::*;
pub use connect::*;
pub use http::*;
pub use offload::*;
pub use pg::*;
pub use redis::*;
pub use rtt::*;
pub use spec::*;
pub use stream::*;
pub use trust::TrustLimit;
pub use wait_split::SplitAnswer;
