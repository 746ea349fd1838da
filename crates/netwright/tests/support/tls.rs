//! Certificates made by openssl, and a relay that modifies a server's bytes.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

/// A test's certificate authority, as files of a folder: `ca.crt`, and for each server `NAME.crt`
/// with `NAME.key`.
pub struct Authority<'a> {
    folder: &'a Path,
}

fn openssl(folder: &Path, args: &str) {
    let out = Command::new("openssl").current_dir(folder).args(args.split(' ')).output();
    let out = out.expect("openssl; `make test-deps` installs it");
    assert!(out.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&out.stderr));
}

const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

impl<'a> Authority<'a> {
    pub fn new(folder: &'a Path) -> Self {
        openssl(
            folder,
            &format!("req -x509 {KEY} -keyout ca.key -out ca.crt -days 30 -subj /CN=a"),
        );
        Self { folder }
    }

    /// Makes a server's certificate: `DNS:localhost,IP:127.0.0.1`, for this many days from now.
    pub fn signs(&self, name: &str, names: &str, days: u32) {
        let at = self.folder;
        openssl(at, &format!("req -new {KEY} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
        let more = format!("subjectAltName={names}\nbasicConstraints=CA:FALSE\n");
        std::fs::write(at.join("more"), more).expect("a folder to write to");
        let by = "-CA ca.crt -CAkey ca.key -CAcreateserial";
        openssl(
            at,
            &format!("x509 -req -in {name}.csr {by} -days {days} -extfile more -out {name}.crt"),
        );
    }
}

/// Makes a self-signed certificate, as `openssl req -x509`.
pub fn signs_itself(folder: &Path, name: &str, names: &str) {
    let files = format!("-keyout {name}.key -out {name}.crt -days 30 -subj /CN={name}");
    openssl(folder, &format!("req -x509 {KEY} {files} -addext subjectAltName={names}"));
}

/// The relay's modification of the server's bytes on each connection.
#[derive(Clone, Copy)]
pub enum Does {
    /// Delays the first bytes by this long.
    Delays(Duration),
    /// Closes both sides after this many bytes.
    Cuts(usize),
    /// Flips a bit of the byte at this offset.
    Turns(usize),
}

/// Relays connections to a server of this host; returns its own address.
pub fn relay(to: SocketAddr, does: Does) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for local in listener.incoming().flatten() {
            let Ok(peer) = TcpStream::connect(to) else { continue };
            let _ = (local.set_nodelay(true), peer.set_nodelay(true));
            let (Ok(local_too), Ok(peer_too)) = (local.try_clone(), peer.try_clone()) else {
                continue;
            };
            std::thread::spawn(move || pump(local, peer, None));
            std::thread::spawn(move || pump(peer_too, local_too, Some(does)));
        }
    });
    address
}

fn pump(mut from: TcpStream, mut to: TcpStream, does: Option<Does>) {
    let (mut room, mut passed) = (vec![0; 16 << 10], 0);
    while let Ok(n @ 1..) = from.read(&mut room) {
        let mut bytes = &mut room[..n];
        match does {
            Some(Does::Delays(time)) if passed == 0 => std::thread::sleep(time),
            Some(Does::Cuts(after)) if passed + n > after => bytes = &mut bytes[..after - passed],
            Some(Does::Turns(at)) if (passed..passed + n).contains(&at) => bytes[at - passed] ^= 1,
            _ => {}
        }
        if to.write_all(bytes).is_err() || bytes.len() < n {
            break;
        }
        passed += n;
    }
    let _ = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
}
