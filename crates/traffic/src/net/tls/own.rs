//! The client certificate that a connection presents.

use rustls::{
    ClientConfig, ConfigBuilder,
    client::WantsClientCert,
    pki_types::{PrivateKeyDer, pem::PemObject},
};

use super::trust;
use crate::{Error, Result};

/// Adds the certificate and key from these files.
///
/// # Errors
/// A file cannot be read, or certificate and key do not match.
pub fn with(
    config: ConfigBuilder<ClientConfig, WantsClientCert>,
    certificate: &str,
    key: &str,
) -> Result<ClientConfig> {
    let chain = trust::file(certificate)?;
    let secret = PrivateKeyDer::from_pem_slice(&trust::pem(key)?).map_err(|e| {
        Error::Environment(format!("cannot read {key}: no key in PEM without a password: {e}"))
    })?;
    config.with_client_auth_cert(chain, secret).map_err(|e| {
        Error::Environment(format!("{certificate} and {key} cannot be used together: {e}"))
    })
}
