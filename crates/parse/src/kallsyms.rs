//! `/proc/kallsyms`: the kernel function at an address.
//!
//! **Shape**: a line `ADDRESS TYPE NAME` for each symbol, with `[MODULE]` for a module's, in no
//! order. Without privileges all addresses are zero. **Source**: `kernel/kallsyms.c`.

/// Farther from its beginning than this an address is in no function.
const LONGEST: u64 = 1 << 20;

/// The function of each address: the one that begins last before it; `None` where none does.
pub fn functions(bytes: &[u8], addresses: &[u64]) -> Vec<Option<String>> {
    let mut best: Vec<Option<(u64, &[u8])>> = vec![None; addresses.len()];
    for line in bytes.split(|b| *b == b'\n') {
        let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|w| !w.is_empty());
        let (Some(begin), Some(kind), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let begin = std::str::from_utf8(begin).ok().and_then(|t| u64::from_str_radix(t, 16).ok());
        let Some(begin) = begin.filter(|b| *b > 0 && matches!(kind, b"t" | b"T" | b"w" | b"W"))
        else {
            continue;
        };
        for (address, best) in addresses.iter().zip(&mut best) {
            let near = begin <= *address && *address - begin < LONGEST;
            if near && best.is_none_or(|(other, _)| begin > other) {
                *best = Some((begin, name));
            }
        }
    }
    best.into_iter().map(|b| b.map(|(_, n)| String::from_utf8_lossy(n).into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_that_begins_last_before_it() {
        let text = b"ffffffff81000200 t udp_rcv\nffffffff81000000 T ip_rcv\n\
            ffffffff81000180 d table\nffffffffc0000000 t nf_hook\t[nf_tables]\n0 T hidden\n";
        let of = |address| functions(text, &[address]).remove(0);
        assert_eq!(of(0xffff_ffff_8100_01ff).as_deref(), Some("ip_rcv"));
        assert_eq!(of(0xffff_ffff_8100_0200).as_deref(), Some("udp_rcv"));
        assert_eq!(of(0xffff_ffff_c000_0010).as_deref(), Some("nf_hook"));
        assert_eq!(of(0xffff_ffff_8100_0000 - 1), None);
        assert_eq!(of(0xffff_ffff_9100_0000), None, "too far from any");
        assert_eq!(functions(b"garbage\n\n1 T\n", &[5]), [None]);
    }
}
