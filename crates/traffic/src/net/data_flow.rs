//! A data connection of a test at its server.

use std::{collections::BTreeMap, net::SocketAddr};

use socket2::Socket;

/// A data connection, or for UDP one thread's socket and whom it may answer.
#[derive(Debug)]
pub struct DataFlow {
    pub socket: Socket,
    /// The flow's number; for UDP sockets of many flows, the first one's.
    pub index: u32,
    /// UDP: the clients' addresses with their flows' numbers, empty for connected sockets.
    pub peers: BTreeMap<SocketAddr, u32>,
}
