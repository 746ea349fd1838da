//! For fuzzing and tests: parses a connection's bytes as responses, in pieces of any size.

use super::response::{Fed, Parser};

/// All answers (status, whether the connection stays open) in a connection's bytes, fed in pieces
/// of this size, and the error, if any.
pub fn all(is_head: bool, bytes: &[u8], piece: usize) -> (Vec<(u16, bool)>, Option<&'static str>) {
    let (mut parser, mut found) = (Parser::new(is_head), vec![]);
    for piece in bytes.chunks(piece.max(1)) {
        let mut at = 0;
        while let Some(rest) = piece.get(at..).filter(|r| !r.is_empty()) {
            let (n, fed) = parser.feed(rest);
            at += n;
            match fed {
                Fed::More => assert_eq!(n, rest.len(), "all of it is taken"),
                Fed::Whole(a) => found.push((a.status, a.keep)),
                Fed::Bad(why) => return (found, Some(why)),
            }
            assert!(n > 0, "it goes on");
        }
    }
    found.extend(parser.end().map(|a| (a.status, a.keep)));
    (found, None)
}

/// The first byte selects whether requests were HEAD, and the size of the pieces. The rest must
/// parse the same in pieces as in whole.
pub fn whole_or_in_pieces(bytes: &[u8]) {
    let Some((how, bytes)) = bytes.split_first() else { return };
    let (is_head, piece) = (how & 1 == 1, 1 + usize::from(how >> 1));
    assert_eq!(all(is_head, bytes, piece), all(is_head, bytes, bytes.len()));
}
