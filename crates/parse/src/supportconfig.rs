//! The text files of a supportconfig archive (SUSE): sections, each with what printed it.
//!
//! ```text
//! #==[ Command ]======================================#
//! # /usr/sbin/ethtool -k eth0
//! Features for eth0:
//! ```
//!
//! **Source**: `_log_cmd`, `conf_files` and `log_entry` in `supportconfig.rc` of supportutils 3.2.14.

/// A section of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section<'a> {
    /// What a command printed, both streams.
    Command {
        /// Its command line, the program without its folder: `ethtool -k eth0`.
        command: &'a str,
        text: &'a [u8],
    },
    /// A file without its blank lines and comments.
    File { path: &'a str, text: &'a [u8] },
}

/// All sections of these two kinds, in their order. A file that was not there, one that could not be
/// read, and a part of a log are none.
pub fn parse(bytes: &[u8]) -> Vec<Section<'_>> {
    let mut all = vec![];
    let mut begun: Option<(Kind, usize)> = None;
    let mut at = 0;
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        if line.starts_with(b"#==[ ") {
            all.extend(begun.and_then(|(kind, from)| section(kind, bytes.get(from..at)?)));
            begun = kind(line).map(|kind| (kind, at + line.len()));
        }
        at += line.len();
    }
    all.extend(begun.and_then(|(kind, from)| section(kind, bytes.get(from..)?)));
    all
}

#[derive(Clone, Copy)]
enum Kind {
    Command,
    File,
}

fn kind(line: &[u8]) -> Option<Kind> {
    match line {
        _ if line.starts_with(b"#==[ Command ]") => Some(Kind::Command),
        _ if line.starts_with(b"#==[ Configuration File ]") => Some(Kind::File),
        _ => None,
    }
}

/// What follows the line of its kind: a line with its name, then its text.
fn section(kind: Kind, rest: &[u8]) -> Option<Section<'_>> {
    let end = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    let (name, text) = rest.split_at_checked(end)?;
    let name = std::str::from_utf8(name).ok()?.strip_prefix("# ")?.trim();
    let text = text.trim_ascii();
    match kind {
        Kind::Command => {
            let program = name.split(' ').next()?;
            let folder = program.rfind('/').map_or(0, |slash| slash + 1);
            Some(Section::Command { command: name.get(folder..)?, text })
        }
        Kind::File if name.contains(' ') || !name.starts_with('/') => None,
        Kind::File => (!text.starts_with(b"sed: ")).then_some(Section::File { path: name, text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_of_its_name() {
        let text = b"title\n#==[ Command ]======================================#\n\
            # /usr/sbin/ethtool -k eth0\nFeatures for eth0:\n\n\
            #==[ Configuration File ]===========================#\n# /proc/net/snmp\nTcp: A\n\n\n\
            #==[ Configuration File ]===========================#\n# /etc/x - File not found\n\n\
            #==[ Configuration File ]===========================#\n# /proc/sys/a\nsed: read error\n\
            #==[ Log File ]=====================================#\n# /var/log/x - Last 500 Lines\na\n\
            #==[ Command ]======================================#\nno name\n\
            #==[ Command ]======================================#\n# sysctl -a 2>/dev/null | grep ^vm\n";
        assert_eq!(
            parse(text),
            [
                Section::Command { command: "ethtool -k eth0", text: b"Features for eth0:" },
                Section::File { path: "/proc/net/snmp", text: b"Tcp: A" },
                Section::Command { command: "sysctl -a 2>/dev/null | grep ^vm", text: b"" },
            ]
        );
        assert!(parse(b"").is_empty() && parse(b"#==[ Command ]").is_empty());
    }
}
