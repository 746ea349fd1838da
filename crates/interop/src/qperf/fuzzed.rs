//! Fuzz targets for the messages that each end of qperf parses.

use super::{
    result,
    talk::printable,
    wire::{REQUEST, Request, STAT, Stat, Test},
};

/// A server's counters, or its error text.
pub fn from_server(bytes: &[u8]) {
    if let Some(block) = bytes.first_chunk::<STAT>() {
        let stat = Stat::decode(block);
        assert_eq!(Stat::decode(&first(&stat.encode())), stat);
        let _ = result::report(&stat);
    }
    assert!(!printable(bytes).contains(char::is_control));
}

fn first(sent: &[u8]) -> [u8; STAT] {
    let mut block = [0; STAT];
    block.iter_mut().zip(sent).for_each(|(to, from)| *to = *from);
    block
}

pub fn from_client(bytes: &[u8]) {
    if let Some(block) = bytes.first_chunk::<REQUEST>() {
        let request = Request::decode(block);
        assert_eq!(Request::decode(&request.encode()), request);
        let _ = Test::of(request.index);
    }
}
