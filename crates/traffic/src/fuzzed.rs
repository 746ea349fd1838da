//! Fuzz targets, one for each parser of input from a peer, a script or a user's file. A target must
//! not panic on any input, and panics itself if a parser contradicts itself.

use std::str::FromStr;

use model::measure::Transport;

use crate::{
    Secret, Target,
    control::{
        frame::{ASKED, Inbox, LARGE, SMALL},
        message::{PREAMBLE, ToClient, ToServer},
        secret::EndRole,
    },
    rtt::exchange::read_cpu,
    serve,
    stream::{datagram, shared_counts::SharedCounts},
};

/// A parser's name, and the function that feeds it arbitrary bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of external input in this crate, sorted by name.
pub const PARSERS: &[Parser] = &[
    ("control", control),
    ("datagram", datagrams),
    ("greeting", greeting),
    ("proof", proof),
    ("target", target),
];

/// Parses messages fed in pieces of this size, and shows them as text, until one is invalid.
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

/// The first byte selects the sender, the frame limit, and the size of the pieces.
fn control(bytes: &[u8]) {
    let Some((how, bytes)) = bytes.split_first() else { return };
    let most = [SMALL, ASKED, LARGE][usize::from(how >> 1) % 3];
    let (by_client, piece) = (how & 1 == 1, 1 + usize::from(how >> 3));
    let whole = messages(bytes, bytes.len(), most, by_client);
    assert_eq!(messages(bytes, piece, most, by_client), whole, "in pieces of {piece}");
}

/// Datagrams of streams and of round trips, 24 bytes each.
fn datagrams(bytes: &[u8]) {
    let (mut came, counts) = (datagram::Arrivals::default(), SharedCounts::default());
    for (now, one) in (0u64..).zip(bytes.chunks(24)) {
        if let Some((number, sent_ns)) = datagram::read(one) {
            came.take(number, sent_ns, now << 20, one.len() as u64, &counts);
        }
        for transport in [Transport::Tcp, Transport::Udp] {
            read_cpu(transport, one.len() as u64, one);
        }
    }
}

/// The greeting of a data connection, with the token of the seeds.
fn greeting(bytes: &[u8]) {
    let token = [7; PREAMBLE - 8];
    if serve::endpoint::greeting(bytes, &token).is_some() {
        assert_eq!(bytes.len(), PREAMBLE);
    }
}

/// A client's proof of the secret of the seeds: no other text is one.
fn proof(bytes: &[u8]) {
    let Ok(secret) = Secret::new("correct horse") else { return };
    let said = String::from_utf8_lossy(bytes);
    let right = secret.proof(EndRole::Client, "n1", "n2");
    let accepted = secret.accepts(EndRole::Client, "n1", "n2", &said);
    assert_eq!(accepted, said.eq_ignore_ascii_case(&right), "{said}");
}

fn target(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = (Target::from_str(&text), Secret::new(&text));
}
