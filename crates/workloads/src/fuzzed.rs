//! What the fuzzers feed: one entry for each parser of what a server, a script or a user's file
//! says. An entry must not panic on any bytes, and panics itself where a parser contradicts itself.

use std::str::FromStr;

use crate::{RedisUrl, Url, http, pg, redis};

/// A parser's name, and what feeds it any bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of outside bytes in this crate, ascending.
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
