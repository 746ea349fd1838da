//! A relay to a server that reports when it is used.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

/// Relays connections to a server. Its threads end with the connections.
pub struct Through {
    pub target: String,
    /// Gets a message for each accepted connection.
    pub taken: Receiver<()>,
}

impl Through {
    /// Starts a relay to `target`.
    pub fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = listener.local_addr().expect("it listens").to_string();
        let (reported, taken) = channel();
        let target = target.to_owned();
        thread::spawn(move || accept(&listener, &target, &reported));
        Self { target: here, taken }
    }
}

fn accept(listener: &TcpListener, target: &str, reported: &Sender<()>) {
    for local in listener.incoming().map_while(Result::ok) {
        let _ = reported.send(());
        let Ok(peer) = TcpStream::connect(target) else { continue };
        let (Ok(a), Ok(b)) = (local.try_clone(), peer.try_clone()) else { continue };
        thread::spawn(move || carry(a, b));
        thread::spawn(move || carry(peer, local));
    }
}

/// One direction, to its end.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
