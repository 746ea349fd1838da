//! The server before the first run: its address that answers, and whether TLS can be spoken.

use std::{net::SocketAddr, os::fd::AsRawFd, time::Duration};

use model::measure::{End, HttpSpec, Transport};
use socket2::Socket;

use super::url::Url;
use crate::{
    Doing, Error, Result,
    net::{
        target::resolve,
        tls::{
            Asked, Tls,
            fault::{Fault, Remedies, advice},
        },
    },
    served::dial::dial,
};

/// How long the first connection may take, and the first handshake.
const PATIENCE: Duration = Duration::from_secs(5);
/// Room for what a server says in its handshake, at a time.
const ROOM: usize = 16 << 10;

const REMEDIES: Remedies = Remedies {
    trust: "--ca FILE",
    unchecked: "--insecure measures without checking",
    plain: "is it a port without, for http://?",
    own: "a client's certificate, which is not sent",
};

/// How TLS is spoken to the server, where its URL says so.
///
/// # Errors
/// What was asked of TLS makes no sense without, or nothing to trust was found.
pub fn tls_of(spec: &HttpSpec, server: &Url) -> Result<Option<Tls>> {
    let asked = &spec.tls;
    let asks = asked.ca.is_some() || asked.insecure || asked.resume;
    match (server.tls, asks) {
        (false, false) => Ok(None),
        (false, true) => Err(Error::Usage(format!(
            "{}: TLS is spoken with https:// alone; write that, or leave out what is asked of TLS",
            server.origin()
        ))),
        (true, _) => Ok(Some(Tls::new(
            &server.host,
            &Asked {
                ca: asked.ca.as_deref(),
                insecure: asked.insecure,
                resume: asked.resume,
                speaks: Some("http/1.1"),
                ..Asked::default()
            },
        )?)),
    }
}

/// The server's address that answers, and this end with the address that it has towards it.
///
/// # Errors
/// No server, or one that TLS cannot be spoken with: what to do.
pub fn reach(spec: &HttpSpec, server: &Url, tls: Option<&Tls>) -> Result<(SocketAddr, End)> {
    let mut last = Error::Environment(format!("{} has no address", server.host));
    for address in resolve(&server.host, server.port, spec.common.family)? {
        match dial(&address.into(), Transport::Tcp, &address.to_string(), &spec.common, PATIENCE) {
            Ok(socket) => {
                if let Some(tls) = tls {
                    shake(tls, &socket, &server.authority())?;
                }
                let ours = socket.local_addr().ok().and_then(|a| a.as_socket());
                let ours = ours.map_or_else(String::new, |a| a.ip().to_string());
                return Ok((address, End { address: ours, ..crate::host_identity().end }));
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// A whole handshake, on a socket that blocks.
fn shake(tls: &Tls, socket: &Socket, server: &str) -> Result<()> {
    socket.set_read_timeout(Some(PATIENCE)).doing(|| format!("{server}: a time limit"))?;
    let mut room = vec![0; ROOM];
    let done = tls.begin().and_then(|mut conn| conn.handshake(socket.as_raw_fd(), &mut room));
    match done {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Environment(format!(
            "{server}: no TLS handshake in {} s; is it a port without, for http://?",
            PATIENCE.as_secs()
        ))),
        Err(Fault::Tls(why)) => Err(Error::Environment(advice(server, &why, &REMEDIES))),
        Err(Fault::Io(e)) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(Error::Environment(format!(
                "{server}: it closed within the TLS handshake; is it a port without, for http://?"
            )))
        }
        Err(Fault::Io(e)) => Err(Error::io(format!("{server}: within the TLS handshake"), &e)),
    }
}
