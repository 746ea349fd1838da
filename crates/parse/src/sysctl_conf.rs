//! `sysctl.d` files: `net.core.rmem_max = 4194304`. **Source**: sysctl.d(5), sysctl.conf(5).

use model::CpuSet;

/// What a sysctl file says, line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SysctlConf {
    /// Assignments and exclusions, as they stand.
    pub settings: Vec<Setting>,
    /// Lines that are neither, nor blank, nor a comment: number from 1 and text.
    pub strange: Vec<(u32, String)>,
}

/// One line of a sysctl file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Number of the line, from 1.
    pub line: u32,
    /// The path below `/proc/sys` (`net/core/rmem_max`); may hold `*`, `?`, `[…]`.
    pub path: String,
    /// The value without blanks around it. `None`: `-key` without a value, which excludes this key
    /// from globs.
    pub value: Option<String>,
    /// A leading `-`: failing to set it is no error.
    pub may_fail: bool,
}

/// Parses a whole file; a line that makes no sense is kept in `strange`, the rest counts.
pub fn parse(bytes: &[u8]) -> SysctlConf {
    let mut conf = SysctlConf::default();
    for (n, raw) in bytes.split(|&b| b == b'\n').enumerate() {
        let line = u32::try_from(n + 1).unwrap_or(u32::MAX);
        let text = String::from_utf8_lossy(raw);
        let text = text.trim();
        if text.is_empty() || text.starts_with(['#', ';']) {
            continue;
        }
        let (may_fail, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let (key, value) = match rest.split_once('=') {
            Some((k, v)) => (k.trim(), Some(v.trim().to_owned())),
            None => (rest, None),
        };
        let path = path(key);
        if path.is_empty() || path.contains(char::is_whitespace) || (value.is_none() && !may_fail) {
            conf.strange.push((line, text.chars().take(120).collect()));
            continue;
        }
        conf.settings.push(Setting { line, path, value, may_fail });
    }
    conf
}

/// A key as the path below `/proc/sys`. Whichever of `.` and `/` comes first separates; the
/// other one then stands for itself, so that `net.ipv4.conf.eth0/100.rp_filter` names the VLAN
/// `eth0.100`.
pub fn path(key: &str) -> String {
    let key = key.trim().trim_start_matches('/');
    let key = key.strip_prefix("proc/sys/").unwrap_or(key);
    match key.find(['.', '/']) {
        Some(i) if key.as_bytes().get(i) == Some(&b'.') => swap(key),
        _ => key.to_owned(),
    }
}

/// The dotted name of a path below `/proc/sys`.
pub fn dotted(path: &str) -> String {
    swap(path)
}

fn swap(s: &str) -> String {
    s.chars()
        .map(|c| match c {
            '.' => '/',
            '/' => '.',
            c => c,
        })
        .collect()
}

/// A value with blanks folded to one space, as two spellings of one setting compare.
pub fn folded(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether two spellings give the kernel the same: blanks, leading zeros, hex masks with and
/// without leading groups, and lists of ports in another order of writing.
pub fn same_value(a: &str, b: &str) -> bool {
    let (a, b) = (folded(a), folded(b));
    if a == b {
        return true;
    }
    let words =
        |s: &str| -> Option<Vec<i128>> { s.split(' ').map(|w| w.parse::<i128>().ok()).collect() };
    if let (Some(x), Some(y)) = (words(&a), words(&b)) {
        return x == y;
    }
    if a.contains(',') || b.contains(',') || a.contains('-') || b.contains('-') {
        if let (Ok(x), Ok(y)) = (a.parse::<CpuSet>(), b.parse::<CpuSet>()) {
            return x == y;
        }
        if let (Ok(x), Ok(y)) =
            (crate::hexmask::parse(a.as_bytes()), crate::hexmask::parse(b.as_bytes()))
        {
            return x == y;
        }
    }
    false
}

/// Whether the key holds a pattern.
pub fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// Whether a pattern covers a path, component by component as glob(7) does: `*` does not
/// cross a `/`.
pub fn glob_matches(pattern: &str, path: &str) -> bool {
    let (mut p, mut s) = (pattern.split('/'), path.split('/'));
    loop {
        match (p.next(), s.next()) {
            (None, None) => return true,
            (Some(p), Some(s)) if component_matches(p.as_bytes(), s.as_bytes()) => {}
            _ => return false,
        }
    }
}

/// Iterative matching with one point to come back to: linear memory, quadratic time at worst.
fn component_matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&c) = text.get(t) {
        match one(pattern, p, c) {
            Some(next) => (p, t) = (next, t + 1),
            None if pattern.get(p) == Some(&b'*') => {
                star = Some((p, t));
                p += 1;
            }
            None => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|&c| c == b'*'))
}

/// Whether the pattern's element at `p` (no `*`) takes `c`; where the next element starts.
fn one(pattern: &[u8], p: usize, c: u8) -> Option<usize> {
    match *pattern.get(p)? {
        b'*' => None,
        b'?' => Some(p + 1),
        b'[' => match class(pattern, p + 1, c) {
            Some((end, true)) => Some(end),
            Some((_, false)) => None,
            None => (c == b'[').then_some(p + 1),
        },
        literal => (literal == c).then_some(p + 1),
    }
}

/// Matches `c` with a bracket class that begins at `i`: returns its end, and whether it matches.
/// `None` when it is never closed.
fn class(pattern: &[u8], mut i: usize, c: u8) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(i)?, b'!' | b'^');
    if negated {
        i += 1;
    }
    let first = i;
    let mut found = false;
    loop {
        let low = *pattern.get(i)?;
        if low == b']' && i > first {
            return Some((i + 1, found != negated));
        }
        match (pattern.get(i + 1), pattern.get(i + 2)) {
            (Some(b'-'), Some(&high)) if high != b']' => {
                found |= (low..=high).contains(&c);
                i += 3;
            }
            _ => {
                found |= low == c;
                i += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_systemd_and_procps_read() {
        let conf = parse(
            b"# a comment\n; another\n\nnet.core.rmem_max = 4194304\n\
              -net.ipv4.tcp_rmem=4096 131072\t33554432 \n\
              net/ipv4/conf/eth0.100/rp_filter = 1\nnet.ipv4.conf.*.rp_filter=2\n\
              -net.ipv4.conf.all.rp_filter\nnonsense\n = 3\n",
        );
        let rows: Vec<_> = conf
            .settings
            .iter()
            .map(|s| (s.line, s.path.as_str(), s.value.as_deref(), s.may_fail))
            .collect();
        assert_eq!(
            rows,
            [
                (4, "net/core/rmem_max", Some("4194304"), false),
                (5, "net/ipv4/tcp_rmem", Some("4096 131072\t33554432"), true),
                (6, "net/ipv4/conf/eth0.100/rp_filter", Some("1"), false),
                (7, "net/ipv4/conf/*/rp_filter", Some("2"), false),
                (8, "net/ipv4/conf/all/rp_filter", None, true),
            ]
        );
        assert_eq!(conf.strange, [(9, "nonsense".into()), (10, "= 3".into())]);
    }

    #[test]
    fn a_vlan_keeps_its_dot() {
        assert_eq!(path("net.ipv4.conf.eth0/100.rp_filter"), "net/ipv4/conf/eth0.100/rp_filter");
        assert_eq!(dotted("net/ipv4/conf/eth0.100/rp_filter"), "net.ipv4.conf.eth0/100.rp_filter");
        assert_eq!(path("/proc/sys/net/core/somaxconn"), "net/core/somaxconn");
        assert_eq!(path("vm"), "vm");
    }

    #[test]
    fn globs_stay_within_a_component() {
        for (p, s, yes) in [
            ("net/ipv4/conf/*/rp_filter", "net/ipv4/conf/eth0/rp_filter", true),
            ("net/ipv4/*/rp_filter", "net/ipv4/conf/eth0/rp_filter", false),
            ("net/ipv4/conf/eth?/x", "net/ipv4/conf/eth1/x", true),
            ("net/ipv4/conf/eth[0-2]/x", "net/ipv4/conf/eth1/x", true),
            ("net/ipv4/conf/eth[!0-2]/x", "net/ipv4/conf/eth1/x", false),
            ("a/[]]/b", "a/]/b", true),
            ("a/*b*c", "a/xbyybzc", true),
            ("a/*b*c", "a/xbyybz", false),
            ("a", "a/b", false),
            ("a/[", "a/[", true),
        ] {
            assert_eq!(glob_matches(p, s), yes, "{p} {s}");
        }
    }

    #[test]
    fn two_spellings_of_one_value() {
        assert!(same_value("4096\t131072  33554432", "4096 131072 33554432"));
        assert!(same_value("00000000,00000003", "3,") || same_value("00000000,00000003", "0,3"));
        assert!(same_value("8080,9148", "9148,8080"));
        assert!(same_value("1", "01"));
        assert!(!same_value("1", "2"));
        assert!(!same_value("", "0"));
        assert!(!same_value("bbr", "cubic"));
    }

    proptest! {
        #[test]
        fn every_path_matches_itself_and_comes_back(s in "[a-z0-9_]{1,8}(/[a-z0-9_.]{1,8}){0,4}") {
            prop_assert!(glob_matches(&s, &s));
            if s.contains('/') {
                prop_assert_eq!(path(&dotted(&s)), s);
            }
        }

        #[test]
        fn a_star_matches_every_component(a in "[a-z]{0,6}", b in "[a-z]{0,6}", c in "[a-z]{0,6}") {
            let (pattern, text) = (format!("{a}*{c}"), format!("{a}{b}{c}"));
            prop_assert!(glob_matches(&pattern, &text));
        }

        #[test]
        fn never_panics_nor_hangs(p in "[a-c*?\\[\\]!-]{0,30}", s in "[a-c]{0,40}") {
            let _ = glob_matches(&p, &s);
        }
    }
}
