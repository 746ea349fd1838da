//! The head of a request: read within bounds, and checked before anything is answered.

use std::{
    io::{self, Read},
    net::{IpAddr, TcpStream},
    time::{Duration, Instant},
};

use subtle::ConstantTimeEq;

/// The largest head of a request, bytes.
const MOST_BYTES: usize = 16 << 10;
/// The most header lines.
const MOST_HEADERS: usize = 100;
/// How long a head may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which paths there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// The live view's page and its streams.
    Watch,
    /// A page of metrics.
    Metrics,
}

impl Site {
    fn wanted(self, path: &str) -> Option<Wanted> {
        match (self, path) {
            (Self::Watch, "/") => Some(Wanted::Page),
            (Self::Watch, "/page") => Some(Wanted::PageEvents),
            (Self::Watch, "/events") => Some(Wanted::Documents),
            (Self::Metrics, "/metrics") => Some(Wanted::Metrics),
            _ => None,
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The HTML page, without data.
    Page,
    /// The stream of the page's events.
    PageEvents,
    /// The stream of documents.
    Documents,
    /// The page of metrics.
    Metrics,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    NoRequest,
    TooSlow,
    TooLarge,
    Method,
    Nothing(Site),
    /// The host's name could be anybody's: a page of another site made the browser ask.
    Host,
    OtherSite,
    Key,
    Full,
}

impl Refusal {
    /// The status line without the version, and a line for people.
    pub fn answer(self) -> (&'static str, &'static str) {
        match self {
            Self::NoRequest => ("400 Bad Request", "this is no HTTP request"),
            Self::TooSlow => ("408 Request Timeout", "the request took too long"),
            Self::TooLarge => ("431 Request Header Fields Too Large", "the request is too large"),
            Self::Method => ("405 Method Not Allowed", "only GET: this server is read only"),
            Self::Nothing(Site::Watch) => {
                ("404 Not Found", "there are: / (the page), /events (the documents)")
            }
            Self::Nothing(Site::Metrics) => ("404 Not Found", "there is: /metrics"),
            Self::Host => (
                "421 Misdirected Request",
                "use an address of this host, or localhost; without a key no other name is served",
            ),
            Self::OtherSite => ("403 Forbidden", "a page of another site asked for this"),
            Self::Key => ("403 Forbidden", "the key is missing or wrong; use the printed address"),
            Self::Full => ("503 Service Unavailable", "too many browsers are watching"),
        }
    }
}

/// A request that may be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub wanted: Wanted,
    /// The header `Accept`; empty where there is none.
    pub accept: String,
    /// Whether the answer has no body (`HEAD`).
    pub head_only: bool,
}

/// Reads a request and checks it against the key.
///
/// # Errors
/// `Err` is a client that went away; `Ok(Err(_))` is to be answered.
pub fn read(
    from: &mut TcpStream,
    site: Site,
    key: Option<&str>,
) -> io::Result<Result<Request, Refusal>> {
    let until = Instant::now() + PATIENCE;
    let mut bytes = vec![];
    let mut part = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Err(Refusal::TooSlow));
        }
        from.set_read_timeout(Some(left))?;
        match from.read(&mut part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => bytes.extend_from_slice(part.get(..n).unwrap_or_default()),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(Err(Refusal::TooSlow));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if let Some(request) = parsed(&bytes, site, key) {
            return Ok(request);
        }
        if bytes.len() >= MOST_BYTES {
            return Ok(Err(Refusal::TooLarge));
        }
    }
}

/// The request in these bytes; `None` where more must come.
fn parsed(bytes: &[u8], site: Site, key: Option<&str>) -> Option<Result<Request, Refusal>> {
    let mut lines = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Request::new(&mut lines);
    match head.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => Some(checked(&head, site, key)),
        Ok(httparse::Status::Partial) => None,
        Err(httparse::Error::TooManyHeaders) => Some(Err(Refusal::TooLarge)),
        Err(_) => Some(Err(Refusal::NoRequest)),
    }
}

fn checked(
    head: &httparse::Request<'_, '_>,
    site: Site,
    key: Option<&str>,
) -> Result<Request, Refusal> {
    let (method, target) = (head.method.unwrap_or_default(), head.path.unwrap_or_default());
    if !matches!(method, "GET" | "HEAD") {
        return Err(Refusal::Method);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let bearer = one(head, "authorization")?.and_then(bearer).unwrap_or_default();
    let knows = key.is_none_or(|key| has_key(query, key) || is_key(bearer.as_bytes(), key));
    let host = one(head, "host")?.ok_or(Refusal::NoRequest)?;
    if !is_own(host) && (key.is_none() || !knows) {
        return Err(Refusal::Host);
    }
    let wanted = site.wanted(path).ok_or(Refusal::Nothing(site))?;
    if !knows {
        return Err(Refusal::Key);
    }
    // A link from elsewhere may open the page; only the page may open a stream.
    let strange =
        one(head, "sec-fetch-site")?.is_some_and(|s| !matches!(s, "same-origin" | "none"));
    let origin = one(head, "origin")?.is_some_and(|o| o.strip_prefix("http://") != Some(host));
    if wanted != Wanted::Page && (strange || origin) {
        return Err(Refusal::OtherSite);
    }
    let accept = head.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("accept"));
    let accept: Vec<_> = accept.map(|h| String::from_utf8_lossy(h.value)).collect();
    Ok(Request { wanted, accept: accept.join(","), head_only: method == "HEAD" })
}

/// The header of this name; two of it are refused.
fn one<'a>(head: &httparse::Request<'_, 'a>, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut all = head.headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name));
    let first = all.next().map(|h| std::str::from_utf8(h.value).map_err(|_| Refusal::NoRequest));
    if all.next().is_some() {
        return Err(Refusal::NoRequest);
    }
    first.transpose()
}

/// Whether a host cannot be a name that somebody else points at this host: an address, `localhost`.
fn is_own(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        // An IPv6 address without a port has colons too.
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, "0"),
    };
    let address = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
    let is_address = match address {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => name.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4()),
    };
    port.parse::<u16>().is_ok() && (is_address || name.eq_ignore_ascii_case("localhost"))
}

/// Whether the query has the key.
fn has_key(query: &str, key: &str) -> bool {
    let given = query.split('&').find_map(|part| part.strip_prefix("key="));
    given.is_some_and(|given| is_key(&decoded(given), key))
}

/// Compares in constant time.
fn is_key(given: &[u8], key: &str) -> bool {
    given.ct_eq(key.as_bytes()).into()
}

/// The token of `Authorization: Bearer TOKEN`, as scrapers send a key (RFC 6750).
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Text of a query, with its `%41`.
fn decoded(text: &str) -> Vec<u8> {
    let mut out = vec![];
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let two = after.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let two = two.filter(|_| first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        let code = two.and_then(|text| u8::from_str_radix(text, 16).ok());
        out.push(code.unwrap_or(first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str, key: Option<&str>) -> Option<Result<Wanted, Refusal>> {
        parsed(text.as_bytes(), Site::Watch, key).map(|r| r.map(|r| r.wanted))
    }

    fn of(target: &str, headers: &str) -> Result<Wanted, Refusal> {
        request(&format!("GET {target} HTTP/1.1\r\n{headers}\r\n"), None).unwrap()
    }

    #[test]
    fn only_the_page_and_its_streams_are_there() {
        let host = "Host: 127.0.0.1:7472\r\n";
        assert_eq!(of("/", host), Ok(Wanted::Page));
        assert_eq!(of("/page?x=1", host), Ok(Wanted::PageEvents));
        assert_eq!(of("/events", host), Ok(Wanted::Documents));
        for other in ["/../etc/passwd", "//", "/page/", "*", "http://127.0.0.1/"] {
            assert_eq!(of(other, host), Err(Refusal::Nothing(Site::Watch)), "{other}");
        }
        let post = request("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", None);
        assert_eq!(post, Some(Err(Refusal::Method)));
        assert_eq!(request("GET / HTTP/1.1\r\nHost: localh", None), None);
    }

    #[test]
    fn a_name_that_can_be_pointed_here_is_refused() {
        for own in
            ["localhost", "LOCALHOST:80", "127.0.0.1", "10.0.0.5:7472", "[::1]:7472", "[::1]"]
        {
            assert_eq!(of("/", &format!("Host: {own}\r\n")), Ok(Wanted::Page), "{own}");
        }
        for strange in [
            "evil.example",
            "evil.example:7472",
            "127.0.0.1.evil.example",
            "localhost.",
            "::1",
            "[evil]",
            "127.0.0.1:x",
            "a@127.0.0.1",
            "",
        ] {
            assert_eq!(of("/", &format!("Host: {strange}\r\n")), Err(Refusal::Host), "{strange}");
        }
        assert_eq!(of("/", ""), Err(Refusal::NoRequest), "no Host");
        let two = "Host: localhost\r\nHost: evil.example\r\n";
        assert_eq!(of("/", two), Err(Refusal::NoRequest), "two of them");
    }

    #[test]
    fn a_key_is_needed_for_all_and_permits_a_name() {
        let get = |target: &str, host: &str| {
            let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            request(&text, Some("s3cret+key")).unwrap()
        };
        for path in ["/", "/page", "/events"] {
            assert_eq!(get(path, "10.0.0.5"), Err(Refusal::Key), "{path}");
            assert_eq!(get(&format!("{path}?key=s3cret"), "10.0.0.5"), Err(Refusal::Key));
            assert!(get(&format!("{path}?key=s3cret+key"), "10.0.0.5").is_ok());
            assert!(get(&format!("{path}?a&key=s3cret%2bkey"), "vm.example").is_ok());
        }
        assert_eq!(get("/", "vm.example"), Err(Refusal::Host));
    }

    #[test]
    fn a_scraper_sends_the_key_as_a_bearer_token() {
        let get = |headers: &str| {
            let text = format!("GET /metrics HTTP/1.1\r\nHost: db1:7473\r\n{headers}\r\n");
            parsed(text.as_bytes(), Site::Metrics, Some("s3cret+key")).unwrap()
        };
        let with = get("Authorization: bearer s3cret+key\r\nAccept: a\r\nAccept: b;q=0\r\n");
        let expected =
            Request { wanted: Wanted::Metrics, accept: "a,b;q=0".into(), head_only: false };
        assert_eq!(with, Ok(expected));
        for wrong in ["Bearer s3cret", "Basic s3cret+key", "s3cret+key", "Bearer", "Bearer "] {
            let answer = get(&format!("Authorization: {wrong}\r\n"));
            assert_eq!(answer, Err(Refusal::Host), "{wrong}");
        }
        let twice = "Authorization: Bearer s3cret+key\r\n".repeat(2);
        assert_eq!(get(&twice), Err(Refusal::NoRequest));
        let page = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let page = parsed(page, Site::Metrics, None).unwrap();
        assert_eq!(page, Err(Refusal::Nothing(Site::Metrics)), "the live view is not there");
    }

    #[test]
    fn a_page_of_another_site_opens_no_stream() {
        let host = "Host: localhost:7472\r\n";
        let with = |target, header: &str| of(target, &format!("{host}{header}\r\n"));
        assert_eq!(with("/", "Sec-Fetch-Site: cross-site"), Ok(Wanted::Page), "a link opens it");
        assert_eq!(with("/page", "Sec-Fetch-Site: cross-site"), Err(Refusal::OtherSite));
        assert_eq!(with("/page", "Sec-Fetch-Site: same-origin"), Ok(Wanted::PageEvents));
        assert_eq!(with("/events", "Origin: http://evil.example"), Err(Refusal::OtherSite));
        assert_eq!(with("/events", "Origin: null"), Err(Refusal::OtherSite));
        assert_eq!(with("/events", "Origin: http://localhost:7472"), Ok(Wanted::Documents));
    }

    #[test]
    fn no_cut_and_no_changed_byte_breaks_the_reader_or_opens_it() {
        let whole = b"GET /page?key=%41bc&x=%4 HTTP/1.1\r\nHost: [::1]:7472\r\n\
                      Sec-Fetch-Site: same-origin\r\nOrigin: http://[::1]:7472\r\n\r\n";
        assert!(parsed(whole, Site::Watch, Some("Abc")).unwrap().is_ok());
        for end in 0..whole.len() {
            assert!(
                parsed(&whole[..end], Site::Watch, Some("Abc")).is_none_or(|r| r.is_err()),
                "{end}"
            );
        }
        // The key's own bytes: with any other in their place nothing is served.
        let key = 14..19;
        for at in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = whole.to_vec();
                bytes[at] = byte;
                let served = parsed(&bytes, Site::Watch, Some("Abc")).is_some_and(|r| r.is_ok());
                assert!(!served || !key.contains(&at) || bytes == whole, "{at} {byte}");
            }
        }
    }

    #[test]
    fn escapes_of_a_query_are_bytes_and_damaged_ones_stay() {
        for (text, bytes) in [("a%41%2f", "aA/"), ("%4", "%4"), ("%zz%", "%zz%"), ("%+1", "%+1")] {
            assert_eq!(decoded(text), bytes.as_bytes(), "{text}");
        }
    }
}
