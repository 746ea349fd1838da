//! `http://HOST[:PORT]/PATH` and `https://…`.

use std::str::FromStr;

use crate::{Error, Result, Target};

/// An address of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether TLS is spoken: `https`.
    pub tls: bool,
    /// A name or address, an IPv6 address without its brackets.
    pub host: String,
    /// 80 where none is named, with TLS 443.
    pub port: u16,
    /// What follows, from the first `/` or `?` on, without a fragment.
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
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("only http and https are spoken")),
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
        // Where a port begins could not be told.
        if !authority.starts_with('[') && authority.matches(':').count() > 1 {
            return Err(wrong("an IPv6 address stands in brackets, http://[::1]:80/"));
        }
        let (host, port) = match authority.parse::<Target>() {
            Ok(Target::Host(host, port)) => (host, port.unwrap_or(usual(tls))),
            Ok(Target::Unix(_)) => return Err(wrong("the host is missing")),
            Err(Error::Usage(why)) => return Err(Error::Usage(format!("{text}: {why}"))),
            Err(e) => return Err(e),
        };
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        };
        Ok(Self { tls, host, port, path })
    }
}

fn usual(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

impl Url {
    /// Whether another names the same server, spoken to in the same way.
    pub fn same_server(&self, other: &Self) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }

    /// `https://host:8443`: the server, for people.
    pub fn origin(&self) -> String {
        format!("http{}://{}", if self.tls { "s" } else { "" }, self.authority())
    }

    /// `host`, `host:8080`, `[::1]`: as a Host header and for people.
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
    use super::*;

    #[test]
    fn urls() {
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
    fn what_is_no_url_is_refused_with_what_to_write() {
        for (text, says) in [
            ("db1/x", "write http://db1/x"),
            ("ftp://a/", "only http and https"),
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
