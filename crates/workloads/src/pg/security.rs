//! TLS options of a session, as libpq derives them from `sslmode` and related parameters.
//!
//! **Source**: PostgreSQL's documentation, "libpq", "SSL Support" and "Parameter Key Words".

use std::{collections::BTreeMap, fs, net::IpAddr, os::unix::fs::MetadataExt};

use model::Warning;
use rustls::pki_types::ServerName;
use traffic::{
    Error, Result,
    net::tls::{
        Tls, TlsRequest,
        fault::{Remedies, advice},
    },
};

use super::environment::Environment;

/// Advice for certificate errors.
const REMEDIES: Remedies = Remedies {
    trust: "sslrootcert=FILE",
    unchecked: "sslmode=require without a root certificate measures without checking",
    plain: "is it PostgreSQL?",
    own: "another client's certificate (sslcert)",
};

/// The `sslmode` values, from least to most secure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Whether SCRAM is bound to the TLS channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Binding {
    Disable,
    /// Bind if both ends can.
    #[default]
    Prefer,
    Require,
}

/// One way to open a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Try {
    Plain,
    /// TLS, or plain text if the server has no TLS.
    Either,
    Tls,
}

/// Source of the trusted certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Root {
    Anybody,
    System,
    File(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Security {
    pub mode: SslMode,
    pub binding: Binding,
    root: Root,
    own: Option<(String, String)>,
    no_sni: bool,
}

impl Security {
    /// Reads the parameters; adds notes to `warnings`.
    ///
    /// # Errors
    /// [`Error::Usage`] for values that libpq would refuse or that are unsupported here,
    /// [`Error::Environment`] for a missing file.
    pub fn of(
        all: &BTreeMap<&str, String>,
        environment: &Environment<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self> {
        let get = |key: &str| all.get(key).map(String::as_str);
        for (key, why) in [
            ("sslcrl", "revocation is not looked up"),
            ("sslcrldir", "revocation is not looked up"),
            ("sslpassword", "a key with a password cannot be read; give one without"),
            ("ssl_min_protocol_version", "TLS 1.2 and 1.3 are supported"),
            ("ssl_max_protocol_version", "TLS 1.2 and 1.3 are supported"),
            ("requirepeer", "who serves a Unix socket is not looked up"),
        ] {
            let harmless = key == "ssl_min_protocol_version" && get(key) == Some("TLSv1.2");
            if get(key).is_some() && !harmless {
                return Err(Error::Usage(format!("{key}: {why}; leave it out")));
            }
        }
        if get("sslnegotiation").is_some_and(|n| n != "postgres") {
            return Err(Error::Usage(
                "sslnegotiation: only postgres is supported; servers before 17 know no other"
                    .into(),
            ));
        }
        let home = |name: &str| {
            let path = environment.home()?.join(".postgresql").join(name);
            path.exists().then(|| path.to_string_lossy().into_owned())
        };
        let named_root = get("sslrootcert");
        let mode = mode(get("sslmode"), named_root == Some("system"))?;
        let root = match named_root {
            Some("system") => Root::System,
            // As libpq: a missing root file is ignored if the mode does not verify.
            Some(file) if mode < SslMode::VerifyCa && fs::metadata(file).is_err() => {
                if mode > SslMode::Disable {
                    warnings.push(Warning::NoRootCertificate { file: file.to_owned() });
                }
                Root::Anybody
            }
            Some(file) => Root::File(file.to_owned()),
            None => home("root.crt").map_or(Root::Anybody, Root::File),
        };
        if mode >= SslMode::VerifyCa && root == Root::Anybody {
            return Err(Error::Environment(
                "sslmode=verify-ca and verify-full need the authority's certificate: \
                 ~/.postgresql/root.crt, or sslrootcert=FILE"
                    .into(),
            ));
        }
        let binding = match get("channel_binding") {
            None | Some("prefer") => Binding::Prefer,
            Some("disable") => Binding::Disable,
            Some("require") => Binding::Require,
            Some(other) => {
                return Err(Error::Usage(format!(
                    "channel_binding={other}: write disable, prefer or require"
                )));
            }
        };
        Ok(Self {
            mode,
            binding,
            root,
            own: if mode == SslMode::Disable { None } else { own(all, home)? },
            no_sni: get("sslsni") == Some("0"),
        })
    }

    /// The ways to try, in order; over a Unix socket there is no TLS.
    pub fn tries(&self, unix: bool) -> &'static [Try] {
        match self.mode {
            _ if unix => &[Try::Plain],
            SslMode::Disable => &[Try::Plain],
            SslMode::Allow => &[Try::Plain, Try::Tls],
            SslMode::Prefer => &[Try::Either, Try::Plain],
            _ => &[Try::Tls],
        }
    }

    /// TLS for a server of this name at `ip`. If any name is accepted, `ip` replaces a name that no
    /// certificate can contain (`fe80::1%eth0`).
    ///
    /// # Errors
    /// As [`Tls::new`].
    pub fn tls(&self, name: &str, ip: Option<IpAddr>) -> Result<Tls> {
        let any_name = self.mode != SslMode::VerifyFull;
        let address = ip.filter(|_| any_name && ServerName::try_from(name).is_err());
        let address = address.map(|ip| ip.to_string());
        let asked = TlsRequest {
            ca: if let Root::File(path) = &self.root { Some(path) } else { None },
            insecure: self.root == Root::Anybody,
            any_name,
            no_sni: self.no_sni,
            own: self.own.as_ref().map(|(c, k)| (c.as_str(), k.as_str())),
            ..TlsRequest::default()
        };
        Tls::new(address.as_deref().unwrap_or(name), &asked)
    }

    /// Whether certificates are verified.
    pub fn verifies(&self) -> bool {
        self.root != Root::Anybody
    }
}

/// A server's TLS error with advice.
pub fn reported(server: &str, why: &rustls::Error) -> Error {
    Error::Environment(advice(server, why, &REMEDIES))
}

fn mode(asked: Option<&str>, system: bool) -> Result<SslMode> {
    let mode = match asked {
        None if system => SslMode::VerifyFull,
        None | Some("prefer") => SslMode::Prefer,
        Some("disable") => SslMode::Disable,
        Some("allow") => SslMode::Allow,
        Some("require") => SslMode::Require,
        Some("verify-ca") => SslMode::VerifyCa,
        Some("verify-full") => SslMode::VerifyFull,
        Some(other) => {
            return Err(Error::Usage(format!(
                "sslmode={other}: write disable, allow, prefer, require, verify-ca or verify-full"
            )));
        }
    };
    match system && mode != SslMode::VerifyFull {
        true => Err(Error::Usage(
            "sslrootcert=system: anybody can have a certificate of the system's authorities; \
             write sslmode=verify-full"
                .into(),
        )),
        false => Ok(mode),
    }
}

/// The client certificate and its key: named ones, or those in libpq's default place.
fn own(
    all: &BTreeMap<&str, String>,
    home: impl Fn(&str) -> Option<String>,
) -> Result<Option<(String, String)>> {
    let found = |key: &str, name: &str| all.get(key).cloned().or_else(|| home(name));
    let Some(certificate) = found("sslcert", "postgresql.crt") else { return Ok(None) };
    let Some(key) = found("sslkey", "postgresql.key") else {
        return Err(Error::Environment(format!(
            "{certificate} has no key: name it by sslkey=FILE, or leave out sslcert"
        )));
    };
    let about =
        fs::metadata(&key).map_err(|e| Error::io(format!("cannot read the key {key}"), &e))?;
    // As libpq: root's key may be readable by its group.
    let readable = if about.uid() == 0 { 0o037 } else { 0o077 };
    if about.is_file() && about.mode() & readable != 0 {
        return Err(Error::Denied(format!("the key {key} may be read by others; chmod 600 it")));
    }
    Ok(Some((certificate, key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[(&'static str, &str)]) -> Result<Security> {
        let all = all.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        Security::of(&all, &Environment { variable: &|_| None, who: &|_| None }, &mut vec![])
    }

    #[test]
    fn what_is_tried_is_what_libpq_tries() {
        for (mode, tries) in [
            ("disable", &[Try::Plain][..]),
            ("allow", &[Try::Plain, Try::Tls]),
            ("prefer", &[Try::Either, Try::Plain]),
            ("require", &[Try::Tls]),
        ] {
            let security = of(&[("sslmode", mode)]).expect(mode);
            assert_eq!(security.tries(false), tries, "{mode}");
            assert_eq!(security.tries(true), [Try::Plain], "{mode}");
            assert!(!security.verifies());
        }
        assert_eq!(of(&[]).expect("nothing").mode, SslMode::Prefer);
        let system = of(&[("sslrootcert", "system")]).expect("system");
        assert!(system.mode == SslMode::VerifyFull && system.verifies());
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (all, says) in [
            (&[("sslmode", "on")][..], "write disable"),
            (&[("sslmode", "verify-full")], "sslrootcert=FILE"),
            (&[("sslmode", "require"), ("sslrootcert", "system")], "verify-full"),
            (&[("channel_binding", "yes")], "write disable, prefer or require"),
            (&[("sslnegotiation", "direct")], "only postgres"),
            (&[("sslcrl", "/x")], "revocation"),
            (&[("sslcert", "/nonexistent/c")], "sslkey=FILE"),
            (&[("sslcert", "/nonexistent/c"), ("sslkey", "/nonexistent/k")], "cannot read"),
        ] {
            match of(all) {
                Err(Error::Usage(why) | Error::Environment(why)) => {
                    assert!(why.contains(says), "{all:?}: {why}");
                }
                other => panic!("{all:?}: {other:?}"),
            }
        }
    }
}
