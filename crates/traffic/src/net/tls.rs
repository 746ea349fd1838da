//! TLS client without I/O of its own: bytes go through a non-blocking descriptor that the caller
//! owns and watches.
//!
//! - [`Tls`]: trust and options, made once for all connections to one server.
//! - [`conn`]: one connection: handshake, read, write.
//! - `trust`: the trust anchors: the system's, a file's, or none.
//! - `binding`: the channel binding of a login.
//! - [`fault`]: error texts.

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

/// TLS options of a client.
#[derive(Debug, Clone, Default)]
pub struct TlsRequest<'a> {
    /// PEM file with the trusted certificates, instead of the system's.
    pub ca: Option<&'a str>,
    /// Whether any certificate of the server is accepted, unchecked.
    pub insecure: bool,
    /// Accept a certificate for another name.
    pub any_name: bool,
    /// Do not send the server name (SNI).
    pub no_sni: bool,
    /// PEM files with a client certificate and its key.
    pub own: Option<(&'a str, &'a str)>,
    /// Resume the sessions of earlier connections.
    pub resume: bool,
    /// ALPN name of the protocol: `http/1.1`.
    pub speaks: Option<&'static str>,
}

/// TLS settings shared by all connections to one server.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// Settings for a server of this name or address; its certificate must contain it. A name is
    /// also sent as SNI.
    ///
    /// # Errors
    /// The name is not valid in a certificate, no trusted certificates were found, or the client
    /// certificate cannot be read.
    pub fn new(host: &str, asked: &TlsRequest<'_>) -> Result<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            Error::Usage(format!("{host}: TLS needs a host name or an address, which this is not"))
        })?;
        let provider = Arc::new(ring::default_provider());
        let verifier = trust::verifier(asked, &provider)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::Environment(format!("TLS is not available: {e}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match asked.own {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => own::with(config, certificate, key)?,
        };
        config.enable_sni = !asked.no_sni;
        config.alpn_protocols = asked.speaks.iter().map(|s| s.as_bytes().to_vec()).collect();
        if !asked.resume {
            config.resumption = Resumption::disabled();
        }
        Ok(Self { config: Arc::new(config), name })
    }

    /// TLS for an established connection; sends nothing yet.
    ///
    /// # Errors
    /// [`Fault::Tls`]: no random numbers; does not occur on supported kernels.
    pub fn begin(&self) -> std::result::Result<TlsConn, Fault> {
        let conn = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        Ok(TlsConn::new(conn.map_err(Fault::Tls)?))
    }
}
