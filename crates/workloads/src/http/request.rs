//! Builds the bytes of each request, once.

use std::path::Path;

use model::measure::HttpSpec;
use traffic::{Error, Result};

use super::url::Url;

/// Largest request body in bytes; it is held in memory.
const MOST_BODY: usize = 64 << 20;

/// The requests and their server.
#[derive(Debug)]
pub struct Requests {
    /// The server; the path is the first URL's.
    pub server: Url,
    /// The complete request for each URL.
    pub bytes: Vec<Vec<u8>>,
    /// Whether requests are HEAD: responses then have no body, whatever their headers say.
    pub is_head: bool,
}

/// Builds the requests.
///
/// # Errors
/// [`Error::Usage`] for an invalid URL, method or header, or one that would break the framing.
pub fn of(spec: &HttpSpec) -> Result<Requests> {
    let usage = |why: String| Err(Error::Usage(why));
    let urls = spec.urls.iter().map(|u| u.parse()).collect::<Result<Vec<Url>>>()?;
    let Some(server) = urls.first().cloned() else { return usage("no URL is given".into()) };
    if let Some(other) = urls.iter().find(|u| !u.same_server(&server)) {
        return usage(format!(
            "the URLs name two servers, {} and {}; measure one at a time",
            server.origin(),
            other.origin()
        ));
    }
    if spec.method.is_empty() || !spec.method.bytes().all(is_token) {
        return usage(format!("{:?} is no method; write GET, POST, …", spec.method));
    }
    if spec.method == "CONNECT" {
        return usage("CONNECT makes a tunnel, which is no request to measure".into());
    }
    let own = spec.headers.iter().map(|h| header(h)).collect::<Result<Vec<_>>>()?;
    let body = body(spec)?;
    let bytes = urls.iter().map(|url| one(spec, url, &own, body.as_deref())).collect();
    Ok(Requests { server, bytes, is_head: spec.method == "HEAD" })
}

fn body(spec: &HttpSpec) -> Result<Option<Vec<u8>>> {
    let body = match (&spec.body, &spec.body_file) {
        (Some(_), Some(_)) => {
            return Err(Error::Usage("a body and a file of one are given".into()));
        }
        (Some(text), None) => Some(text.clone().into_bytes()),
        (None, Some(path)) => {
            let read = probe::given::read(Path::new(path), MOST_BODY as u64);
            Some(read.map_err(|e| Error::io(format!("cannot read {path}"), &e))?)
        }
        (None, None) => None,
    };
    match body {
        Some(b) if b.len() > MOST_BODY => {
            Err(Error::Usage(format!("a body of more than {} MiB is not sent", MOST_BODY >> 20)))
        }
        body => Ok(body),
    }
}

/// Whether a character is valid in a method or a header name (RFC 9110, 5.6.2).
fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

/// Splits `Name: value` and checks both parts.
fn header(line: &str) -> Result<(&str, &str)> {
    let usage = |why: &str| Err(Error::Usage(format!("the header {line:?}: {why}")));
    let Some((name, value)) = line.split_once(':') else {
        return usage("write 'Name: value'");
    };
    let value = value.trim_matches([' ', '\t']);
    if name.is_empty() || !name.bytes().all(is_token) {
        return usage("that is no name of a header");
    }
    if value.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
        return usage("a value is one line without control characters");
    }
    match name.to_ascii_lowercase().as_str() {
        "content-length" => usage("the length follows from --body"),
        "transfer-encoding" => usage("a body is sent whole"),
        "connection" => usage("give --new-connections for a connection each"),
        _ => Ok((name, value)),
    }
}

fn one(spec: &HttpSpec, url: &Url, own: &[(&str, &str)], body: Option<&[u8]>) -> Vec<u8> {
    let mut text = format!("{} {} HTTP/1.1\r\n", spec.method, url.path);
    let ours = [
        ("Host", url.authority()),
        ("User-Agent", traffic::PROGRAM.replace(' ', "/")),
        ("Accept", "*/*".into()),
    ];
    for (name, value) in ours {
        if !own.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)) {
            text += &format!("{name}: {value}\r\n");
        }
    }
    own.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
    if let Some(body) = body {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    if spec.new_connections {
        text += "Connection: close\r\n";
    }
    let mut bytes = (text + "\r\n").into_bytes();
    bytes.extend(body.unwrap_or_default());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_line_is_split_and_those_of_the_client_are_refused() {
        assert_eq!(header("A-b:  c d ").unwrap(), ("A-b", "c d"));
        assert_eq!(header("A:").unwrap(), ("A", ""));
        for wrong in ["A", "A b: c", ": x", "A: b\r\nC: d", "Connection: x", "content-length: 1"] {
            assert!(matches!(header(wrong), Err(Error::Usage(_))), "{wrong}");
        }
    }
}
