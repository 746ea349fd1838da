//! TLS as a client, without input or output of its own: bytes go through a non-blocking
//! descriptor that the caller owns and watches.
//!
//! - [`Tls`]: what is trusted and asked for, made once for all connections to one server.
//! - [`conn`]: one connection: handshake, read, write.
//! - `trust`: the system's authorities, a file's, or nobody's.
//! - `binding`: what ties a login to a connection.
//! - [`fault`]: what went wrong, in words.

mod binding;
pub mod conn;
pub mod fault;
mod own;
mod trust;

use std::sync::Arc;

use rustls::{
    ClientConfig,
    client::{ClientConnection, Resumption},
    crypto::ring,
    pki_types::ServerName,
};

use self::{conn::TlsConn, fault::Fault};
use crate::{Error, Result};

/// What a client asks of TLS.
#[derive(Debug, Clone, Default)]
pub struct TlsRequest<'a> {
    /// A PEM file whose certificates are trusted instead of the system's.
    pub ca: Option<&'a str>,
    /// Whether any certificate will do.
    pub insecure: bool,
    /// Whether one for another name will do.
    pub any_name: bool,
    /// Whether the server is not reported which name was asked for (SNI).
    pub untold: bool,
    /// Files in PEM: a certificate of our own, and its key.
    pub own: Option<(&'a str, &'a str)>,
    /// Whether a connection takes up the session of an earlier one.
    pub resume: bool,
    /// What is spoken within, by its ALPN name: `http/1.1`.
    pub speaks: Option<&'static str>,
}

/// What all connections to one server have in common.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// For a server of this name or address, which its certificate must name; a name is sent too
    /// (SNI).
    ///
    /// # Errors
    /// The name cannot stand in a certificate; nothing to trust was found; our own certificate
    /// cannot be read.
    pub fn new(host: &str, asked: &TlsRequest<'_>) -> Result<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            Error::Usage(format!("{host}: TLS needs a host name or an address, which this is not"))
        })?;
        let provider = Arc::new(ring::default_provider());
        let verifier = trust::verifier(asked, &provider)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::Environment(format!("TLS cannot be spoken here: {e}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match asked.own {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => own::with(config, certificate, key)?,
        };
        config.enable_sni = !asked.untold;
        config.alpn_protocols = asked.speaks.iter().map(|s| s.as_bytes().to_vec()).collect();
        if !asked.resume {
            config.resumption = Resumption::disabled();
        }
        Ok(Self { config: Arc::new(config), name })
    }

    /// For a connection that is established: nothing is sent yet.
    ///
    /// # Errors
    /// [`Fault::Tls`]: no random numbers, which no kernel of ours lacks.
    pub fn begin(&self) -> std::result::Result<TlsConn, Fault> {
        let conn = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        Ok(TlsConn::new(conn.map_err(Fault::Tls)?))
    }
}
