//! Which server certificates are trusted.

use std::{path::Path, sync::Arc};

use rustls::{
    CertificateError, DigitallySignedStruct, Error as Why, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};

use super::TlsRequest;
use crate::{Error, Result};

/// Bundle files with the system's trusted authorities: Debian and most others, Fedora and RHEL,
/// openSUSE, RHEL without its link, Alpine.
const SYSTEM: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The verifier of a server's certificate.
///
/// # Errors
/// The file cannot be read or holds no certificate, or the system has none.
pub fn verifier(
    asked: &TlsRequest<'_>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    if asked.insecure {
        return Ok(Arc::new(Anybody(Arc::clone(provider))));
    }
    let (own, whence) = match asked.ca {
        Some(path) => (file(path)?, path.to_owned()),
        None => (system()?, "this host".to_owned()),
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(own.iter().cloned());
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|e| {
            Error::Environment(format!("{whence} has no certificate that can be trusted: {e}"))
        })?;
    let own = if asked.ca.is_some() { own } else { vec![] };
    Ok(Arc::new(Known { chain, own, any_name: asked.any_name }))
}

/// Size limit of a certificate or key file in bytes; a system's bundle is 256 KiB.
const MOST_PEM: u64 = 4 << 20;

/// Content of a certificate or key file.
///
/// # Errors
/// The file cannot be read.
pub fn pem(path: &str) -> Result<Vec<u8>> {
    let read = probe::given::read(Path::new(path), MOST_PEM);
    read.map_err(|e| Error::io(format!("cannot read {path}"), &e))
}

/// The certificates of a file.
///
/// # Errors
/// The file cannot be read, or holds none.
pub fn file(path: &str) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = pem(path)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes).flatten().collect();
    match certificates.is_empty() {
        true => Err(Error::Environment(format!(
            "{path} holds no certificate in PEM (-----BEGIN CERTIFICATE-----)"
        ))),
        false => Ok(certificates),
    }
}

/// Certificates of the first existing file of [`SYSTEM`], or of the file in `SSL_CERT_FILE`.
fn system() -> Result<Vec<CertificateDer<'static>>> {
    if let Some(named) = std::env::var_os("SSL_CERT_FILE").filter(|n| !n.is_empty()) {
        return file(&named.to_string_lossy());
    }
    match SYSTEM.iter().find(|path| Path::new(path).exists()) {
        Some(path) => file(path),
        None => Err(Error::Environment(format!(
            "this host names no authority to trust (no {}, …); install ca-certificates, name one \
             by --ca FILE, or --insecure measures without checking",
            SYSTEM.first().copied().unwrap_or_default()
        ))),
    }
}

/// Accepts chains of trusted authorities, and also the file's certificates themselves: one made by
/// `openssl req -x509` is self-signed and marked as an authority, which a server certificate may
/// not be.
#[derive(Debug)]
struct Known {
    chain: Arc<WebPkiServerVerifier>,
    own: Vec<CertificateDer<'static>>,
    /// Whether another name is accepted.
    any_name: bool,
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        server: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Why> {
        match self.chain.verify_server_cert(server, between, name, ocsp, now) {
            // Its validity period was checked just before.
            Err(Why::InvalidCertificate(CertificateError::Other(_)))
                if self.own.iter().any(|c| c == server) =>
            {
                match verify_server_name(&ParsedCertificate::try_from(server)?, name) {
                    Err(why) if !self.any_name => Err(why),
                    _ => Ok(ServerCertVerified::assertion()),
                }
            }
            // The name is checked last, when all else is valid.
            Err(Why::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        server: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Why> {
        self.chain.verify_tls12_signature(message, server, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        server: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Why> {
        self.chain.verify_tls13_signature(message, server, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// Accepts any certificate; only checks that the server has its key.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Why> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        server: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Why> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, server, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        server: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Why> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, server, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
