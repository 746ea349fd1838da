//! A data connection of a test, at the server.

use std::{collections::BTreeMap, net::SocketAddr};

use socket2::Socket;

/// A data connection; for UDP, a thread's socket and the clients that it may answer.
#[derive(Debug)]
pub struct DataFlow {
    pub socket: Socket,
    /// Flow number; for a UDP socket of several flows, the first one's.
    pub index: u32,
    /// UDP: client addresses with their flow numbers; empty for connected sockets.
    pub peers: BTreeMap<SocketAddr, u32>,
}
