//! Splits the server's byte stream into messages, and parses error messages.
//!
//! The crate that encodes our messages could decode these too, but returns each as
//! reference-counted memory. For messages needed only by kind, that costs more than everything
//! else.
//!
//! **Source**: PostgreSQL's documentation, "Frontend/Backend Protocol", "Message Formats".

/// The SSLRequest message, sent before any other; the answer is one byte.
pub const ASK_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Longest message that is stored, in bytes: an error, or a row for `\gset`.
const MOST_KEPT: usize = 16 << 20;

/// Result of reading one message.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'i> {
    /// A message with its body in the input.
    Whole(u8, &'i [u8]),
    /// A message whose body arrived in pieces; it is in [`Frames::kept`].
    Kept(u8),
    /// A message whose body was skipped.
    Passed(u8),
    /// More bytes are needed.
    More,
    /// Not a PostgreSQL message.
    Bad(&'static str),
}

/// Splits a byte stream into messages, whatever the piece sizes.
#[derive(Debug, Default)]
pub struct Frames {
    head: [u8; 5],
    have: usize,
    /// Bytes of the body still to come.
    left: usize,
    keep: bool,
    kept: Vec<u8>,
}

impl Frames {
    /// Resets the state for a new connection.
    pub fn reset(&mut self) {
        (self.have, self.left) = (0, 0);
        self.kept.clear();
    }

    /// Body of the message that arrived in pieces.
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// Takes the next message from the front of `input`; `wants` says whether a kind's body is
    /// needed.
    #[inline]
    pub fn next<'i>(&mut self, input: &mut &'i [u8], wants: impl Fn(u8) -> bool) -> Next<'i> {
        if self.have == 0
            && let Some((head, rest)) = input.split_first_chunk::<5>()
        {
            let Some(length) = length_of(head) else { return Next::Bad(NONSENSE) };
            if let Some((body, rest)) = rest.split_at_checked(length) {
                *input = rest;
                return Next::Whole(head[0], body);
            }
        }
        self.pieces(input, wants)
    }

    #[cold]
    fn pieces(&mut self, input: &mut &[u8], wants: impl Fn(u8) -> bool) -> Next<'static> {
        while self.have < self.head.len() {
            let Some((first, rest)) = input.split_first() else { return Next::More };
            if let Some(place) = self.head.get_mut(self.have) {
                *place = *first;
            }
            (*input, self.have) = (rest, self.have + 1);
            if self.have == self.head.len() {
                let Some(length) = length_of(&self.head) else { return Next::Bad(NONSENSE) };
                self.keep = wants(self.head[0]);
                if self.keep && length > MOST_KEPT {
                    return Next::Bad("a message of the server is too long");
                }
                self.left = length;
                self.kept.clear();
            }
        }
        let (piece, rest) = input.split_at(self.left.min(input.len()));
        if self.keep {
            self.kept.extend_from_slice(piece);
        }
        (*input, self.left) = (rest, self.left - piece.len());
        if self.left > 0 {
            return Next::More;
        }
        self.have = 0;
        if self.keep { Next::Kept(self.head[0]) } else { Next::Passed(self.head[0]) }
    }
}

const NONSENSE: &str = "the answer is none of PostgreSQL's protocol";

/// Length of the body; `None` for an invalid head.
#[inline]
fn length_of(head: &[u8; 5]) -> Option<usize> {
    let [kind, length @ ..] = head;
    let length = u32::from_be_bytes(*length);
    // PostgreSQL's largest message is 1 GiB.
    let sound = kind.is_ascii_alphanumeric() && (4..=1 << 30).contains(&length);
    sound.then(|| length as usize - 4)
}

/// Takes the next zero-terminated text from the front.
pub fn text<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = from.iter().position(|b| *b == 0)?;
    let (text, rest) = from.split_at_checked(end)?;
    *from = rest.get(1..)?;
    Some(text)
}

/// Takes the next two-byte integer.
pub fn short(from: &mut &[u8]) -> Option<u16> {
    let (n, rest) = from.split_first_chunk::<2>()?;
    *from = rest;
    Some(u16::from_be_bytes(*n))
}

/// Takes the next four-byte integer.
pub fn long(from: &mut &[u8]) -> Option<i32> {
    let (n, rest) = from.split_first_chunk::<4>()?;
    *from = rest;
    Some(i32::from_be_bytes(*n))
}

/// Column names of a `RowDescription`.
pub fn columns(mut body: &[u8]) -> Option<Vec<String>> {
    let count = short(&mut body)?;
    let mut all = vec![];
    for _ in 0..count {
        all.push(String::from_utf8_lossy(text(&mut body)?).into_owned());
        body = body.get(18..)?;
    }
    Some(all)
}

/// Values of a `DataRow`; `None` for null.
pub fn values(mut body: &[u8]) -> Option<Vec<Option<String>>> {
    let count = short(&mut body)?;
    let mut all = vec![];
    for _ in 0..count {
        all.push(match usize::try_from(long(&mut body)?) {
            Ok(length) => {
                let (value, rest) = body.split_at_checked(length)?;
                body = rest;
                Some(String::from_utf8_lossy(value).into_owned())
            }
            Err(_) => None,
        });
    }
    Some(all)
}

/// An error message of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    /// SQLSTATE: five letters and digits.
    pub code: String,
    pub message: String,
    pub detail: Option<String>,
    /// Position in the statement's text, in characters from 1.
    pub position: Option<usize>,
}

impl ServerError {
    /// Parses the body of an `ErrorResponse`.
    pub fn read(mut body: &[u8]) -> Self {
        let mut error = Self::default();
        while let Some((kind, rest)) = body.split_first() {
            body = rest;
            let Some(value) = text(&mut body) else { break };
            let value = one_line(&String::from_utf8_lossy(value));
            match kind {
                b'C' => error.code = value.chars().take(5).collect(),
                b'M' => error.message = value,
                b'D' => error.detail = Some(value),
                b'P' => error.position = value.parse().ok(),
                _ => {}
            }
        }
        error
    }

    /// Whether a retry can succeed: a serialization failure or a deadlock.
    pub fn is_passing(&self) -> bool {
        matches!(self.code.as_str(), "40001" | "40P01")
    }

    /// Whether a retry must fail: the object is missing, access is denied, or the SQL is invalid.
    /// **Source**: PostgreSQL's documentation, "PostgreSQL Error Codes".
    pub fn is_lasting(&self) -> bool {
        ["42", "0A", "26", "08P"].iter().any(|class| self.code.starts_with(class))
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

/// Removes line breaks and control characters, which a server could send to a terminal.
fn one_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > 500 {
        let end = (0..=500).rev().find(|n| line.is_char_boundary(*n)).unwrap_or(0);
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pg::fuzzed::all;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut all = vec![kind];
        all.extend((body.len() as u32 + 4).to_be_bytes());
        all.extend(body);
        all
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            messages in prop::collection::vec(
                (prop::sample::select(vec![b'Z', b'D', b'E']), prop::collection::vec(any::<u8>(), 0..30)),
                0..6,
            ),
            noise in prop::collection::vec(any::<u8>(), 0..12),
            piece in 1usize..40,
        ) {
            let mut bytes = vec![];
            for (kind, body) in &messages {
                bytes.extend(message(*kind, body));
            }
            bytes.extend(noise);
            prop_assert_eq!(all(&bytes, piece), all(&bytes, 1 << 20));
            let (out, _) = all(&bytes, piece);
            for ((kind, body), (got, kept)) in messages.iter().zip(&out) {
                prop_assert_eq!(kind, got);
                prop_assert!(*kind == b'D' || body == kept);
            }
        }

        #[test]
        fn no_body_is_read_beyond_its_end(body in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (columns(&body), values(&body), ServerError::read(&body));
        }
    }

    #[test]
    fn what_is_no_message_is_refused_at_once() {
        for bytes in [&b"HTTP/1.1 400 Bad"[..], b"SSH-2.0-x", b"Z\0\0\0\x03", b"\0\0\0\0\x08"] {
            assert!(all(bytes, 1).1 && all(bytes, 100).1, "{bytes:?}");
        }
    }

    #[test]
    fn errors_and_rows_are_read() {
        let error =
            ServerError::read(b"SERROR\0C42P01\0Mrelation \"a\n\x1b[2J\" does not\0P15\0\0");
        assert_eq!(error.position, Some(15));
        assert_eq!(error.to_string(), "relation \"a [2J\" does not (42P01)");
        assert!(error.is_lasting() && !error.is_passing());
        let row = values(b"\0\x02\0\0\0\x01x\xff\xff\xff\xff");
        assert_eq!(row, Some(vec![Some("x".into()), None]));
        let mut description = b"\0\x01n\0".to_vec();
        description.extend([0; 18]);
        assert_eq!(columns(&description), Some(vec!["n".into()]));
    }
}
