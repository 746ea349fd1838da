//! TLS errors: a short name for counting, and a line with advice.

use std::io;

use rustls::{CertificateError, Error as Why, InvalidMessage};

/// Why a connection failed.
#[derive(Debug)]
pub enum Fault {
    /// The kernel's error, or the other end closed.
    Io(io::Error),
    Tls(Why),
}

impl Fault {
    /// Whether only no data is available now.
    pub fn is_would_block(&self) -> bool {
        matches!(self, Self::Io(e) if e.kind() == io::ErrorKind::WouldBlock)
    }
}

/// A short name, the same for every occurrence.
pub fn named(why: &Why) -> &'static str {
    use CertificateError as C;
    match why {
        Why::InvalidCertificate(c) => match c {
            C::Expired | C::ExpiredContext { .. } => "TLS: the certificate has expired",
            C::NotValidYet | C::NotValidYetContext { .. } => {
                "TLS: the certificate is not valid yet"
            }
            C::NotValidForName | C::NotValidForNameContext { .. } => {
                "TLS: the certificate is another's"
            }
            C::UnknownIssuer | C::Other(_) => "TLS: the certificate is not trusted",
            _ => "TLS: the certificate is wrong",
        },
        Why::InvalidMessage(_) => "TLS: the answer is not TLS",
        Why::AlertReceived(_) => "TLS: the server ended it with an alert",
        Why::PeerIncompatible(_) => "TLS: no version or cipher in common",
        Why::DecryptError => "TLS: a record was tampered with",
        _ => "TLS: the server violates the protocol",
    }
}

/// Advice texts of the command that uses TLS.
#[derive(Debug, Clone, Copy)]
pub struct Remedies {
    /// The option that names a trusted file: `--ca FILE`.
    pub trust: &'static str,
    /// Sentence on how to skip the check.
    pub unchecked: &'static str,
    /// Hint if the answer is not TLS.
    pub plain: &'static str,
    /// Hint on the client certificate.
    pub own: &'static str,
}

/// One line with a server's TLS error and advice.
pub fn advice(server: &str, why: &Why, remedies: &Remedies) -> String {
    use CertificateError as C;
    let Remedies { trust, unchecked, plain, own } = remedies;
    match why {
        Why::InvalidCertificate(c) => match c {
            C::UnknownIssuer => format!(
                "{server}: the issuer of its certificate is not trusted; name the authority's \
                 certificate by {trust}, or {unchecked}"
            ),
            C::Other(e) if format!("{e:?}").contains("CaUsedAsEndEntity") => format!(
                "{server}: its certificate is self-signed; trust it by {trust}, or {unchecked}"
            ),
            C::Expired => format!("{server}: its certificate has expired; {unchecked}"),
            C::ExpiredContext { time, not_after } => format!(
                "{server}: its certificate has expired, {} ago; renew it, or {unchecked}",
                span(time.as_secs(), not_after.as_secs())
            ),
            C::NotValidYet => {
                format!("{server}: its certificate is not valid yet; is a clock wrong?")
            }
            C::NotValidYetContext { time, not_before } => format!(
                "{server}: its certificate is not valid for another {}; is a clock wrong? \
                 {unchecked}",
                span(not_before.as_secs(), time.as_secs())
            ),
            C::NotValidForName => format!(
                "{server}: its certificate is not for this name; use a name that it has, or \
                 {unchecked}"
            ),
            C::NotValidForNameContext { presented, .. } => format!(
                "{server}: its certificate is for {}; use such a name, or {unchecked}",
                names(presented)
            ),
            c => format!("{server}: its certificate is wrong: {c}; {unchecked}"),
        },
        Why::InvalidMessage(InvalidMessage::InvalidContentType) | Why::InvalidMessage(_) => {
            format!("{server}: the answer is not TLS; {plain}")
        }
        Why::AlertReceived(alert) => format!(
            "{server}: it ended the TLS handshake: {}; does it know this name, and want \
             {own}?",
            alert.as_str().unwrap_or("an unknown alert")
        ),
        Why::PeerIncompatible(e) => {
            format!(
                "{server}: no common TLS version or cipher; the client supports 1.2 and 1.3: \
                 {e:?}"
            )
        }
        e => format!("{server}: TLS: {e}"),
    }
}

/// At most four names: a certificate may hold hundreds, of any length.
fn names(presented: &[String]) -> String {
    // `DnsName("a.example")`, `IpAddress(…)`.
    let inner =
        |n: &str| Some(n.split_once('(')?.1.strip_suffix(')')?.trim_matches('"').to_owned());
    let clean = |n: &String| {
        let name = inner(n).unwrap_or_else(|| n.clone());
        name.chars().filter(|c| c.is_ascii_graphic()).take(80).collect()
    };
    let some: Vec<String> = presented.iter().take(4).map(clean).collect();
    match presented.len().saturating_sub(some.len()) {
        0 if some.is_empty() => "no name at all".into(),
        0 => some.join(", "),
        more => format!("{} and {more} more", some.join(", ")),
    }
}

fn span(later_s: u64, earlier_s: u64) -> String {
    match later_s.saturating_sub(earlier_s) {
        s @ 0..172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_of_a_hundred_names_is_one_short_line() {
        let presented: Vec<String> =
            (0..100).map(|n| format!("{}\n{n}", "x".repeat(200))).collect();
        let text = names(&presented);
        assert!(text.len() < 400 && text.ends_with("and 96 more") && !text.contains('\n'));
        assert_eq!(names(&[]), "no name at all");
        let two = ["DnsName(\"a.b\")".to_owned(), "IpAddress(::1)".to_owned()];
        assert_eq!(names(&two), "a.b, ::1");
    }

    #[test]
    fn a_span_is_in_hours_or_in_days() {
        assert_eq!((span(7200, 0).as_str(), span(864_000, 0).as_str()), ("2 h", "10 days"));
        assert_eq!(span(0, 5), "0 h");
    }
}
