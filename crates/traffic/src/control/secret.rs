//! Proves that both ends know a secret without sending it: HMAC-SHA256 (RFC 2104) over both nonces
//! and the role of the prover, so that a proof cannot be reflected.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{Error, ErrorContext, Result};

/// Length of a nonce in bytes.
const NONCE: usize = 16;

/// A shared secret; never printed, never sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndRole {
    /// The server of the test.
    Server,
    /// The client of the test.
    Client,
}

impl Secret {
    /// A secret from a text, without surrounding white space.
    ///
    /// # Errors
    /// It has fewer than 8 characters: a recorded handshake would allow trying them all.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        match text.len() {
            0..8 => Err(Error::Usage("a secret needs at least 8 characters".into())),
            _ => Ok(Self(text.as_bytes().to_vec())),
        }
    }

    /// A new secret of 128 random bits, and its text for the other end.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn one_time() -> Result<(Self, String)> {
        let text = nonce()?;
        Ok((Self(text.clone().into_bytes()), text))
    }

    fn mac(&self, who: EndRole, server: &str, client: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        let who: &[u8] = match who {
            EndRole::Server => b"netwright server\0",
            EndRole::Client => b"netwright client\0",
        };
        for part in [who, server.as_bytes(), b"\0", client.as_bytes()] {
            mac.update(part);
        }
        Some(mac)
    }

    /// The proof of one role over both nonces, in hex.
    pub fn proof(&self, who: EndRole, server_nonce: &str, client_nonce: &str) -> String {
        let mac = self.mac(who, server_nonce, client_nonce);
        mac.map(|m| hex(&m.finalize().into_bytes())).unwrap_or_default()
    }

    /// Checks a proof in constant time.
    pub fn accepts(
        &self,
        who: EndRole,
        server_nonce: &str,
        client_nonce: &str,
        proof: &str,
    ) -> bool {
        let bytes = unhex(proof);
        let mac = self.mac(who, server_nonce, client_nonce);
        match (mac, bytes) {
            (Some(mac), Some(bytes)) => mac.verify_slice(&bytes).is_ok(),
            _ => false,
        }
    }
}

/// Random bytes from the kernel, in hex.
///
/// # Errors
/// The kernel gives none (before 3.17).
pub fn nonce() -> Result<String> {
    let mut bytes = [0u8; NONCE];
    // The kernel returns up to 256 bytes in one call.
    let done = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    done.map_err(std::io::Error::from).doing(|| "no random bytes from the kernel")?;
    Ok(hex(&bytes))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub fn unhex(text: &str) -> Option<Vec<u8>> {
    // `from_str_radix` also takes `+f`.
    if !text.bytes().all(|b| b.is_ascii_hexdigit()) || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(text.get(i..i + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_secret_end_and_nonces_are_accepted() {
        let (a, b) =
            (Secret::new("correct horse").unwrap(), Secret::new("battery staple").unwrap());
        let proof = a.proof(EndRole::Client, "n1", "n2");
        assert!(a.accepts(EndRole::Client, "n1", "n2", &proof));
        assert!(!b.accepts(EndRole::Client, "n1", "n2", &proof));
        assert!(!a.accepts(EndRole::Server, "n1", "n2", &proof), "sent back");
        assert!(!a.accepts(EndRole::Client, "n3", "n2", &proof), "sent again");
        assert!(!a.accepts(EndRole::Client, "n1", "n2", ""));
        assert!(!a.accepts(EndRole::Client, "n1", "n2", "zz"));
        assert_eq!((unhex("0f"), unhex("+f"), unhex("f")), (Some(vec![15]), None, None));
        assert!(!format!("{a:?}").contains("horse"));
    }

    #[test]
    fn the_proof_is_hmac_sha256() {
        // printf 'netwright client\0n1\0n2' | openssl dgst -sha256 -hmac 'correct horse'
        let proof = Secret::new(" correct horse\n").unwrap().proof(EndRole::Client, "n1", "n2");
        assert_eq!(proof, "afa0abb3494fc12f74dc4bb2253eeed2099b4a90af7e9c8faf4f979f77f6cd31");
    }

    #[test]
    fn short_secrets_are_refused_and_random_ones_differ() {
        assert!(Secret::new("1234567").is_err());
        let (_, a) = Secret::one_time().unwrap();
        let (_, b) = Secret::one_time().unwrap();
        assert!(a != b && a.len() == 32);
    }
}
