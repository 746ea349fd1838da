//! Finds the end of a reply, and whether it is an error. RESP 2:
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>.
//!
//! Accepts the stream in pieces of any size. Values are skipped, never stored.

/// Longest line in bytes: an error, a status or a length.
const MOST_LINE: usize = 64 << 10;
/// Deepest nesting of arrays in a reply.
const MOST_DEPTH: usize = 32;
/// Longest value in bytes, the maximum of the server's `proto-max-bulk-len`.
const MOST_BULK: u64 = 1 << 40;

/// Result of feeding a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fed {
    /// All bytes were taken; the reply continues.
    More,
    /// A reply is complete; holds its text if it is an error.
    Whole(Option<String>),
    /// Not a valid reply; the text says why.
    Bad(&'static str),
}

/// Parser state of the current reply.
#[derive(Debug, Default)]
pub struct Replies {
    /// Received part of an incomplete line.
    line: Vec<u8>,
    /// Bytes of a value still to come, including its line end.
    bulk: u64,
    /// Items still to come in each open array, the outermost first.
    arrays: Vec<u64>,
}

impl Replies {
    /// Takes bytes of one reply; returns how many.
    pub fn feed(&mut self, bytes: &[u8]) -> (usize, Fed) {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|r| !r.is_empty()) {
            if self.bulk > 0 {
                let n = self.bulk.min(rest.len() as u64);
                self.bulk -= n;
                at += n as usize;
                if self.bulk == 0 && self.ends() {
                    return (at, Fed::Whole(None));
                }
                continue;
            }
            let Some(end) = rest.iter().position(|b| *b == b'\n') else {
                self.line.extend_from_slice(rest);
                let long = self.line.len() > MOST_LINE;
                return (bytes.len(), if long { Fed::Bad(NONE) } else { Fed::More });
            };
            at += end + 1;
            let head = rest.get(..end).unwrap_or_default();
            let fed = match self.line.is_empty() {
                true => self.take(head),
                false => {
                    let mut line = std::mem::take(&mut self.line);
                    line.extend_from_slice(head);
                    self.take(&line)
                }
            };
            if fed != Fed::More {
                return (at, fed);
            }
        }
        (at, Fed::More)
    }

    /// Handles a line, given without its end.
    fn take(&mut self, line: &[u8]) -> Fed {
        let Some((kind, text)) = line.strip_suffix(b"\r").and_then(|l| l.split_first()) else {
            return Fed::Bad(NONE);
        };
        match kind {
            b'-' if self.arrays.is_empty() => {
                return Fed::Whole(Some(String::from_utf8_lossy(text).into_owned()));
            }
            b'+' | b'-' => {}
            b':' if number(text).is_some() => {}
            b'$' => match number(text) {
                Some(-1) => {}
                Some(n) if (0..=MOST_BULK as i64).contains(&n) => {
                    self.bulk = n.unsigned_abs() + 2;
                    return Fed::More;
                }
                _ => return Fed::Bad(NONE),
            },
            b'*' => match number(text) {
                Some(-1 | 0) => {}
                Some(n) if n > 0 && self.arrays.len() < MOST_DEPTH => {
                    self.arrays.push(n.unsigned_abs());
                    return Fed::More;
                }
                _ => return Fed::Bad(NONE),
            },
            _ => return Fed::Bad(NONE),
        }
        if self.ends() { Fed::Whole(None) } else { Fed::More }
    }

    /// Counts a complete value; returns whether the reply is complete.
    fn ends(&mut self) -> bool {
        while let Some(left) = self.arrays.last_mut() {
            *left -= 1;
            if *left > 0 {
                return false;
            }
            self.arrays.pop();
        }
        true
    }
}

const NONE: &str = "the answer is none of Redis'";

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// All replies in bytes fed in pieces of this size, and the error, if any.
fn all(bytes: &[u8], piece: usize) -> (Vec<Option<String>>, Option<&'static str>) {
    let (mut replies, mut found) = (Replies::default(), vec![]);
    for piece in bytes.chunks(piece.max(1)) {
        let mut at = 0;
        while let Some(rest) = piece.get(at..).filter(|r| !r.is_empty()) {
            let (n, fed) = replies.feed(rest);
            at += n;
            match fed {
                Fed::More => assert_eq!(n, rest.len(), "all of it is taken"),
                Fed::Whole(error) => found.push(error),
                Fed::Bad(why) => return (found, Some(why)),
            }
        }
    }
    (found, None)
}

/// Fuzz target: the first byte is the size of the pieces. The rest must parse the same in pieces as
/// in whole.
pub fn fuzzed(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let (whole, pieces) = (all(bytes, bytes.len()), all(bytes, 1 + usize::from(*piece)));
    // An overlong line is detected at the end of a piece, so the position depends on the pieces.
    if bytes.len() <= MOST_LINE {
        assert_eq!(whole, pieces);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_end_where_they_end_in_pieces_of_any_size() {
        let bytes = b"+PONG\r\n:-12\r\n$5\r\nhe\r\no\r\n$-1\r\n$0\r\n\r\n*-1\r\n*0\r\n\
                      *3\r\n:1\r\n*2\r\n$1\r\na\r\n-no\r\n$-1\r\n-ERR unknown command 'x'\r\n+OK\r\n";
        let mut due = vec![None; 10];
        due[8] = Some("ERR unknown command 'x'".to_owned());
        for piece in 1..bytes.len() {
            assert_eq!(all(bytes, piece), (due.clone(), None), "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_reply_is_said() {
        for bytes in
            [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"+OK\n", b"$-2\r\n", b"*x\r\n", b":a\r\n"]
        {
            assert_eq!(all(bytes, 3).1, Some(NONE), "{}", String::from_utf8_lossy(bytes));
        }
        let deep = b"*1\r\n".repeat(MOST_DEPTH + 1);
        assert_eq!(all(&deep, 7), (vec![], Some(NONE)));
        assert_eq!(all(&vec![b'+'; MOST_LINE + 2], 4096), (vec![], Some(NONE)));
    }
}
