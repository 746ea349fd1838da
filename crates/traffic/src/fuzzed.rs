//! What the fuzzers feed: one entry for each parser of what a peer, a script or a user's file
//! says. An entry must not panic on any bytes, and panics itself where a parser contradicts itself.

use std::str::FromStr;

use model::measure::Transport;

use crate::{
    Secret, Target,
    control::{
        frame::{ASKED, Inbox, LARGE, SMALL},
        message::{PREAMBLE, ToClient, ToServer},
    },
    rtt::exchange::read_cpu,
    serve,
    stream::{datagram, shared_counts::SharedCounts},
};

/// A parser's name, and what feeds it any bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of outside bytes in this crate, ascending.
pub const PARSERS: &[Parser] =
    &[("control", control), ("datagram", datagrams), ("greeting", greeting), ("target", target)];

/// All messages in pieces of this size, as text, until one is wrong.
fn messages(bytes: &[u8], piece: usize, most: usize, by_client: bool) -> Vec<String> {
    let (mut inbox, mut found) = (Inbox::default(), vec![]);
    for piece in bytes.chunks(piece.max(1)) {
        inbox.push(piece);
        loop {
            let next = match by_client {
                true => inbox.next::<ToServer>(most).map(|m| m.map(|m| format!("{m:?}"))),
                false => inbox.next::<ToClient>(most).map(|m| m.map(|m| format!("{m:?}"))),
            };
            match next {
                Ok(Some(message)) => found.push(message),
                Ok(None) => break,
                Err(_) => return found,
            }
        }
    }
    found
}

/// The first byte says who speaks, how large a frame may be, and the size of the pieces.
fn control(bytes: &[u8]) {
    let Some((how, bytes)) = bytes.split_first() else { return };
    let most = [SMALL, ASKED, LARGE][usize::from(how >> 1) % 3];
    let (by_client, piece) = (how & 1 == 1, 1 + usize::from(how >> 3));
    let whole = messages(bytes, bytes.len(), most, by_client);
    assert_eq!(messages(bytes, piece, most, by_client), whole, "in pieces of {piece}");
}

/// Datagrams of a stream and of round trips: 24 bytes each.
fn datagrams(bytes: &[u8]) {
    let (mut came, tally) = (datagram::Arrivals::default(), SharedCounts::default());
    for (now, one) in (0u64..).zip(bytes.chunks(24)) {
        if let Some((number, sent_ns)) = datagram::read(one) {
            came.take(number, sent_ns, now << 20, one.len() as u64, &tally);
        }
        for transport in [Transport::Tcp, Transport::Udp] {
            read_cpu(transport, one.len() as u64, one);
        }
    }
}

/// What begins a data connection: the token is the one of the seeds.
fn greeting(bytes: &[u8]) {
    let token = [7; PREAMBLE - 8];
    if serve::endpoint::greeting(bytes, &token).is_some() {
        assert_eq!(bytes.len(), PREAMBLE);
    }
}

fn target(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = (Target::from_str(&text), Secret::new(&text));
}
