//! Parses and resolves a measurement's target.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    path::PathBuf,
    str::FromStr,
};

use crate::{Error, Result};

/// TCP port on which `netwright serve` takes control connections by default.
pub const PORT: u16 = 7471;

/// A target as the user gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A name or address, and a port if given.
    Host(String, Option<u16>),
    /// `unix:PATH`; the path of the server's Unix socket.
    Unix(PathBuf),
}

impl FromStr for Target {
    type Err = Error;

    /// `HOST`, `HOST:PORT`, `::1`, `[::1]:PORT`, `unix:PATH`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::Usage(format!(
                "{text:?} is no target: {why}; write HOST, HOST:PORT, [::1]:PORT or unix:PATH"
            ))
        };
        let port = |p: &str| match p.parse::<u16>() {
            Ok(n) if n > 0 => Ok(Some(n)),
            _ => Err(wrong("a port is a number from 1 to 65535")),
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err(wrong("the path is missing")),
                path => Ok(Self::Unix(path.into())),
            };
        }
        if text.is_empty() || text.contains(['/', ' ', '\0']) {
            return Err(wrong("that is no host name"));
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or_else(|| wrong("] is missing"))?;
            return match rest.strip_prefix(':') {
                Some(p) => Ok(Self::Host(host.into(), port(p)?)),
                None if rest.is_empty() => Ok(Self::Host(host.into(), None)),
                None => Err(wrong("after ] comes a port")),
            };
        }
        match text.split_once(':') {
            Some((host, p)) if !p.contains(':') => match host {
                "" => Err(wrong("the host is missing")),
                host => Ok(Self::Host(host.into(), port(p)?)),
            },
            _ => match port_without_brackets(text) {
                Some((host, p)) => Err(Error::Usage(format!(
                    "{text:?} can be an address or one with a port; write [{host}]:{p} for the \
                     port, [{text}] for the address"
                ))),
                None => Ok(Self::Host(text.into(), None)),
            },
        }
    }
}

/// Splits `::1:7471` into `::1` and `7471`. The text is also a valid IPv6 address, but more likely
/// means a port. An address with a full interface identifier (`fe80::a00:27ff:fe4e:1234`), or with
/// a last group that is no four-digit port, stays an address.
fn port_without_brackets(text: &str) -> Option<(&str, &str)> {
    let (host, p) = text.rsplit_once(':')?;
    let port: u16 = p.parse().ok().filter(|_| !p.starts_with(['0', '+']))?;
    host.parse::<Ipv6Addr>().ok()?;
    let identifier = text.split_once("::").is_some_and(|(_, low)| low.split(':').count() == 4);
    let is_address = text.parse::<Ipv6Addr>().is_ok() && (identifier || port < 1000);
    (!is_address).then_some((host, p))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host, None) => f.write_str(host),
            Self::Host(host, Some(port)) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Host(host, Some(port)) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The host's addresses of `family` (4 or 6; `None` for both), in the resolver's order.
///
/// # Errors
/// [`Error::Environment`]: the name does not resolve, or has no address of that family.
pub fn resolve(host: &str, port: u16, family: Option<u8>) -> Result<Vec<SocketAddr>> {
    // The resolver also handles a scope (`fe80::1%eth0`).
    let all = (host, port).to_socket_addrs().map_err(|e| {
        let text = e.to_string();
        let why = text.rsplit(": ").next().unwrap_or(&text);
        Error::Environment(format!("{host}: the name does not resolve ({why})"))
    })?;
    let fits = |a: &SocketAddr| match family {
        Some(4) => a.is_ipv4(),
        Some(6) => a.is_ipv6(),
        _ => true,
    };
    let all: Vec<_> = all.filter(fits).collect();
    match (all.is_empty(), family) {
        (false, _) => Ok(all),
        (true, Some(n)) => Err(Error::Environment(format!("{host} has no IPv{n} address"))),
        (true, None) => Err(Error::Environment(format!("{host} has no address"))),
    }
}

/// Parses a local address to bind to.
///
/// # Errors
/// [`Error::Usage`]: the text is not an address.
pub fn local_address(text: &str) -> Result<IpAddr> {
    text.parse().map_err(|_| {
        Error::Usage(format!("{text:?} is no local address; write an IPv4 or IPv6 address"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_host_with_a_port_or_a_socket() {
        let host = |h: &str, p| Target::Host(h.into(), p);
        for (text, target) in [
            ("db1", host("db1", None)),
            ("db1:80", host("db1", Some(80))),
            ("::1", host("::1", None)),
            ("[::1]", host("::1", None)),
            ("[fe80::1%eth0]:7", host("fe80::1%eth0", Some(7))),
            ("unix:/run/x", Target::Unix("/run/x".into())),
        ] {
            assert_eq!(text.parse::<Target>().unwrap(), target);
        }
        for wrong in ["", "a:0", "a:70000", "a:b", ":80", "[::1", "[::1]x", "unix:", "a/b", "a b"] {
            let e = wrong.parse::<Target>().unwrap_err();
            assert!(matches!(e, Error::Usage(_)), "{wrong}");
        }
    }

    #[test]
    fn a_port_behind_an_ipv6_address_wants_brackets() {
        for (text, meant) in [
            ("::1:7471", "[::1]:7471"),
            ("fe80::5:5201", "[fe80::5]:5201"),
            ("fe80::a00:27ff:fe4e:1234:7471", "[fe80::a00:27ff:fe4e:1234]:7471"),
            ("2001:db8:1:2:a00:27ff:fe4e:99:80", "[2001:db8:1:2:a00:27ff:fe4e:99]:80"),
            ("::1:19765", "[::1]:19765"),
        ] {
            let why = text.parse::<Target>().unwrap_err().to_string();
            assert!(why.contains(meant), "{why}");
            let bracketed = format!("[{text}]").parse::<Target>();
            assert_eq!(bracketed.unwrap(), Target::Host(text.into(), None));
        }
        for text in [
            "::1",
            "::",
            "fe80::a00:27ff:fe4e:1234",
            "2001:db8:1:2:a00:27ff:fe4e:9900",
            "2001:db8::53",
            "fd00::1:2",
            "::ffff:10.0.0.1",
            "fe80::1%eth0",
        ] {
            assert_eq!(text.parse::<Target>().unwrap(), Target::Host(text.into(), None));
        }
    }

    #[test]
    fn a_name_resolves_to_the_requested_family_alone() {
        assert_eq!(resolve("127.0.0.1", 5, Some(4)).unwrap().len(), 1);
        let e = resolve("127.0.0.1", 5, Some(6)).unwrap_err().to_string();
        assert_eq!(e, "127.0.0.1 has no IPv6 address");
        let e = resolve("no-such-host.invalid", 5, None).unwrap_err().to_string();
        assert!(e.starts_with("no-such-host.invalid: the name does not resolve ("), "{e}");
    }
}
