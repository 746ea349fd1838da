//! The values of one enumeration out of BTF, the kernel's description of its own types.
//!
//! **Shape**: a header, a list of types that follow one another without an index, and a block of
//! zero-terminated names. **Source**: Documentation/bpf/btf.rst, `include/uapi/linux/btf.h`; the
//! running kernel's is `/sys/kernel/btf/vmlinux`.

use std::collections::BTreeMap;

use crate::ParseError;

const MAGIC: u16 = 0xeb9f;

/// Name by value of `enum NAME`, in the byte order of this machine; empty where no such
/// enumeration is described.
///
/// # Errors
/// When it is not BTF, or ends early.
pub fn values(bytes: &[u8], name: &str) -> Result<BTreeMap<u32, String>, ParseError> {
    let bad = |what: &'static str| ParseError::new(1, what, bytes.get(..24).unwrap_or(bytes));
    let (half, word) = (|at| half(bytes, at), |at| word(bytes, at));
    if half(0) != Some(MAGIC) {
        return Err(bad("BTF's magic number in this machine's byte order"));
    }
    let header = |at| word(at).map(|n| n as usize).ok_or_else(|| bad("BTF's header"));
    let (length, types, types_length) = (header(4)?, header(8)?, header(12)?);
    let (names, names_length) = (header(16)?, header(20)?);
    let part = |from: usize, length: usize, at: usize| -> Option<&[u8]> {
        let from = from.checked_add(at)?;
        bytes.get(from..from.checked_add(length)?)
    };
    let types = part(types, types_length, length).ok_or_else(|| bad("all of BTF's types"))?;
    let names = part(names, names_length, length).ok_or_else(|| bad("all of BTF's names"))?;
    let named = |at: u32| {
        let text = names.get(at as usize..).and_then(|n| n.split(|b| *b == 0).next());
        text.map(|t| String::from_utf8_lossy(t).into_owned()).unwrap_or_default()
    };
    let mut at = 0;
    while at < types.len() {
        let field = |n: usize| self::word(types, at + 4 * n).ok_or_else(|| bad("a whole BTF type"));
        let (type_name, info) = (field(0)?, field(1)?);
        let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        let begin = at + 12;
        if kind == ENUM && named(type_name) == name {
            let one = |n: usize| {
                let at = begin + 8 * n;
                Some((self::word(types, at + 4)?, named(self::word(types, at)?)))
            };
            let all = (0..count).map(one).collect::<Option<_>>();
            return all.ok_or_else(|| bad("all values of the enumeration"));
        }
        at =
            begin + trailing(kind, count).ok_or_else(|| bad("a kind of BTF type that is known"))?;
    }
    Ok(BTreeMap::new())
}

const ENUM: u32 = 6;

/// Bytes behind the three words of a type.
fn trailing(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Integer, variable, declaration tag.
        1 | 14 | 17 => 4,
        // Pointer, forward, typedef, volatile, const, restrict, function, float, type tag.
        2 | 7..=12 | 16 | 18 => 0,
        // Array.
        3 => 12,
        // Structure, union, data section, 64-bit enumeration.
        4 | 5 | 15 | 19 => 12 * count,
        // Enumeration, prototype of a function.
        ENUM | 13 => 8 * count,
        _ => return None,
    })
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BTF of these words of types, and of these names.
    fn btf(types: &[u32], names: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        out.extend(MAGIC.to_ne_bytes());
        out.extend([1, 0]);
        let length = types.len() as u32 * 4;
        for n in [24, 0, length, length, names.len() as u32] {
            out.extend(n.to_ne_bytes());
        }
        types.iter().for_each(|n| out.extend(n.to_ne_bytes()));
        out.extend(names);
        out
    }

    #[test]
    fn an_enumeration_behind_other_types() {
        let names = b"\0int\0reason\0NO\0YES\0";
        let info = |kind: u32, count: u32| kind << 24 | count;
        let types = [
            [1, info(1, 0), 4, 0x20].as_slice(),
            &[0, info(3, 0), 0, 1, 1, 5],
            &[0, info(4, 1), 8, 1, 1, 0],
            &[0, info(6, 1), 4, 12, 9],
            &[5, info(6, 2), 4, 12, 0, 15, 7],
        ]
        .concat();
        let whole = btf(&types, names);
        let found = values(&whole, "reason").unwrap();
        assert_eq!(found, BTreeMap::from([(0, "NO".into()), (7, "YES".into())]));
        assert!(values(&whole, "other").unwrap().is_empty());
        for end in 0..whole.len() {
            // Cut off it is an error, or the names at the end are.
            let _ = values(&whole[..end], "reason");
        }
        assert!(values(b"", "x").is_err());
        assert!(values(&btf(&[0, info(31, 0), 0], b"\0"), "x").is_err());
    }
}
