//! Finds the server before the first run: the address that answers, and whether TLS works.

use std::{net::SocketAddr, path::Path, sync::atomic::AtomicBool, time::Duration};

use model::measure::{Common, End, TlsSpec, Transport};
use socket2::SockAddr;

use super::{
    deadline::Deadline,
    dial::{dial, ended_early},
    link::{Link, Rooms},
};
use crate::{
    Error, Result,
    net::{
        target::resolve,
        tls::{
            Tls, TlsRequest,
            fault::{Fault, Remedies, advice},
        },
    },
};

/// Timeout of the first connection to each address, with its handshake.
const PATIENCE: Duration = Duration::from_secs(5);
/// Timeout over all addresses of the name.
const WHOLE: Duration = Duration::from_secs(30);
/// Size of the buffer for the handshake.
const ROOM: usize = 16 << 10;

/// A server before its address is resolved.
#[derive(Debug)]
pub struct Server<'a> {
    /// Name or address, as checked against the certificate.
    pub host: &'a str,
    pub port: u16,
    /// The Unix socket to connect to instead.
    pub socket: Option<&'a Path>,
    /// Name for messages, such as `host:8443`.
    pub name: String,
    /// Hint if TLS fails: `is it a port without, for http://?`
    pub plain: &'static str,
}

/// The TLS settings for the server; `speaks` is the protocol's ALPN name, if it has one.
///
/// # Errors
/// No trusted certificates were found.
pub fn tls_of(asked: &TlsSpec, server: &Server<'_>, speaks: Option<&'static str>) -> Result<Tls> {
    Tls::new(
        server.host,
        &TlsRequest {
            ca: asked.ca.as_deref(),
            insecure: asked.insecure,
            resume: asked.resume,
            speaks,
            ..TlsRequest::default()
        },
    )
}

/// A server that answers.
#[derive(Debug)]
pub struct ServerAddress {
    pub to: SockAddr,
    pub transport: Transport,
    /// Its name for messages.
    pub name: String,
    /// Its address; `None` for a Unix socket.
    pub ip: Option<SocketAddr>,
    /// This end, with its address towards the server.
    pub local: End,
}

/// The first address that answers, with a connection to it and TLS if used; `stop` ends the search.
///
/// # Errors
/// No address answers, or TLS fails: with advice.
pub fn reach(
    common: &Common,
    server: &Server<'_>,
    tls: Option<&Tls>,
    stop: &AtomicBool,
) -> Result<(ServerAddress, Link)> {
    let whole = Deadline::after(WHOLE, stop);
    let mut last = Error::Environment(format!("{} has no address", server.host));
    for mut door in doors(common, server)? {
        let deadline = whole.at_most(PATIENCE);
        match dial(&door.to, door.transport, &door.name, common, &deadline) {
            Ok(socket) => {
                let ours = socket.local_addr().ok().and_then(|a| a.as_socket());
                let mut link = Link::new(socket);
                if let Some(tls) = tls {
                    shake(tls, &mut link, server, &deadline)?;
                }
                door.local.address = ours.map_or_else(String::new, |a| a.ip().to_string());
                return Ok((door, link));
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// The addresses of a server, in the order in which they are tried.
fn doors(common: &Common, server: &Server<'_>) -> Result<Vec<ServerAddress>> {
    let local = crate::host::identity::of_this_host().end;
    let Some(path) = server.socket else {
        let all = resolve(server.host, server.port, common.family)?.into_iter();
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

fn shake(tls: &Tls, link: &mut Link, server: &Server<'_>, deadline: &Deadline<'_>) -> Result<()> {
    let (name, plain) = (&server.name, server.plain);
    let remedies = Remedies {
        trust: "--ca FILE",
        unchecked: "--insecure measures without checking",
        plain,
        own: "a client's certificate, which is not sent",
    };
    match link.shake_within(tls, &mut Rooms::new(ROOM, true), deadline) {
        Ok(_) => Ok(()),
        Err(Fault::Tls(why)) => Err(Error::Environment(advice(name, &why, &remedies))),
        Err(Fault::Io(e)) if Deadline::is_stopped(&e) => Err(ended_early(name)),
        Err(Fault::Io(e)) if Deadline::is_late(&e) => Err(Error::Environment(format!(
            "{name}: the TLS handshake was not over in {}; {plain}",
            deadline.limit()
        ))),
        Err(Fault::Io(e)) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(Error::Environment(format!("{name}: it closed within the TLS handshake; {plain}")))
        }
        Err(Fault::Io(e)) => Err(Error::io(format!("{name}: within the TLS handshake"), &e)),
    }
}

/// The name of a Unix socket for messages: `unix:/run/app.sock`.
pub fn name_of(path: &Path) -> String {
    format!("unix:{}", path.display())
}
