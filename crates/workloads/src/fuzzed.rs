//! Fuzz targets, one for each parser of input from a server, a script or a user's file. A target
//! must not panic on any input, and panics itself if a parser contradicts itself.

use std::str::FromStr;

use crate::{RedisUrl, Url, http, pg, redis};

/// A parser's name, and the function that feeds it arbitrary bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of external input in this crate, sorted by name.
pub const PARSERS: &[Parser] = &[
    ("http_response", http::pieces::whole_or_in_pieces),
    ("pg_address", pg::fuzzed::address),
    ("pg_login", pg::fuzzed::login),
    ("pg_messages", pg::fuzzed::messages),
    ("pg_passfile", pg::fuzzed::passfile),
    ("pg_script", pg::fuzzed::script),
    ("pg_session", pg::fuzzed::session),
    ("pgbench", pg::fuzzed::pgbench),
    ("redis_reply", redis::reply::fuzzed),
    ("url", url),
];

fn url(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = (Url::from_str(&text), RedisUrl::of(&text));
}
