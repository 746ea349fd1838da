//! Fuzz targets, one for each parser of the other program's input. A target must not panic on any
//! input, and panics itself if a parser contradicts itself.

use crate::{iperf3, qperf};

/// A parser's name, and the function that feeds it arbitrary bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of external input in this crate, sorted by name.
pub const PARSERS: &[Parser] = &[
    ("iperf3_client", iperf3::fuzzed::from_server),
    ("iperf3_datagram", iperf3::fuzzed::datagram),
    ("iperf3_server", iperf3::fuzzed::from_client),
    ("qperf_client", qperf::fuzzed::from_server),
    ("qperf_server", qperf::fuzzed::from_client),
];
