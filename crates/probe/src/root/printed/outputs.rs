//! Where the outputs of commands are in a tree: by their names, which are the commands.

use std::collections::BTreeMap;

use parse::{
    head_text,
    supportconfig::{self, Section},
};

use super::Backing;

/// The folders of outputs: the tree itself for files by hand, and those of a sosreport.
const FOLDERS: [&str; 8] = [
    "/",
    "/sos_commands/networking",
    "/sos_commands/conntrack",
    "/sos_commands/kernel",
    "/sos_commands/logs",
    "/sos_commands/host",
    "/sos_commands/general",
    "/sos_commands/processor",
];

/// Files of the kernel that lie in the tree under their last name (`softnet_stat.txt`) or their whole
/// (`proc-net-softnet_stat.txt`).
const BY_HAND: [&str; 22] = [
    "/etc/os-release",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/interrupts",
    "/proc/meminfo",
    "/proc/net/dev",
    "/proc/net/netstat",
    "/proc/net/snmp",
    "/proc/net/snmp6",
    "/proc/net/sockstat",
    "/proc/net/sockstat6",
    "/proc/net/softnet_stat",
    "/proc/net/stat/arp_cache",
    "/proc/net/stat/ndisc_cache",
    "/proc/net/stat/nf_conntrack",
    "/proc/net/tcp",
    "/proc/net/tcp6",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/sys/kernel/hostname",
    "/proc/version",
    "/proc/vmstat",
];

/// A text of the tree.
pub struct Text {
    /// The file that has it, as the archive names it; with the command, where one file has many.
    pub origin: String,
    /// The text itself; `None` where it is the whole file.
    content: Option<Vec<u8>>,
}

impl Text {
    /// A whole file of the tree, by its path.
    fn file(path: &str) -> Self {
        Self { origin: path.trim_start_matches('/').to_owned(), content: None }
    }

    /// A text that stands in the file `origin`, or is made of it.
    pub fn of(origin: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self { origin: origin.into(), content: Some(text.into()) }
    }

    pub fn read(&self, backing: &Backing) -> Option<Vec<u8>> {
        match &self.content {
            None => backing.read(&format!("/{}", self.origin)).ok(),
            Some(text) => Some(text.clone()),
        }
    }
}

/// Outputs by [`key`], each with the name as it is written.
#[derive(Default)]
pub struct Outputs(BTreeMap<String, Vec<(String, Text)>>);

impl Outputs {
    /// What the first of these commands printed that is there; `subject` is the interface that it was
    /// given, or empty. Blanks, dashes and underscores are alike, but not within the subject.
    pub fn find(&self, commands: &[&str], subject: &str) -> Option<&Text> {
        commands.iter().find_map(|command| {
            let of_subject = |name: &str| {
                name.strip_suffix(subject).is_some_and(|rest| key(rest) == key(command))
            };
            let all = self.0.get(&key(&format!("{command} {subject}")))?;
            all.iter().find(|(name, _)| of_subject(name)).map(|(_, text)| text)
        })
    }

    /// What `ss` printed of these sockets: where it ran several times, with the most options.
    pub fn sockets(&self, kind: SocketKind) -> Option<&Text> {
        let options = |key: &String| {
            let options = key.strip_prefix("ss-")?.to_owned();
            kind.is_listed(&options).then_some(options.len())
        };
        let listed = self.0.iter().filter_map(|(key, all)| Some((options(key)?, all)));
        listed.max_by_key(|(count, _)| *count)?.1.first().map(|(_, text)| text)
    }

    fn insert(&mut self, name: String, text: Text) {
        self.0.entry(key(&name)).or_default().push((name, text));
    }
}

/// Sockets that `ss` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketKind {
    Listeners,
    /// TCP connections with their `tcp_info`.
    Connections,
    /// UDP sockets with their buffers.
    Udp,
}

impl SocketKind {
    /// Whether `ss` lists all of them, with these options as one word of letters, and numbers for ports.
    fn is_listed(self, options: &str) -> bool {
        let has = |option: char| options.contains(option);
        let of_protocol = |this: char, other: char| has(this) || !has(other) && !has('x');
        let letters = options.bytes().all(|b| b.is_ascii_alphabetic());
        letters
            && has('n')
            && match self {
                Self::Listeners => (has('a') || has('l')) && of_protocol('t', 'u'),
                Self::Connections => has('i') && !has('l') && of_protocol('t', 'u'),
                Self::Udp => has('m') && has('a') && of_protocol('u', 't'),
            }
    }
}

/// `ethtool_-l_eth0`, `ethtool-l-eth0` and `ethtool -l eth0` are one.
fn key(name: &str) -> String {
    let words: Vec<&str> = name.split([' ', '-', '_']).filter(|w| !w.is_empty()).collect();
    words.join("-")
}

/// A file's name without what says that it is a text.
fn stem(name: &str) -> &str {
    [".txt", ".out", ".log"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

/// The file of the kernel that a file by hand stands for. A sosreport has outputs of tools beside
/// `proc`, without an ending (`netstat`), and its own version.
fn kernels(file: &str) -> Option<&'static str> {
    let name = key(stem(file));
    let is = |path: &&str| {
        let last = path.rsplit('/').next().unwrap_or_default();
        let ambiguous = ["version", "netstat"].contains(&name.as_str());
        key(&path.replace('/', "-")) == name || key(last) == name && !ambiguous
    };
    BY_HAND.iter().copied().filter(|_| stem(file) != file).find(is)
}

/// Whether a name shows that a folder holds a host's files, saved by hand.
pub fn is_known(name: &str) -> bool {
    const COMMANDS: [&str; 4] = ["ethtool-", "ip-", "sysctl-a", "tc-"];
    let (text, key) = (stem(name), key(stem(name)));
    text.len() < name.len()
        && (SUPPORTCONFIG.first() == Some(&name)
            || kernels(name).is_some()
            || COMMANDS.iter().any(|c| key.starts_with(c)))
}

/// Texts of a supportconfig archive with sections that are read.
const SUPPORTCONFIG: [&str; 8] = [
    "basic-environment.txt",
    "basic-health-check.txt",
    "boot.txt",
    "env.txt",
    "hardware.txt",
    "memory.txt",
    "network.txt",
    "proc.txt",
];

/// Sections of all texts: a host of 1,000 interfaces has 60,000 settings.
const MAX_SECTIONS: usize = 500_000;

/// Bytes of all texts that are taken apart here.
const MAX_BYTES: u64 = 512 << 20;

/// The outputs of a tree, and the files of the kernel that lie in it under other names.
pub fn read(backing: &Backing) -> (Outputs, BTreeMap<String, Text>) {
    let (mut outputs, mut files) = (Outputs::default(), BTreeMap::new());
    let mut sections = MAX_SECTIONS;
    let mut bytes_left = MAX_BYTES;
    for folder in FOLDERS {
        let mut names = backing.entries(folder).unwrap_or_default();
        names.sort();
        let by_hand = folder == "/";
        let supportconfig = by_hand && names.iter().any(|n| n == SUPPORTCONFIG[0]);
        for name in names {
            let path = format!("{}/{name}", folder.trim_end_matches('/'));
            let mut content = || {
                let text = backing.read(&path).unwrap_or_default();
                let left = bytes_left.checked_sub(text.len() as u64);
                left.map_or_else(Vec::new, |left| {
                    bytes_left = left;
                    text
                })
            };
            let kernels = by_hand.then(|| kernels(&name)).flatten();
            if supportconfig && SUPPORTCONFIG.contains(&name.as_str()) {
                of_supportconfig((&name, &content()), &mut sections, &mut outputs, &mut files);
            } else if let Some(kernels) = kernels {
                files.entry(kernels.to_owned()).or_insert(Text::file(&path));
            } else if by_hand && name == FILES {
                let content = content();
                let all = head_text::parse(&content).into_iter().take(MAX_SECTIONS);
                for (path, text) in all.filter(|(path, _)| is_kernels(path)) {
                    files.entry(path.to_owned()).or_insert(Text::of(FILES, text));
                }
            } else {
                outputs.insert(stem(&name).to_owned(), Text::file(&path));
            }
        }
    }
    (outputs, files)
}

/// Files that `head` printed, with their names.
const FILES: &str = "files.txt";

fn is_kernels(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/sys/")
}

/// Adds what a text of a supportconfig archive says. Of `/etc` it has no comments, so that lines have
/// other numbers than on the host.
fn of_supportconfig(
    (file, text): (&str, &[u8]),
    sections: &mut usize,
    outputs: &mut Outputs,
    files: &mut BTreeMap<String, Text>,
) {
    let all = supportconfig::parse(text);
    let all = all.into_iter().take(*sections);
    *sections -= all.len();
    for section in all {
        match section {
            Section::Command { command, text } => {
                outputs.insert(command.to_owned(), Text::of(format!("{file}: {command}"), text));
            }
            // Where nothing is left, a value may have looked like a comment: `#1 SMP`.
            Section::File { text: [], .. } => {}
            Section::File { path, text } if is_kernels(path) || path == "/etc/os-release" => {
                files.entry(path.to_owned()).or_insert(Text::of(file, text));
            }
            Section::File { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_alike_but_those_of_an_interface() {
        let mut outputs = Outputs::default();
        for name in ["ethtool_-l_br-1", "ethtool-g-br_1", "ethtool S eth0.100", "ethtool-eth0"] {
            outputs.insert(name.to_owned(), Text::of(name, name));
        }
        let of = |command, nic| outputs.find(&[command], nic).map(|text| text.origin.clone());
        assert_eq!(of("ethtool -l", "br-1").as_deref(), Some("ethtool_-l_br-1"));
        assert_eq!(of("ethtool -g", "br_1").as_deref(), Some("ethtool-g-br_1"));
        assert_eq!(of("ethtool -S", "eth0.100").as_deref(), Some("ethtool S eth0.100"));
        assert_eq!(of("ethtool", "eth0").as_deref(), Some("ethtool-eth0"));
        for (command, nic) in [
            ("ethtool -l", "br_1"),
            ("ethtool -g", "br-1"),
            ("ethtool -l", "1"),
            ("ethtool -s", "eth0.100"),
        ] {
            assert_eq!(of(command, nic), None, "{command} {nic}");
        }
    }

    #[test]
    fn sockets_come_from_the_text_that_lists_them() {
        use SocketKind::{Connections, Listeners, Udp};
        let mut outputs = Outputs::default();
        for name in ["ss_-s", "ss -4tanim", "ss_-ltn", "ss_-ltnp", "ss-ti", "ss_-xan", "ss_-tuanp"]
        {
            outputs.insert(name.to_owned(), Text::of(name, name));
        }
        let of = |outputs: &Outputs, kind| outputs.sockets(kind).map(|text| text.origin.clone());
        assert_eq!(of(&outputs, Listeners).as_deref(), Some("ss_-tuanp"));
        assert_eq!((of(&outputs, Connections), of(&outputs, Udp)), (None, None));
        outputs.insert("ss_-peaonmi".to_owned(), Text::of("ss_-peaonmi", ""));
        for kind in [Listeners, Connections, Udp] {
            assert_eq!(of(&outputs, kind).as_deref(), Some("ss_-peaonmi"), "{kind:?}");
        }
    }

    #[test]
    fn a_name_by_hand_stands_for_a_file_of_the_kernel() {
        for name in
            ["softnet_stat", "softnet-stat", "proc-net-softnet_stat", "proc net softnet stat"]
        {
            assert_eq!(kernels(&format!("{name}.txt")), Some("/proc/net/softnet_stat"), "{name}");
        }
        assert_eq!(kernels("stat.out"), Some("/proc/stat"));
        assert_eq!(kernels("proc-version.txt"), Some("/proc/version"));
        // Those that a sosreport has beside `proc`.
        for name in ["version.txt", "netstat", "hostname", "netstat-s.txt"] {
            assert_eq!(kernels(name), None, "{name}");
        }
        assert!(is_known("interrupts.txt") && is_known("ethtool-l-eth0.txt"));
        assert!(!is_known("notes.txt") && !is_known("stat"));
    }
}
