//! HTTP, PostgreSQL and Redis: how fast a server of them answers.
//!
//! Each is a protocol on the engine of `traffic` ([`traffic::engine`]), which connects, keeps the
//! schedule and records. The servers are anybody's; nothing of ours runs there.

mod fuzzed;
mod http;
pub mod pg;
mod redis;

pub use fuzzed::PARSERS;
pub use http::{
    measure::measure as measure_http, statuses::of_statuses as what_statuses_say, url::Url,
};
pub use pg::measure::measure as measure_pg;
pub use redis::{RedisUrl, measure as measure_redis};
