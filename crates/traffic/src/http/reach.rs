//! The server before the first run: its address that answers, and whether TLS can be spoken.

use std::{net::SocketAddr, sync::atomic::AtomicBool, time::Duration};

use model::measure::{End, HttpSpec, Transport};
use socket2::{SockAddr, Socket};

use super::url::{Url, name_of};
use crate::{
    Error, Result,
    engine::{
        deadline::Deadline,
        dial::{dial, ended_early},
        link::{Link, Rooms},
    },
    net::{
        target::resolve,
        tls::{
            Tls, TlsRequest,
            fault::{Fault, Remedies, advice},
        },
    },
};

/// How long the first connection may take at each address, with its handshake.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take over all addresses of the name.
const WHOLE: Duration = Duration::from_secs(30);
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
            &TlsRequest {
                ca: asked.ca.as_deref(),
                insecure: asked.insecure,
                resume: asked.resume,
                speaks: Some("http/1.1"),
                ..TlsRequest::default()
            },
        )?)),
    }
}

/// A server that answers.
#[derive(Debug)]
pub struct ServerAddress {
    pub to: SockAddr,
    pub transport: Transport,
    /// The same for people.
    pub name: String,
    /// Its address; none of a Unix socket.
    pub ip: Option<SocketAddr>,
    /// This end, with the address that it has towards it.
    pub local: End,
}

/// The server's address that answers, with TLS where it is spoken; `stop` ends the looking.
///
/// # Errors
/// No server, or one that TLS cannot be spoken with: what to do.
pub fn reach(
    spec: &HttpSpec,
    server: &Url,
    tls: Option<&Tls>,
    stop: &AtomicBool,
) -> Result<ServerAddress> {
    let whole = Deadline::after(WHOLE, stop);
    let mut last = Error::Environment(format!("{} has no address", server.host));
    for mut door in doors(spec, server)? {
        let deadline = whole.at_most(PATIENCE);
        match dial(&door.to, door.transport, &door.name, &spec.common, &deadline) {
            Ok(socket) => {
                let ours = socket.local_addr().ok().and_then(|a| a.as_socket());
                if let Some(tls) = tls {
                    shake(tls, socket, &server.authority(), &deadline)?;
                }
                door.local.address = ours.map_or_else(String::new, |a| a.ip().to_string());
                return Ok(door);
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Where it may be.
fn doors(spec: &HttpSpec, server: &Url) -> Result<Vec<ServerAddress>> {
    let local = crate::host_identity().end;
    let Some(path) = &server.socket else {
        let all = resolve(&server.host, server.port, spec.common.family)?.into_iter();
        return Ok(all
            .map(|ip| ServerAddress {
                to: ip.into(),
                transport: Transport::Tcp,
                name: ip.to_string(),
                ip: Some(ip),
                local: local.clone(),
            })
            .collect());
    };
    let name = name_of(path);
    let to = SockAddr::unix(path).map_err(|e| Error::io(&name, &e))?;
    Ok(vec![ServerAddress { to, transport: Transport::Unix, name, ip: None, local }])
}

fn shake(tls: &Tls, socket: Socket, server: &str, deadline: &Deadline<'_>) -> Result<()> {
    let done = Link::new(socket).shake_within(tls, &mut Rooms::new(ROOM, true), deadline);
    let plain = "is it a port without, for http://?";
    match done {
        Ok(_) => Ok(()),
        Err(Fault::Tls(why)) => Err(Error::Environment(advice(server, &why, &REMEDIES))),
        Err(Fault::Io(e)) if Deadline::is_stopped(&e) => Err(ended_early(server)),
        Err(Fault::Io(e)) if Deadline::is_late(&e) => Err(Error::Environment(format!(
            "{server}: the TLS handshake was not over in {}; {plain}",
            deadline.limit()
        ))),
        Err(Fault::Io(e)) if e.kind() == std::io::ErrorKind::UnexpectedEof => Err(
            Error::Environment(format!("{server}: it closed within the TLS handshake; {plain}")),
        ),
        Err(Fault::Io(e)) => Err(Error::io(format!("{server}: within the TLS handshake"), &e)),
    }
}
