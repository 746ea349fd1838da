//! Files of shell assignments: `/etc/default/irqbalance`, `/etc/sysconfig/irqbalance`, systemd
//! `EnvironmentFile`s.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Number of the line, from 1.
    pub line: u32,
    pub name: String,
    /// Value without quotes; nothing is expanded.
    pub value: String,
}

/// The assignments of a file, as they stand; whatever else a script does is passed over.
pub fn parse(bytes: &[u8]) -> Vec<Assignment> {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .enumerate()
        .filter_map(|(n, line)| {
            let line_no = u32::try_from(n + 1).unwrap_or(u32::MAX);
            let line = line.trim();
            let line = line.strip_prefix("export ").map_or(line, str::trim_start);
            let (name, rest) = line.split_once('=')?;
            let is_name = !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && !name.starts_with(|c: char| c.is_ascii_digit());
            is_name.then(|| Assignment {
                line: line_no,
                name: name.to_owned(),
                value: unquoted(rest),
            })
        })
        .collect()
}

/// The first shell word: quoted as a whole, or up to a blank; a lone quote is kept.
fn unquoted(rest: &str) -> String {
    let rest = rest.trim();
    for quote in ['"', '\''] {
        if let Some((inside, _)) = rest.strip_prefix(quote).and_then(|r| r.split_once(quote)) {
            return inside.to_owned();
        }
    }
    // `NAME=a b` is `a` to a shell and `a b` to systemd; the comment ends both.
    rest.split_once(" #").map_or(rest, |(v, _)| v.trim_end()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_with_quotes_and_comments() {
        let v = parse(
            b"# IRQBALANCE_BANNED_CPUS=ff\nIRQBALANCE_BANNED_CPULIST=0-1,8\nexport A=\"--banirq=3 -t 5\" # x\nB='c'\nif [ x = y ]; then\n C=1 # why\n=3\n",
        );
        let rows: Vec<_> = v.iter().map(|a| (a.line, a.name.as_str(), a.value.as_str())).collect();
        assert_eq!(
            rows,
            [
                (2, "IRQBALANCE_BANNED_CPULIST", "0-1,8"),
                (3, "A", "--banirq=3 -t 5"),
                (4, "B", "c"),
                (6, "C", "1"),
            ]
        );
    }
}
