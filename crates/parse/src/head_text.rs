//! Files under their names, as `head` and `tail` print several of them: `==> /proc/irq/24/node <==`.
//!
//! **Source**: `write_header` in `head.c` of coreutils 9.1; busybox 1.36 prints the same.

/// Each path with its text, in their order. What stands before the first name is of none.
pub fn parse(bytes: &[u8]) -> Vec<(&str, &[u8])> {
    let mut all: Vec<(&str, &[u8])> = vec![];
    let mut from: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        if let Some(path) = header(line) {
            all.extend(from.and_then(|(path, start)| Some((path, bytes.get(start..at)?))));
            from = Some((path, at + line.len()));
        }
        at += line.len();
    }
    all.extend(from.and_then(|(path, start)| Some((path, bytes.get(start..)?))));
    all
}

/// The absolute path that a line names.
fn header(line: &[u8]) -> Option<&str> {
    let name = line.trim_ascii_end().strip_prefix(b"==> ")?.strip_suffix(b" <==")?;
    std::str::from_utf8(name).ok().filter(|path| path.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_of_the_name_above_it() {
        let text = b"head: error\n==> /proc/irq/24/node <==\n0\n\n==> /sys/a:b/empty <==\n\n==> relative <==\n1\n";
        assert_eq!(
            parse(text),
            [("/proc/irq/24/node", &b"0\n\n"[..]), ("/sys/a:b/empty", b"\n==> relative <==\n1\n"),]
        );
        assert!(parse(b"==> x\n<==\n==> /\xff <==\n1").is_empty());
        assert_eq!(parse(b"==> /a <=="), [("/a", &b""[..])]);
    }
}
