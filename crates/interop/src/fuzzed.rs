//! What the fuzzers feed: one entry for each parser of what the other program says. An entry must
//! not panic on any bytes, and panics itself where a parser contradicts itself.

use crate::{iperf3, qperf};

/// A parser's name, and what feeds it any bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of outside bytes in this crate, ascending.
pub const PARSERS: &[Parser] = &[
    ("iperf3_client", iperf3::fuzzed::from_server),
    ("iperf3_datagram", iperf3::fuzzed::datagram),
    ("iperf3_server", iperf3::fuzzed::from_client),
    ("qperf_client", qperf::fuzzed::from_server),
    ("qperf_server", qperf::fuzzed::from_client),
];
