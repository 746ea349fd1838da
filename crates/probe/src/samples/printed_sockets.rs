//! Sockets that `ss` printed into a support archive. Their counters are those since each was opened.

use std::collections::BTreeMap;

use model::samples::Owner;
use parse::{
    inet_diag::SocketMessage,
    ss_info_text::{self, PrintedSocket},
};

use crate::{
    Root,
    ask::sock_diag::{Connection, UdpSocket},
    root::SocketKind,
};

/// The state `TCP_ESTABLISHED` of `idiag_state`.
const ESTABLISHED: u8 = 1;

/// TCP connections by the kernel's number of the socket; `None` where no text has them all with that
/// number (`-e`) and their `tcp_info` (`-i`).
pub fn connections(root: &Root) -> Option<BTreeMap<u64, Connection>> {
    let all = ss_info_text::connections(&root.socket_text(SocketKind::Connections)?)?;
    all.into_iter().map(|socket| Some((socket.cookie?, connection(&socket)?))).collect()
}

fn connection(socket: &PrintedSocket) -> Option<Connection> {
    Some(Connection {
        socket: SocketMessage {
            state: ESTABLISHED,
            local: socket.local,
            remote: socket.remote?,
            cookie: socket.cookie?,
            ifindex: 0,
            receive_queue: socket.receive_queue,
            send_queue: socket.send_queue,
            inode: u32::try_from(socket.inode).ok()?,
        },
        info: socket.info?,
        send_buffer: socket.buffers.map(|(_, send)| send),
    })
}

/// UDP sockets; `None` where no text has them all with their buffers (`-m`) and inodes (`-e`).
pub fn udp(root: &Root) -> Option<Vec<UdpSocket>> {
    let all = ss_info_text::udp(&root.socket_text(SocketKind::Udp)?)?;
    let one = |s: PrintedSocket| {
        (s.inode != 0).then(|| UdpSocket {
            address: s.local,
            inode: s.inode,
            queue: s.receive_queue,
            buffer: s.buffers.map(|(receive, _)| receive),
            drops: s.drops,
        })
    };
    all.into_iter().map(one).collect()
}

/// The processes of each socket by its inode; empty without a text of `ss`.
pub fn owners(root: &Root) -> BTreeMap<u64, Vec<Owner>> {
    let connections = root.socket_text(SocketKind::Connections);
    let connections = connections.and_then(|text| ss_info_text::connections(&text));
    let udp = root.socket_text(SocketKind::Udp).and_then(|text| ss_info_text::udp(&text));
    let all = connections.into_iter().chain(udp).flatten();
    let known = all.filter(|s| s.inode != 0 && !s.owners.is_empty());
    let owners = |s: PrintedSocket| s.owners.into_iter().map(|(pid, name)| Owner { pid, name });
    known.map(|s| (s.inode, owners(s).collect())).collect()
}
