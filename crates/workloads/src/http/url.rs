//! `http://HOST[:PORT]/PATH`, `https://…` and `http+unix://SOCKET/PATH`.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf, str::FromStr};

use traffic::{
    Error, Result, Target,
    engine::reach::{Server, name_of},
};

/// A URL of an HTTP server, in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether the scheme is `https`.
    pub tls: bool,
    /// The Unix socket to connect to: `http+unix://%2Frun%2Fapp.sock/`. A `/` in its path is
    /// written `%2F`, as in other clients of that scheme.
    pub socket: Option<PathBuf>,
    /// Name or address, an IPv6 address without brackets; `localhost` for a Unix socket.
    pub host: String,
    /// Port; by default 80, with TLS 443.
    pub port: u16,
    /// Path and query, from the first `/` or `?` on, without a fragment.
    pub path: String,
}

impl FromStr for Url {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::Usage(format!("{text:?} is no URL: {why}; write http://HOST[:PORT]/PATH"))
        };
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Error::Usage(format!(
                "{text:?} is no URL: http:// is missing; write http://{}",
                text.trim_start_matches('/')
            )));
        };
        let (tls, unix) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (false, false),
            "https" => (true, false),
            "http+unix" => (false, true),
            _ => return Err(wrong("only http, https and http+unix are supported")),
        };
        if !rest.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(wrong("a space or a letter beyond ASCII must be written as %20 is"));
        }
        let (rest, _fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if authority.contains('@') {
            return Err(wrong("a user is given by --header 'Authorization: …'"));
        }
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        };
        if unix {
            let socket = Some(socket(authority).map_err(|why| unix_wrong(text, why))?);
            return Ok(Self { tls, socket, host: "localhost".into(), port: usual(tls), path });
        }
        // Otherwise the start of the port would be ambiguous.
        if !authority.starts_with('[') && authority.matches(':').count() > 1 {
            return Err(wrong("an IPv6 address stands in brackets, http://[::1]:80/"));
        }
        let (host, port) = match authority.parse::<Target>() {
            Ok(Target::Host(host, port)) => (host, port.unwrap_or(usual(tls))),
            Ok(Target::Unix(_)) => return Err(wrong("the host is missing")),
            Err(Error::Usage(why)) => return Err(Error::Usage(format!("{text}: {why}"))),
            Err(e) => return Err(e),
        };
        Ok(Self { tls, socket: None, host, port, path })
    }
}

fn unix_wrong(text: &str, why: &str) -> Error {
    Error::Usage(format!(
        "{text:?} is no URL: {why}; write http+unix://%2Frun%2Fapp.sock/PATH, where %2F is a / of \
         the socket's path"
    ))
}

/// A socket's path; `/` and other characters with a meaning in URLs are percent-encoded.
fn socket(authority: &str) -> Result<PathBuf, &'static str> {
    let path = unescaped(authority)?;
    if path.first() != Some(&b'/') {
        return Err("the socket's whole path stands where a host would");
    }
    // The kernel's limit, including the final zero.
    if path.contains(&0) || path.len() > 107 {
        return Err("a socket's path has at most 107 bytes, and no zero among them");
    }
    Ok(OsString::from_vec(path).into())
}

/// Decodes a percent-encoded part of a URL.
///
/// # Errors
/// The encoding error.
pub fn unescaped(part: &str) -> Result<Vec<u8>, &'static str> {
    let mut bytes = part.bytes();
    let mut all = vec![];
    while let Some(byte) = bytes.next() {
        all.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit(), digit());
                let both = high.zip(low).and_then(|(h, l)| u8::try_from(h * 16 + l).ok());
                both.ok_or("after % come two hexadecimal digits")?
            }
            byte => byte,
        });
    }
    Ok(all)
}

fn usual(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

impl Url {
    /// Whether another URL has the same server and transport.
    pub fn same_server(&self, other: &Self) -> bool {
        (self.tls, &self.socket, &self.host, self.port)
            == (other.tls, &other.socket, &other.host, other.port)
    }

    /// The server for messages: `https://host:8443`.
    pub fn origin(&self) -> String {
        match &self.socket {
            Some(path) => name_of(path),
            None => format!("http{}://{}", if self.tls { "s" } else { "" }, self.authority()),
        }
    }

    /// The server in the form that [`traffic::engine::reach`] connects to.
    pub fn server(&self) -> Server<'_> {
        Server {
            host: &self.host,
            port: self.port,
            socket: self.socket.as_deref(),
            name: self.authority(),
            plain: "is it a port without, for http://?",
        }
    }

    /// `host`, `host:8080` or `[::1]`, for the Host header and for messages.
    pub fn authority(&self) -> String {
        let port = (self.port != usual(self.tls)).then_some(self.port);
        match (port, self.host.contains(':')) {
            (None, true) => format!("[{}]", self.host),
            (port, _) => Target::Host(self.host.clone(), port).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_url_has_host_port_path_and_authority() {
        for (text, host, port, path, authority) in [
            ("http://a", "a", 80, "/", "a"),
            ("HTTP://a:80", "a", 80, "/", "a"),
            ("http://a:8080/x?y=1#z", "a", 8080, "/x?y=1", "a:8080"),
            ("http://a?y", "a", 80, "/?y", "a"),
            ("http://[::1]/x", "::1", 80, "/x", "[::1]"),
            ("http://[::1]:81", "::1", 81, "/", "[::1]:81"),
            ("http://a:443", "a", 443, "/", "a:443"),
            ("https://a", "a", 443, "/", "a"),
            ("HTTPS://a:80/x", "a", 80, "/x", "a:80"),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!((url.host.as_str(), url.port, url.path.as_str()), (host, port, path));
            assert_eq!(url.authority(), authority);
            assert_eq!(url.tls, text.to_ascii_lowercase().starts_with("https"));
        }
    }

    #[test]
    fn a_unix_url_has_its_socket_and_path() {
        let url: Url = "HTTP+unix://%2Frun%2fa%20b.sock/x?y#z".parse().unwrap();
        assert_eq!(url.socket.as_deref(), Some(Path::new("/run/a b.sock")));
        assert_eq!((url.authority().as_str(), url.path.as_str()), ("localhost", "/x?y"));
        assert_eq!(url.origin(), "unix:/run/a b.sock");
        let all =
            ["http+unix://%2Frun%2Fa.sock", "http+unix://%2Frun%2Fb.sock", "http://localhost"];
        let all = all.map(|u| u.parse::<Url>().unwrap());
        assert!(!all[0].same_server(&all[1]) && !all[0].same_server(&all[2]));
    }

    #[test]
    fn what_is_no_url_is_refused_with_what_to_write() {
        for (text, says) in [
            ("db1/x", "write http://db1/x"),
            ("ftp://a/", "only http, https and http+unix"),
            ("http+unix:///run/a.sock/x", "%2Frun%2Fapp.sock"),
            ("http+unix://a.sock/x", "whole path"),
            ("http+unix://%2Frun%2/x", "two hexadecimal"),
            ("http+unix://%2Frun%00a/x", "no zero"),
            ("http://u:p@a/", "Authorization"),
            ("http:///x", "no host name"),
            ("http://a:0/", "a port is"),
            ("http://a/b c", "%20"),
            ("http://a/\r\nX: y", "%20"),
            ("http://::1:80/", "brackets"),
        ] {
            match text.parse::<Url>() {
                Err(Error::Usage(why)) if says == "brackets" => assert!(why.contains("[::1]")),
                Err(Error::Usage(why)) => assert!(why.contains(says), "{text}: {why}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
