//! Load generators for HTTP, PostgreSQL and Redis servers.
//!
//! Each is a protocol on `traffic`'s engine ([`traffic::engine`]), which connects, keeps the
//! schedule and records. The servers need no software of ours.

mod fuzzed;
mod http;
pub mod pg;
mod redis;

pub use fuzzed::PARSERS;
pub use http::{
    fetch::{Fetch, Fetched, fetch as fetch_http},
    measure::measure as measure_http,
    statuses::of_statuses as what_statuses_say,
    url::Url,
};
pub use pg::measure::measure as measure_pg;
pub use redis::{RedisUrl, measure as measure_redis};
