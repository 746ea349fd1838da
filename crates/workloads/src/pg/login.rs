//! The login, from a connected socket to a session that takes queries. No I/O: bytes in, bytes out.

use bytes::BytesMut;
use postgres_protocol::{
    authentication::{
        md5_hash,
        sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256},
    },
    message::frontend,
};

use super::{
    security::Binding,
    wire::{self, ServerError},
};

/// More hash rounds than this are an attack on the client, not a password check.
const MOST_ROUNDS: u64 = 10_000_000;

/// Credentials for one server.
#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: Option<String>,
    /// The startup message, as it is sent.
    pub startup: Vec<u8>,
    /// Whether to use SCRAM channel binding.
    pub binding: Binding,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why the login failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    Server(ServerError),
    /// The server requires a password, and there is none.
    NoPassword,
    /// The server requires an unsupported method.
    Unsupported(String),
    /// The server does not support the required channel binding.
    Unbound,
    /// The server's message is invalid, or does not prove that it knows the password.
    Nonsense(&'static str),
}

/// Progress of the login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More server messages are needed.
    More,
    Ready,
}

#[derive(Default)]
pub struct Login {
    /// Over TLS: the channel binding data, if there is any.
    tls: Option<Option<Vec<u8>>>,
    bound: bool,
    /// Whether the password was sent, or its proof begun: the server may ask only once.
    asked: bool,
    scram: Option<ScramSha256>,
    /// Whether the server has proved that it knows the password.
    proved: bool,
    /// The parameter `server_version`, if the server reported it.
    pub version: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

impl Login {
    /// A login over TLS with its channel binding data.
    pub fn over_tls(end_point: Option<Vec<u8>>) -> Self {
        Self { tls: Some(end_point), ..Self::default() }
    }

    /// Chooses the SASL mechanism from the server's offer, and its channel binding flag.
    fn mechanism(
        &mut self,
        offered: &[&[u8]],
        binding: Binding,
    ) -> Result<(&'static str, ChannelBinding), Refused> {
        let offers = |name: &str| offered.contains(&name.as_bytes());
        let end_point = self.tls.clone().flatten().filter(|_| binding != Binding::Disable);
        if let (Some(end_point), true) = (&end_point, offers(SCRAM_SHA_256_PLUS)) {
            self.bound = true;
            let binding = ChannelBinding::tls_server_end_point(end_point.clone());
            return Ok((SCRAM_SHA_256_PLUS, binding));
        }
        match offers(SCRAM_SHA_256) {
            _ if binding == Binding::Require => Err(Refused::Unbound),
            false => Err(Refused::Unsupported("SASL without SCRAM-SHA-256".into())),
            // Tells the server that an attacker in between has removed its offer.
            true if end_point.is_some() => Ok((SCRAM_SHA_256, ChannelBinding::unrequested())),
            true => Ok((SCRAM_SHA_256, ChannelBinding::unsupported())),
        }
    }

    /// Takes a server message and writes the answer.
    ///
    /// # Errors
    /// The login failed.
    pub fn take(
        &mut self,
        kind: u8,
        body: &[u8],
        who: &Credentials,
        out: &mut BytesMut,
    ) -> Result<Step, Refused> {
        match kind {
            b'R' => self.authentication(body, who, out)?,
            b'E' => return Err(Refused::Server(ServerError::read(body))),
            b'S' => {
                let mut rest = body;
                if wire::text(&mut rest) == Some(b"server_version") {
                    let text = wire::text(&mut rest).unwrap_or_default();
                    let text = String::from_utf8_lossy(text).into_owned();
                    self.version = Some(text.chars().filter(|c| !c.is_control()).collect());
                }
            }
            b'Z' if self.scram.is_some() && !self.proved => {
                return Err(Refused::Nonsense("the server did not prove that it is the right one"));
            }
            b'Z' if who.binding == Binding::Require && !self.bound => {
                return Err(Refused::Unbound);
            }
            b'Z' => return Ok(Step::Ready),
            b'K' | b'N' | b'v' => {}
            _ => return Err(Refused::Nonsense("the server's answer to the login makes no sense")),
        }
        Ok(Step::More)
    }

    fn authentication(
        &mut self,
        mut body: &[u8],
        who: &Credentials,
        out: &mut BytesMut,
    ) -> Result<(), Refused> {
        let password = || who.password.as_deref().ok_or(Refused::NoPassword);
        let method = wire::long(&mut body);
        if let Some(3 | 5 | 10) = method
            && std::mem::replace(&mut self.asked, true)
        {
            return Err(Refused::Nonsense("the server asks for a password twice"));
        }
        match method {
            // Sends no password to a server that may be the wrong one.
            Some(0 | 3 | 5) if who.binding == Binding::Require && !self.bound => {
                Err(Refused::Unbound)
            }
            Some(0) => Ok(()),
            Some(3) => write(frontend::password_message(password()?.as_bytes(), out)),
            Some(5) => {
                let salt = body.first_chunk::<4>().ok_or(NONSENSE)?;
                let hash = md5_hash(who.user.as_bytes(), password()?.as_bytes(), *salt);
                write(frontend::password_message(hash.as_bytes(), out))
            }
            Some(10) => {
                let offered: Vec<&[u8]> = std::iter::from_fn(|| wire::text(&mut body)).collect();
                let (name, binding) = self.mechanism(&offered, who.binding)?;
                let scram = ScramSha256::new(password()?.as_bytes(), binding);
                write(frontend::sasl_initial_response(name, scram.message(), out))?;
                self.scram = Some(scram);
                Ok(())
            }
            Some(11) => {
                let scram = self.scram.as_mut().ok_or(NONSENSE)?;
                if rounds(body).is_none_or(|n| n > MOST_ROUNDS) {
                    return Err(Refused::Nonsense("the server asks for absurdly many hashes"));
                }
                scram.update(body).map_err(|_| NONSENSE)?;
                write(frontend::sasl_response(scram.message(), out))
            }
            Some(12) => {
                let scram = self.scram.as_mut().ok_or(NONSENSE)?;
                scram.finish(body).map_err(|_| {
                    Refused::Nonsense("the server does not know the password: is it the right one?")
                })?;
                self.proved = true;
                Ok(())
            }
            Some(7..=9) => Err(Refused::Unsupported("Kerberos (GSSAPI, SSPI)".into())),
            Some(n) => Err(Refused::Unsupported(format!("authentication method {n}"))),
            None => Err(NONSENSE),
        }
    }
}

const NONSENSE: Refused = Refused::Nonsense("the server's request for a password makes no sense");

/// A value with a zero byte cannot be written.
fn write(done: std::io::Result<()>) -> Result<(), Refused> {
    done.map_err(|_| Refused::Unsupported("a zero byte in the password".into()))
}

/// The iteration count in `r=…,s=…,i=4096`.
pub fn rounds(first: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(first).ok()?;
    text.split(',').find_map(|part| part.strip_prefix("i="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(password: Option<&str>) -> Credentials {
        Credentials {
            user: "u".into(),
            password: password.map(str::to_owned),
            startup: vec![],
            binding: Binding::Prefer,
        }
    }

    #[test]
    fn md5_is_answered_as_the_protocol_says() {
        let (mut login, mut out) = (Login::default(), BytesMut::new());
        let step = login.take(b'R', b"\0\0\0\x05abcd", &who(Some("p")), &mut out);
        assert_eq!(step, Ok(Step::More));
        // concat('md5', md5(concat(md5(concat('p', 'u')), 'abcd')))
        assert_eq!(&out[5..], b"md5fa55bd30a96b8d5bd8215eee7c50a918\0");
        assert_eq!(login.take(b'Z', b"I", &who(None), &mut out), Ok(Step::Ready));
    }

    #[test]
    fn a_server_that_cannot_be_trusted_is_refused() {
        let mut out = BytesMut::new();
        let mut begin = || {
            let mut login = Login::default();
            login
                .take(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0", &who(Some("p")), &mut out)
                .expect("it is offered");
            (login, BytesMut::new())
        };
        // The server accepts without any proof.
        let (mut login, mut out) = begin();
        assert!(login.take(b'R', b"\0\0\0\0", &who(Some("p")), &mut out).is_ok());
        assert!(matches!(login.take(b'Z', b"I", &who(None), &mut out), Err(Refused::Nonsense(_))));
        // A billion hash rounds.
        let (mut login, mut out) = begin();
        let first = b"\0\0\0\x0br=x,s=eA==,i=1000000000";
        assert!(login.take(b'R', first, &who(Some("p")), &mut out).is_err());
        for (body, password) in [
            (&b"\0\0\0\x05ab"[..], Some("p")),
            (b"\0\0\0\x05abcd", None),
            (b"\0\0\0\x07", Some("p")),
            (b"\0\0\0\x0aOTHER\0\0", Some("p")),
            (b"\0\0", Some("p")),
            (b"\0\0\0\x0cv=x", Some("p")),
        ] {
            let answer = Login::default().take(b'R', body, &who(password), &mut BytesMut::new());
            assert!(answer.is_err(), "{body:?}");
        }
    }

    #[test]
    fn a_login_is_tied_to_tls_where_both_ends_can() {
        let begin = |tls: Option<Option<Vec<u8>>>, offer: &[u8], binding| {
            let mut login = Login { tls, ..Login::default() };
            let (who, mut out) = (Credentials { binding, ..who(Some("p")) }, BytesMut::new());
            login.take(b'R', &[b"\0\0\0\x0a", offer].concat(), &who, &mut out)?;
            Ok(String::from_utf8_lossy(&out[5..]).into_owned())
        };
        let both = &b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"[..];
        let (hash, alone) = (Some(Some(vec![1; 32])), &b"SCRAM-SHA-256\0\0"[..]);
        for (tls, offer, binding, says) in [
            (hash.clone(), both, Binding::Prefer, Some("p=tls-server-end-point,,")),
            (hash.clone(), both, Binding::Require, Some("p=tls-server-end-point,,")),
            (hash.clone(), both, Binding::Disable, Some("n,,")),
            (hash.clone(), alone, Binding::Prefer, Some("y,,")),
            (hash, alone, Binding::Require, None),
            (None, alone, Binding::Prefer, Some("n,,")),
            (Some(None), both, Binding::Prefer, Some("n,,")),
            (Some(None), both, Binding::Require, None),
        ] {
            let said: Result<String, Refused> = begin(tls, offer, binding);
            match says {
                Some(says) => assert!(said.as_ref().is_ok_and(|s| s.contains(says)), "{said:?}"),
                None => assert_eq!(said, Err(Refused::Unbound)),
            }
        }
        // A server that requires nothing, or the plain password.
        for body in [&b"\0\0\0\0"[..], b"\0\0\0\x03"] {
            let who = Credentials { binding: Binding::Require, ..who(Some("p")) };
            let answer = Login::over_tls(None).take(b'R', body, &who, &mut BytesMut::new());
            assert_eq!(answer, Err(Refused::Unbound));
        }
    }
}
