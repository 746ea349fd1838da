//! Requests that change a host are sealed one by one: HMAC-SHA256 (RFC 2104) under a key made of
//! the secret and both ends' nonces, over who speaks, the message's number and its text. Whoever
//! relays a greeting cannot put a word in, say one again, leave one out, or carry one to another
//! connection. The text itself can be read on the wire.

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::secret::{EndRole, Secret, hex, unhex};
use crate::{Error, Result};

/// A text with its seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    pub body: String,
    /// The seal, in hex.
    pub seal: String,
}

/// One end's seals on one connection.
#[derive(Clone)]
pub struct Seals {
    /// Without one nothing is sealed, and no seal is right.
    key: Option<Vec<u8>>,
    me: EndRole,
    said: u64,
    heard: u64,
}

impl std::fmt::Debug for Seals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seals").field("me", &self.me).finish_non_exhaustive()
    }
}

impl Seals {
    /// For the connection of these nonces.
    pub fn new(secret: &Secret, me: EndRole, server_nonce: &str, client_nonce: &str) -> Self {
        Self { key: secret.seal_key(server_nonce, client_nonce), me, said: 0, heard: 0 }
    }

    fn mac(&self, who: EndRole, number: u64, body: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.as_deref()?).ok()?;
        let who: &[u8] = match who {
            EndRole::Server => b"server",
            EndRole::Client => b"client",
        };
        for part in [who, &number.to_be_bytes()[..], body.as_bytes()] {
            mac.update(part);
        }
        Some(mac)
    }

    /// Seals the next text of this end.
    pub fn seal(&mut self, body: String) -> Sealed {
        let mac = self.mac(self.me, self.said, &body);
        self.said += 1;
        let seal = mac.map(|m| hex(&m.finalize().into_bytes())).unwrap_or_default();
        Sealed { body, seal }
    }

    /// The text of the other end's next message; takes as long for any wrong seal.
    ///
    /// # Errors
    /// The seal is not that of the other end's next message on this connection.
    pub fn open<'a>(&mut self, sealed: &'a Sealed) -> Result<&'a str> {
        let other = if self.me == EndRole::Server { EndRole::Client } else { EndRole::Server };
        let real = match (self.mac(other, self.heard, &sealed.body), unhex(&sealed.seal)) {
            (Some(mac), Some(bytes)) => mac.verify_slice(&bytes).is_ok(),
            _ => false,
        };
        if !real {
            return Err(Error::Denied("a message whose seal is wrong".into()));
        }
        self.heard += 1;
        Ok(&sealed.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> (Seals, Seals) {
        let secret = Secret::new("correct horse").unwrap();
        let of = |who| Seals::new(&secret, who, "n1", "n2");
        (of(EndRole::Client), of(EndRole::Server))
    }

    #[test]
    fn each_message_is_taken_once_in_its_turn_and_direction() {
        let (mut client, mut server) = both();
        let (one, two) = (client.seal("one".into()), client.seal("two".into()));
        assert!(server.open(&two).is_err(), "out of its turn");
        assert_eq!(server.open(&one).unwrap(), "one");
        assert!(server.open(&one).is_err(), "said again");
        assert_eq!(server.open(&two).unwrap(), "two");
        let back = server.seal("yes".into());
        assert!(server.clone().open(&back).is_err(), "sent back");
        assert_eq!(client.open(&back).unwrap(), "yes");
    }

    #[test]
    fn a_changed_text_another_secret_and_another_connection_are_refused() {
        let (mut client, mut server) = both();
        let sealed = client.seal("plan".into());
        assert!(server.open(&Sealed { body: "Plan".into(), ..sealed.clone() }).is_err());
        for seal in ["", "zz", "00", "é"] {
            assert!(server.open(&Sealed { seal: seal.into(), ..sealed.clone() }).is_err());
        }
        let other = Secret::new("battery staple").unwrap();
        assert!(Seals::new(&other, EndRole::Server, "n1", "n2").open(&sealed).is_err());
        let same = Secret::new("correct horse").unwrap();
        assert!(Seals::new(&same, EndRole::Server, "n3", "n2").open(&sealed).is_err());
        assert!(server.open(&sealed).is_ok());
        assert!(!format!("{client:?}").contains("key"));
    }

    #[test]
    fn the_seal_is_hmac_sha256() {
        // k=$(printf 'netwright tune\0n1\0n2' | openssl dgst -sha256 -hmac 'correct horse' -r)
        // printf 'client\0\0\0\0\0\0\0\0one' | openssl dgst -sha256 -mac hmac -macopt hexkey:$k
        let (mut client, _) = both();
        assert_eq!(
            client.seal("one".into()).seal,
            "fcc41eedd3137c27ca8c739ac3e8d2412aca13eb744be5d6d60390e779dd324f"
        );
    }
}
