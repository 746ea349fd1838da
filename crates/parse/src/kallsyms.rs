//! `/proc/kallsyms`: the kernel function at an address.
//!
//! **Shape**: a line `ADDRESS TYPE NAME` for each symbol, with `[MODULE]` for a module's, in no
//! order. Without privileges all addresses are zero. **Source**: `kernel/kallsyms.c`.

/// Farther from its beginning than this an address is in no function.
const LONGEST: u64 = 1 << 20;

/// The kernel's functions, some 30 bytes each. The file comes in pieces of any length; it is too large
/// to hold, and takes the kernel tens of milliseconds to write.
#[derive(Debug, Clone, Default)]
pub struct Functions {
    /// By address once [`Self::sorted`].
    rows: Vec<Row>,
    /// Names, each ended by a line feed.
    names: Vec<u8>,
    /// The line that the last piece broke off in.
    rest: Vec<u8>,
    /// The first and last function of the kernel itself.
    own: Option<(u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    begin: u64,
    /// Where its name begins in `names`.
    name: u32,
}

impl Functions {
    /// Takes the next piece of the file.
    pub fn take(&mut self, piece: &[u8]) {
        let Some(end) = piece.iter().position(|b| *b == b'\n') else {
            self.rest.extend_from_slice(piece);
            return;
        };
        let (head, mut piece) = piece.split_at(end);
        let mut first = std::mem::take(&mut self.rest);
        first.extend_from_slice(head);
        self.line(&first);
        while let Some(end) = piece.get(1..).and_then(|p| p.iter().position(|b| *b == b'\n')) {
            self.line(piece.get(1..=end).unwrap_or_default());
            piece = piece.get(end + 1..).unwrap_or_default();
        }
        first.clear();
        first.extend_from_slice(piece.get(1..).unwrap_or_default());
        self.rest = first;
    }

    /// The file has ended: in the order of the addresses.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        let last = std::mem::take(&mut self.rest);
        self.line(&last);
        self.rows.sort_by_key(|row| row.begin);
        self
    }

    fn line(&mut self, line: &[u8]) {
        let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|w| !w.is_empty());
        let (Some(begin), Some(b"t" | b"T" | b"w" | b"W"), Some(name)) =
            (words.next(), words.next(), words.next())
        else {
            return;
        };
        let Some(begin) = address(begin).filter(|begin| *begin > 0) else { return };
        let Ok(at) = u32::try_from(self.names.len()) else { return };
        self.rows.push(Row { begin, name: at });
        self.names.extend_from_slice(name);
        self.names.push(b'\n');
        if words.next().is_none() {
            let (first, last) = self.own.unwrap_or((begin, begin));
            self.own = Some((first.min(begin), last.max(begin)));
        }
    }

    /// The function of an address: the one that begins last before it; `None` where none does.
    pub fn at(&self, address: u64) -> Option<String> {
        let after = self.rows.partition_point(|row| row.begin <= address);
        let row = self.rows.get(after.checked_sub(1)?)?;
        if address - row.begin >= LONGEST {
            return None;
        }
        // Of several with one address the first.
        let first = self.rows.partition_point(|other| other.begin < row.begin);
        let from = usize::try_from(self.rows.get(first)?.name).ok()?;
        let name = self.names.get(from..)?.split(|b| *b == b'\n').next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Whether the address is the kernel's own, so that no module that comes later has it.
    pub fn is_own(&self, address: u64) -> bool {
        self.own.is_some_and(|(first, last)| (first..=last).contains(&address))
    }
}

fn address(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok().and_then(|text| u64::from_str_radix(text, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(pieces: &[&[u8]]) -> Functions {
        let mut functions = Functions::default();
        pieces.iter().for_each(|piece| functions.take(piece));
        functions.sorted()
    }

    const TEXT: &[u8] = b"ffffffff81000200 t udp_rcv\nffffffff81000000 T ip_rcv\n\
        ffffffff81000180 d table\nffffffffc0000000 t nf_hook\t[nf_tables]\n0 T hidden\n\
        ffffffff81000000 W alias\nffffffff81000300 T last";

    #[test]
    fn the_function_that_begins_last_before_it() {
        let all = functions(&[TEXT]);
        let of = |address| all.at(address);
        assert_eq!(of(0xffff_ffff_8100_01ff).as_deref(), Some("ip_rcv"));
        assert_eq!(of(0xffff_ffff_8100_0200).as_deref(), Some("udp_rcv"));
        assert_eq!(of(0xffff_ffff_8100_0300).as_deref(), Some("last"));
        assert_eq!(of(0xffff_ffff_c000_0010).as_deref(), Some("nf_hook"));
        assert_eq!(of(0xffff_ffff_8100_0000 - 1), None);
        assert_eq!(of(0xffff_ffff_9100_0000), None, "too far from any");
        assert!(all.is_own(0xffff_ffff_8100_0200) && !all.is_own(0xffff_ffff_c000_0010));
        assert_eq!(functions(&[b"garbage\n\n1 T\n"]).at(5), None);
    }

    #[test]
    fn pieces_of_any_length_make_the_same() {
        let whole = functions(&[TEXT]);
        for length in 1..TEXT.len() {
            let pieces: Vec<&[u8]> = TEXT.chunks(length).collect();
            let all = functions(&pieces);
            for address in [0xffff_ffff_8100_0100, 0xffff_ffff_8100_0210, 0xffff_ffff_c000_0010] {
                assert_eq!(all.at(address), whole.at(address), "{length}");
            }
            assert_eq!((all.rows.len(), all.names), (whole.rows.len(), whole.names.clone()));
        }
    }
}
