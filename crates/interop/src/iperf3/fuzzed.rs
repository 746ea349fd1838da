//! Fuzz targets for the messages that each end of iperf3 parses.

use super::{
    flow::{sequence::Sequence, udp},
    params::Params,
    results::Results,
    wire::{self, IperfState},
};

/// A server's states and its results.
pub fn from_server(bytes: &[u8]) {
    let _ = bytes.first().map(|byte| IperfState::read(*byte));
    if let Ok(value) = wire::json(bytes, "results")
        && let Ok(results) = Results::read(&value)
    {
        // Writing and reading again must give the same.
        assert_eq!(
            Results::read(&results.write()).ok().map(|r| r.streams.len()),
            Some(results.streams.len())
        );
        let _ = results.stream(1);
    }
}

/// A client's parameters and its results.
pub fn from_client(bytes: &[u8]) {
    if let Ok(value) = wire::json(bytes, "parameters") {
        if let Ok(params) = Params::read(&value) {
            let _ = (params.streams(), params.client_sends(0), params.write());
        }
        let _ = Results::read(&value);
    }
}

/// Datagrams of a stream, with sequence numbers of either width.
pub fn datagram(bytes: &[u8]) {
    for wide in [true, false] {
        let mut sequence = Sequence::default();
        for (now, one) in (0u64..).zip(bytes.chunks(16)) {
            if let Some((number, sent_ns)) = udp::read(one, wide, &sequence) {
                sequence.record(number, sent_ns, now << 20);
            }
        }
    }
}
