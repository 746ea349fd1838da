//! One GET whose body is kept: asks an HTTP API, within limits on time and size.

use std::{io, sync::atomic::AtomicBool, time::Duration};

use model::measure::{Common, PeerProgram, TlsSpec};
use traffic::{
    Error, Result,
    engine::{
        deadline::Deadline,
        link::{Link, Rooms},
        reach::{reach, tls_of},
    },
    net::tls::{conn::Received, fault::Fault},
};

use super::{
    response::{Fed, Parser},
    url::Url,
};

/// Bytes of one read.
const ROOM: usize = 64 << 10;

/// What to get, and its limits.
#[derive(Debug)]
pub struct Fetch<'a> {
    pub url: &'a Url,
    /// Value of the header `Authorization`: one line.
    pub authorization: Option<&'a str>,
    /// How an `https` server is trusted.
    pub tls: &'a TlsSpec,
    /// A larger body is refused; bytes.
    pub most: usize,
    /// Longest time from the request to the end of the response; connecting has limits of its own.
    pub within: Duration,
}

/// A response of any status, which the server sent to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Status code, such as 200.
    pub status: u16,
    pub body: Vec<u8>,
}

/// Gets a URL by HTTP/1.1 on a connection of its own; redirects are not followed.
///
/// # Errors
/// [`Error::Environment`]: nobody answers, TLS fails, the response is late, larger than the limit or no
/// HTTP/1.
pub fn fetch(asked: &Fetch<'_>) -> Result<Fetched> {
    let stop = AtomicBool::new(false);
    let server = asked.url.server();
    let tls = match asked.url.tls {
        true => Some(tls_of(asked.tls, &server, Some("http/1.1"))?),
        false => None,
    };
    let common = Common::plain(asked.url.origin(), PeerProgram::Server);
    let (_, mut link) = reach(&common, &server, tls.as_ref(), &stop)?;
    let deadline = Deadline::after(asked.within, &stop);
    let failed = |why: Fault| failure(&asked.url.origin(), why, &deadline);
    link.send_within(request(asked).as_bytes(), &deadline).map_err(failed)?;
    receive(asked, &mut link, &deadline)
}

fn request(asked: &Fetch<'_>) -> String {
    let login = asked.authorization.map(|a| format!("Authorization: {a}\r\n")).unwrap_or_default();
    format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: application/json\r\n{login}\
         Connection: close\r\n\r\n",
        asked.url.path,
        asked.url.authority(),
        traffic::PROGRAM.replace(' ', "/")
    )
}

fn receive(asked: &Fetch<'_>, link: &mut Link, deadline: &Deadline<'_>) -> Result<Fetched> {
    let name = asked.url.origin();
    let wrong = |why: &str| Err(Error::Environment(format!("{name}: {why}; does it speak HTTP?")));
    let mut rooms = Rooms::new(ROOM, asked.url.tls);
    let mut response = Response { parser: Parser::new(false), body: vec![], most: asked.most };
    loop {
        // Also a server that sends a byte now and then is late.
        if let Err(e) = deadline.left() {
            return Err(failure(&name, Fault::Io(e), deadline));
        }
        match link.receive(&mut rooms) {
            Ok((Received::Bytes { .. }, bytes)) => match response.take(bytes) {
                Ok(None) => {}
                Ok(Some(fetched)) => return Ok(fetched),
                Err(Refused::Large) => {
                    return Err(Error::Environment(format!(
                        "{name}: a response of more than {} MiB",
                        asked.most >> 20
                    )));
                }
                Err(Refused::Invalid(why)) => return wrong(why),
            },
            Ok((Received::End { clean }, _)) => match response.parser.end().filter(|_| clean) {
                Some(answer) => {
                    return Ok(Fetched { status: answer.status, body: response.body });
                }
                None => return wrong("the connection ended before the response did"),
            },
            Err(Fault::Io(e)) if e.kind() == io::ErrorKind::WouldBlock => {
                let ready = deadline.ready(link.fd(), libc::POLLIN);
                ready.map_err(|e| failure(&name, Fault::Io(e), deadline))?;
            }
            Err(why) => return Err(failure(&name, why, deadline)),
        }
    }
}

/// A response whose body is kept.
struct Response {
    parser: Parser,
    body: Vec<u8>,
    most: usize,
}

/// Why a response is not taken.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    Large,
    Invalid(&'static str),
}

impl Response {
    /// Takes bytes; returns the response when it is complete.
    fn take(&mut self, mut bytes: &[u8]) -> std::result::Result<Option<Fetched>, Refused> {
        while !bytes.is_empty() {
            let within = self.parser.is_in_body();
            let (n, fed) = self.parser.feed_part(bytes);
            let (part, rest) = bytes.split_at(n.min(bytes.len()));
            bytes = rest;
            if within {
                if self.body.len() + part.len() > self.most {
                    return Err(Refused::Large);
                }
                self.body.extend_from_slice(part);
            }
            match fed {
                Fed::More => {}
                Fed::Bad(why) => return Err(Refused::Invalid(why)),
                Fed::Whole(answer) => {
                    let body = std::mem::take(&mut self.body);
                    return Ok(Some(Fetched { status: answer.status, body }));
                }
            }
        }
        Ok(None)
    }
}

fn failure(name: &str, why: Fault, deadline: &Deadline<'_>) -> Error {
    match why {
        Fault::Io(e) if Deadline::is_late(&e) => Error::Environment(format!(
            "{name}: the response was not complete within {}",
            deadline.limit()
        )),
        Fault::Io(e) => Error::io(name.to_owned(), &e),
        Fault::Tls(why) => Error::Environment(format!("{name}: TLS: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8], pieces: usize) -> std::result::Result<Option<Fetched>, Refused> {
        let mut response = Response { parser: Parser::new(false), body: vec![], most: 20 };
        for piece in bytes.chunks(pieces) {
            if let Some(fetched) = response.take(piece)? {
                return Ok(Some(fetched));
            }
        }
        let end = response.parser.end();
        Ok(end.map(|answer| Fetched { status: answer.status, body: response.body }))
    }

    #[test]
    fn the_body_is_kept_whatever_its_framing_and_its_pieces() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6;x=y\r\nhello \r\n5\r\nworld\r\n0\r\nA: b\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\nhello world",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
        ] {
            for pieces in [1, 2, 7, 500] {
                let fetched = whole(text.as_bytes(), pieces).unwrap().unwrap();
                assert_eq!(fetched.body, b"hello world", "{text} by {pieces}");
                assert_eq!(fetched.status, 200);
            }
        }
        let empty = whole(b"HTTP/1.1 204 No Content\r\n\r\n", 3).unwrap().unwrap();
        assert_eq!((empty.status, empty.body.len()), (204, 0));
    }

    #[test]
    fn a_body_beyond_the_limit_and_another_protocol_are_refused() {
        let long = "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n123456789012345678901";
        assert_eq!(whole(long.as_bytes(), 500), Err(Refused::Large));
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n15\r\n123456789012345678901\r\n";
        assert_eq!(whole(chunked.as_bytes(), 1), Err(Refused::Large));
        assert!(matches!(whole(b"SSH-2.0-x\r\n", 500), Err(Refused::Invalid(_))));
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello world";
        assert_eq!(whole(cut.as_bytes(), 500), Ok(None));
    }
}
