//! Finds the end of a response and its status (RFC 9112, 6.3): by length, by chunks, by the end of
//! the connection, or without a body.
//!
//! Accepts the stream in pieces of any size. The body is skipped, never stored.

/// Longest response head in bytes.
const MOST_HEAD: usize = 64 << 10;
/// Most hexadecimal digits of a chunk size.
const MOST_DIGITS: u8 = 15;
/// Longest chunk extension or trailer line, and the limit for all of them together, in bytes.
const MOST_EXTRA: u32 = 64 << 10;

/// Result of feeding a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fed {
    /// All bytes were taken; the response continues.
    More,
    /// A response is complete.
    Whole(Answer),
    /// Not an HTTP/1 response; the text says why.
    Bad(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Status code, such as 200.
    pub status: u16,
    /// Whether the connection stays open.
    pub keep: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseState {
    Head,
    Length(u64),
    /// A chunk's size so far, its number of digits, and whether its extension has begun.
    Size(u64, u8, bool),
    Data(u64),
    /// After a chunk's data, before its line end.
    DataEnd,
    /// In the trailer: bytes of the current line.
    Trailer(u32),
    UntilEnd,
}

#[derive(Debug)]
pub struct Parser {
    state: ResponseState,
    /// Received part of an incomplete head.
    part: Vec<u8>,
    answer: Answer,
    /// Bytes of extensions and trailers so far.
    extra: u32,
    is_head: bool,
    /// Value of the first `Server` header.
    pub server: Option<String>,
}

impl Parser {
    /// Initial state; `is_head` if requests are HEAD, whose responses describe a body but have
    /// none.
    pub fn new(is_head: bool) -> Self {
        Self {
            state: ResponseState::Head,
            part: vec![],
            answer: Answer { status: 0, keep: false },
            extra: 0,
            is_head,
            server: None,
        }
    }

    pub fn reset(&mut self) {
        self.state = ResponseState::Head;
        self.part.clear();
        self.extra = 0;
    }

    /// Handles the end of the connection, which completes a response without a length.
    pub fn end(&mut self) -> Option<Answer> {
        (self.state == ResponseState::UntilEnd).then(|| {
            self.reset();
            self.answer
        })
    }

    /// Takes bytes, at most to the end of a response; returns how many.
    pub fn feed(&mut self, bytes: &[u8]) -> (usize, Fed) {
        let mut at = 0;
        loop {
            let Some(rest) = bytes.get(at..).filter(|r| !r.is_empty()) else {
                return (at, Fed::More);
            };
            let (n, ends) = match self.step(rest) {
                Ok(step) => step,
                Err(why) => return (at, Fed::Bad(why)),
            };
            at += n;
            if ends {
                self.reset();
                return (at, Fed::Whole(self.answer));
            }
        }
    }

    /// Whether the next bytes are the body's, without the sizes of chunks.
    pub fn is_in_body(&self) -> bool {
        use ResponseState::{Data, Length, UntilEnd};
        matches!(self.state, Length(_) | Data(_) | UntilEnd)
    }

    /// As [`Self::feed`], but at most to where the body begins or ends.
    pub fn feed_part(&mut self, bytes: &[u8]) -> (usize, Fed) {
        match self.step(bytes) {
            Ok((n, false)) => (n, Fed::More),
            Ok((n, true)) => {
                self.reset();
                (n, Fed::Whole(self.answer))
            }
            Err(why) => (0, Fed::Bad(why)),
        }
    }

    /// Takes some of the bytes; returns how many, and whether the response ends there.
    fn step(&mut self, bytes: &[u8]) -> Result<(usize, bool), &'static str> {
        let all = bytes.len();
        let least = |left: u64| usize::try_from(left).map_or(all, |l| l.min(all));
        match self.state {
            ResponseState::Head => self.head(bytes),
            ResponseState::UntilEnd => Ok((all, false)),
            ResponseState::Length(left) => {
                let n = least(left);
                self.state = ResponseState::Length(left - n as u64);
                Ok((n, left == n as u64))
            }
            ResponseState::Data(left) => {
                let n = least(left);
                self.state = match left - n as u64 {
                    0 => ResponseState::DataEnd,
                    left => ResponseState::Data(left),
                };
                Ok((n, false))
            }
            _ => self.between_chunks(bytes.first().copied().unwrap_or_default()),
        }
    }

    /// Takes one byte outside the data of chunks.
    fn between_chunks(&mut self, b: u8) -> Result<(usize, bool), &'static str> {
        if matches!(self.state, ResponseState::Size(_, _, true) | ResponseState::Trailer(_)) {
            self.extra += 1;
            if self.extra > MOST_EXTRA {
                return Err("more than 64 KiB around its chunks");
            }
        }
        self.state = match (self.state, b) {
            (ResponseState::DataEnd, b'\r') => ResponseState::DataEnd,
            (ResponseState::DataEnd, b'\n') => ResponseState::Size(0, 0, false),
            (ResponseState::DataEnd, _) => return Err("a chunk is longer than its size"),
            (ResponseState::Size(_, 0, _), b'\n') => return Err("a chunk without a size"),
            (ResponseState::Size(0, _, _), b'\n') => ResponseState::Trailer(0),
            (ResponseState::Size(n, _, _), b'\n') => ResponseState::Data(n),
            (ResponseState::Size(n, digits, true), _) => ResponseState::Size(n, digits, true),
            (ResponseState::Size(n, digits, false), b) => match char::from(b).to_digit(16) {
                Some(_) if digits >= MOST_DIGITS => return Err("a chunk's size is too large"),
                Some(d) => ResponseState::Size(n << 4 | u64::from(d), digits + 1, false),
                None if b"\r; \t".contains(&b) => ResponseState::Size(n, digits, true),
                None => return Err("a chunk's size is no number"),
            },
            (ResponseState::Trailer(0), b'\n') => return Ok((1, true)),
            (ResponseState::Trailer(_), b'\n') => ResponseState::Trailer(0),
            (ResponseState::Trailer(n), b'\r') => ResponseState::Trailer(n),
            (ResponseState::Trailer(n), _) => ResponseState::Trailer(n + 1),
            (other, _) => other,
        };
        Ok((1, false))
    }

    fn head(&mut self, bytes: &[u8]) -> Result<(usize, bool), &'static str> {
        if self.part.is_empty() {
            return match read(bytes, &mut self.server)? {
                Some((n, head)) => self.headed(n, head),
                None => {
                    self.part.extend_from_slice(bytes);
                    Ok((bytes.len(), false))
                }
            };
        }
        let before = self.part.len();
        let room = MOST_HEAD.saturating_sub(before);
        self.part.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        match read(&self.part, &mut self.server)? {
            Some((n, head)) => {
                self.part.clear();
                self.headed(n.saturating_sub(before), head)
            }
            None if room < bytes.len() => Err("a head of more than 64 KiB"),
            None => Ok((bytes.len(), false)),
        }
    }

    /// Handles a complete head.
    fn headed(&mut self, n: usize, head: Head) -> Result<(usize, bool), &'static str> {
        if head.status == 101 {
            return Err("it switched to another protocol");
        }
        // An interim response: the final one follows.
        if head.status < 200 {
            return Ok((n, false));
        }
        let bodyless = self.is_head || head.status == 204 || head.status == 304;
        let keep = head.keep.unwrap_or(head.minor >= 1);
        self.state = match (head.coding, head.length) {
            _ if bodyless => ResponseState::Length(0),
            (Coding::Chunked, _) => ResponseState::Size(0, 0, false),
            (Coding::None, Some(length)) => ResponseState::Length(length),
            (Coding::Other, _) | (Coding::None, None) => ResponseState::UntilEnd,
        };
        self.answer =
            Answer { status: head.status, keep: keep && self.state != ResponseState::UntilEnd };
        Ok((n, self.state == ResponseState::Length(0)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    None,
    Chunked,
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    status: u16,
    minor: u8,
    length: Option<u64>,
    coding: Coding,
    keep: Option<bool>,
}

/// Position of the next line feed.
#[inline]
fn line_feed(bytes: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', bytes)
}

/// Parses the head at the start of these bytes; returns it with its length, `None` while
/// incomplete.
fn read(bytes: &[u8], server: &mut Option<String>) -> Result<Option<(usize, Head)>, &'static str> {
    const BEGIN: &[u8] = b"HTTP/1.";
    let known = bytes.len().min(BEGIN.len());
    if bytes.get(..known) != BEGIN.get(..known) {
        return Err("the answer is no HTTP/1 response");
    }
    let Some(end) = line_feed(bytes) else {
        return if bytes.len() > MOST_HEAD { Err("a head of more than 64 KiB") } else { Ok(None) };
    };
    let mut head = status_line(bytes.get(BEGIN.len()..end).unwrap_or_default())
        .ok_or("the answer is no HTTP/1 response")?;
    let mut at = end + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(end) = line_feed(rest) else {
            let long = bytes.len() > MOST_HEAD;
            return if long { Err("a head of more than 64 KiB") } else { Ok(None) };
        };
        at += end + 1;
        let line = rest.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Ok(Some((at, head)));
        }
        header(line, &mut head, server)?;
    }
}

/// Parses `1 200 OK` after `HTTP/1.`.
fn status_line(line: &[u8]) -> Option<Head> {
    let [minor @ b'0'..=b'9', b' ', digits @ ..] = line else { return None };
    let (digits, rest) = digits.split_at_checked(3)?;
    if !digits.iter().all(u8::is_ascii_digit) || !matches!(rest.first(), None | Some(b' ' | b'\r'))
    {
        return None;
    }
    let status = digits.iter().fold(0u16, |n, d| n * 10 + u16::from(d - b'0'));
    (status >= 100).then_some(Head {
        status,
        minor: minor - b'0',
        length: None,
        coding: Coding::None,
        keep: None,
    })
}

/// Parses the header lines that affect framing, and `Server`.
#[inline]
fn header(line: &[u8], head: &mut Head, server: &mut Option<String>) -> Result<(), &'static str> {
    // Compares the first letter first: most lines are none of these.
    let first = line.first().map_or(0, u8::to_ascii_lowercase);
    if !(first == b'c' || first == b't' || first == b's') {
        return Ok(());
    }
    let Some(colon) = line.iter().position(|b| *b == b':') else { return Ok(()) };
    let (name, value) = line.split_at(colon);
    let value = value.get(1..).unwrap_or_default().trim_ascii();
    let is = |n: &[u8]| name.eq_ignore_ascii_case(n);
    match colon {
        14 if is(b"content-length") => {
            let text = std::str::from_utf8(value).ok();
            let length = text.filter(|t| !t.starts_with('+')).and_then(|t| t.parse().ok());
            let length: u64 = length.ok_or("its Content-Length is no number")?;
            if head.length.is_some_and(|before| before != length) {
                return Err("two lengths that differ");
            }
            head.length = Some(length);
        }
        17 if is(b"transfer-encoding") => {
            let last = value.rsplit(|b| *b == b',').next().unwrap_or_default().trim_ascii();
            let chunked = last.eq_ignore_ascii_case(b"chunked");
            head.coding = if chunked { Coding::Chunked } else { Coding::Other };
        }
        10 if is(b"connection") => {
            for word in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                if word.eq_ignore_ascii_case(b"close") {
                    head.keep = Some(false);
                } else if word.eq_ignore_ascii_case(b"keep-alive") {
                    head.keep = head.keep.or(Some(true));
                }
            }
        }
        6 if server.is_none() && is(b"server") => {
            let text: String = String::from_utf8_lossy(value).chars().take(60).collect();
            *server = Some(text.replace(|c: char| c.is_control(), "?"));
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::pieces::all, *};

    const OK: &str = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 2\r\n\r\nhi";
    const CHUNKED: &str = "HTTP/1.1 201 Made\r\ntransfer-ENCODING: gzip, chunked\r\n\r\n\
                           3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n";

    #[test]
    fn responses_end_where_they_say() {
        for (text, is_head, want) in [
            (OK.to_owned() + OK, false, vec![(200, true), (200, true)]),
            (CHUNKED.to_owned() + OK, false, vec![(201, true), (200, true)]),
            ("HTTP/1.1 204 \r\n\r\n".to_owned() + OK, false, vec![(204, true), (200, true)]),
            ("HTTP/1.1 304\r\nContent-Length: 9\r\n\r\n".into(), false, vec![(304, true)]),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".into(), true, vec![(200, true)]),
            ("HTTP/1.1 100 Go on\r\n\r\n".to_owned() + OK, false, vec![(200, true)]),
            ("HTTP/1.0 200 OK\nContent-Length: 1\n\nx".into(), false, vec![(200, false)]),
            (
                "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length:0\r\n\r\n".into(),
                false,
                vec![(200, true)],
            ),
            (
                "HTTP/1.1 500 No\r\nConnection: x, close\r\nContent-Length: 0\r\n\r\n".into(),
                false,
                vec![(500, false)],
            ),
            ("HTTP/1.1 200 OK\r\n\r\nuntil the end".into(), false, vec![(200, false)]),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".into(), false, vec![]),
        ] {
            for piece in [1, 2, 3, 7, 4096] {
                assert_eq!(all(is_head, text.as_bytes(), piece), (want.clone(), None), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_response_is_refused_at_once() {
        for text in [
            "SSH-2.0-OpenSSH_9.2\r\n",
            "HTTX",
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 099 OK\r\n\r\n",
            "HTTP/1.1 101 Up\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1111111111111111\r\n",
        ] {
            for piece in [1, 4096] {
                assert!(all(false, text.as_bytes(), piece).1.is_some(), "{text}");
            }
        }
        let long = "HTTP/1.1 200 OK\r\n".to_owned() + &"X: y\r\n".repeat(20_000);
        for piece in [1000, 1 << 20] {
            assert!(all(false, long.as_bytes(), piece).1.is_some());
        }
    }

    #[test]
    fn the_servers_name_is_kept_once() {
        let mut parser = Parser::new(false);
        parser.feed(OK.as_bytes());
        parser.feed(OK.replace("x", "other").as_bytes());
        assert_eq!(parser.server.as_deref(), Some("x"));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            picks in prop::collection::vec(0usize..6, 1..6),
            noise in prop::collection::vec(any::<u8>(), 0..40),
            piece in 1usize..50,
        ) {
            let parts: [&[u8]; 6] = [
                OK.as_bytes(), CHUNKED.as_bytes(), b"HTTP/1.1 204 \r\n\r\n", &noise,
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n",
            ];
            let bytes: Vec<u8> = picks.iter().flat_map(|p| parts[*p].iter().copied()).collect();
            prop_assert_eq!(all(false, &bytes, piece), all(false, &bytes, 1 << 20));
        }
    }
}
