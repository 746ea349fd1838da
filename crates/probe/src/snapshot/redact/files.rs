//! Names that can only be recognised by the file that they are in.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Redactor, text};
use crate::snapshot::CapturedRun;

/// Files that hold nothing but a host's or domain's name.
pub const NAMES: [&str; 3] =
    ["/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname", "/etc/hostname"];

/// Programs with arguments that are settings.
const OPEN_PROGRAMS: [&str; 3] = ["irqbalance", "tuned", "tuned-adm"];

/// Version numbers look like addresses.
const VERSIONS: [&str; 4] = ["/osrelease", "/kernel/version", "/os-release", "/drvinfo.json"];

/// Files with an id or a secret as their whole content.
const IDS: [&str; 6] = [
    "phys_port_id",
    "phys_switch_id",
    "product_serial",
    "board_serial",
    "chassis_serial",
    "tcp_fastopen_key",
];

/// File systems with mounts by the kernel, not by the owner.
const KERNEL_FS: [&str; 12] = [
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "mqueue",
    "proc",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// Names of folders that readers look up, and domains without information.
const COMMON: [&str; 20] = [
    "conf",
    "containers",
    "default",
    "docker",
    "etc",
    "home",
    "host",
    "internal",
    "irqbalance",
    "lan",
    "linux",
    "local",
    "network",
    "networkmanager",
    "os",
    "release",
    "sysconfig",
    "sysctl",
    "systemd",
    "tuned",
];

/// Words in names of settings with secret values.
const SECRETS: [&str; 8] =
    ["password", "passwd", "secret", "token", "psk", "private", "credential", "fastopen_key"];

/// The path on the host of a file in a recording, within a sample or not.
fn on_host(place: &str) -> &str {
    let Some(sample) = place.strip_prefix("/netwright/samples/") else { return place };
    sample.find('/').and_then(|i| sample.get(i..)).unwrap_or(place)
}

/// Whether a host's name is also a word of the paths and programs that were recorded, so that
/// replacing it everywhere would break them: a host called `vm` must not lose `/proc/sys/vm`.
pub fn is_common(name: &str, taken: &CapturedRun) -> bool {
    let is_word = |text: &str| {
        text.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w.eq_ignore_ascii_case(name))
    };
    let recording = &taken.recording;
    let kernels = |place: &str| {
        ["/proc/", "/sys/", "/netwright/", "/usr/", "/lib/"].iter().any(|p| place.starts_with(p))
            && !place.contains("/cgroup/")
    };
    let comms = recording.files.iter().filter(|(place, _)| place.ends_with("/comm"));
    // A dictionary word may be one of the kernel's values: `up`, `none`, `performance`.
    let values = name.bytes().all(|b| b.is_ascii_alphabetic());
    let values = recording.files.iter().filter(|(place, bytes)| {
        let reported = place.starts_with("/sys/") || place.starts_with("/netwright/answers/");
        values && reported && text::is_text(bytes)
    });
    name.len() < 3
        || !name.bytes().any(|b| b.is_ascii_alphabetic())
        || COMMON.contains(&name)
        || recording.files.keys().filter(|p| kernels(p)).any(|p| is_word(p))
        || taken.manifest.listings.iter().any(|(place, names)| {
            kernels(place) && (is_word(place) || names.iter().any(|n| is_word(n)))
        })
        || comms.chain(values).any(|(_, bytes)| is_word(&String::from_utf8_lossy(bytes)))
}

impl Redactor {
    /// A path with the names in it replaced.
    pub fn path(&mut self, place: &str) -> String {
        String::from_utf8_lossy(&self.text(place.as_bytes())).into_owned()
    }

    /// A name in a folder, as it stands at the end of its path.
    pub fn entry(&mut self, folder: &str, name: &str) -> String {
        let whole = self.path(&format!("{}/{name}", folder.trim_end_matches('/')));
        whole.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// A link's target. The open files of a process are private, except for sockets.
    pub fn target(&mut self, place: &str, target: &str) -> String {
        let opened = place.contains("/fd/") || place.ends_with("/cwd");
        if opened && !crate::root::is_magic(target) {
            return format!("/redacted-{}", self.hex("file", target.as_bytes(), 8));
        }
        self.path(target)
    }

    /// A file's content with the names in it replaced.
    pub fn content(&mut self, place: &str, bytes: Vec<u8>) -> Vec<u8> {
        let path = on_host(place);
        let name = path.rsplit('/').next().unwrap_or_default();
        let of_process = path.starts_with("/proc/") && path != "/proc/cmdline";
        if NAMES.contains(&path) {
            return self.name(&bytes);
        }
        if name == "cmdline" && of_process {
            return self.arguments(&bytes);
        }
        if VERSIONS.iter().any(|v| path.ends_with(v)) || !text::is_text(&bytes) {
            return bytes;
        }
        if IDS.contains(&name) {
            let digits = bytes.trim_ascii_end().len().min(64);
            return format!("{}\n", self.hex("id", &bytes, digits)).into_bytes();
        }
        let bytes = match name {
            "cmdline" => self.kernel_cmdline(&bytes),
            "numa_maps" => self.each_word(&bytes, |r, w| r.mapped_file(w)),
            "mountinfo" => lines(&bytes, |l| self.mount(l)),
            "tcp" | "udp" | "udplite" | "raw" | "icmp" | "tcp6" | "udp6" | "udplite6" | "raw6"
            | "icmp6" | "route" | "if_inet6" | "ipv6_route"
                if path.contains("/net/") =>
            {
                let network_order = matches!(name, "if_inet6" | "ipv6_route");
                return self.each_word(&bytes, |r, w| {
                    r.hex_address(w, name == "route", network_order).or_else(|| Some(r.text(w)))
                });
            }
            _ if ["/etc/", "/usr/lib/", "/lib/", "/run/"].iter().any(|p| path.starts_with(p)) => {
                lines(&bytes, |l| self.setting(l))
            }
            _ => bytes,
        };
        self.text(&bytes)
    }

    fn name(&self, bytes: &[u8]) -> Vec<u8> {
        match parse::text::word(bytes).as_str() {
            "" | "(none)" | "localhost" => bytes.to_vec(),
            name => {
                let known = self.words.iter().find(|w| w.0.eq_ignore_ascii_case(name));
                let new = known.map_or_else(|| self.host(name), |w| w.1.clone());
                format!("{new}\n").into_bytes()
            }
        }
    }

    /// `argv` with NULs: the program's own name, and how many arguments it had.
    fn arguments(&mut self, bytes: &[u8]) -> Vec<u8> {
        let arguments: Vec<&[u8]> = bytes.split(|&b| b == 0).collect();
        let base =
            |a: &[u8]| String::from_utf8_lossy(a).rsplit('/').next().unwrap_or_default().to_owned();
        // An interpreter's script comes after its own options.
        let open = arguments.iter().take(4).any(|a| OPEN_PROGRAMS.contains(&base(a).as_str()));
        let mut new = Vec::with_capacity(arguments.len());
        for (i, &argument) in arguments.iter().enumerate() {
            new.push(if argument.is_empty() {
                Vec::new()
            } else if open {
                self.text(argument)
            } else if i == 0 {
                // A program may have written its state here: `postgres: user db 10.0.0.1`.
                let text = String::from_utf8_lossy(argument).into_owned();
                let (program, rest) = text.split_once(' ').unwrap_or((&text, ""));
                let mut new = self.text(base(program.as_bytes()).as_bytes());
                if !rest.is_empty() {
                    new.extend(format!(" {}", self.argument(rest.as_bytes())).bytes());
                }
                new
            } else {
                self.argument(argument).into_bytes()
            });
        }
        new.join(&0)
    }

    fn argument(&self, argument: &[u8]) -> String {
        format!("arg-{}", self.hex("argument", argument, 8))
    }

    /// The kernel's own settings; what is behind `--` is init's.
    fn kernel_cmdline(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut inits = false;
        self.each_word(bytes, |r, word| {
            let argument = || r.argument(word).into_bytes();
            if word == b"--" {
                inits = true;
                return None;
            }
            if inits {
                return Some(argument());
            }
            let at = word.iter().position(|&b| b == b'=')?;
            let (key, value) = (word.get(..=at)?, word.get(at + 1..)?);
            let plain = |b: &u8| b.is_ascii_alphanumeric() || b",.:_-+^".contains(b);
            let device = value.starts_with(b"/dev/") || value.starts_with(b"UUID=");
            let name = String::from_utf8_lossy(key).to_lowercase();
            if SECRETS.iter().any(|s| name.contains(s)) || name.ends_with("key=") {
                return Some([key, argument().as_slice()].concat());
            }
            let kernels = device || key == b"BOOT_IMAGE=" || value.iter().all(plain);
            (!kernels).then(|| [key, r.argument(value).as_bytes()].concat())
        })
    }

    fn mapped_file(&self, word: &[u8]) -> Option<Vec<u8>> {
        let file = word.strip_prefix(b"file=")?;
        Some(format!("file=/redacted-{}", self.hex("file", file, 8)).into_bytes())
    }

    /// A line of `/proc/PID/mountinfo`.
    fn mount(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let text = String::from_utf8_lossy(line).into_owned();
        let mut fields: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let dash = fields.iter().position(|f| f == "-")?;
        if fields.get(dash + 1).is_some_and(|fs| KERNEL_FS.contains(&fs.as_str())) {
            return None;
        }
        for at in [3, 4, dash + 2] {
            if let Some(field) = fields.get_mut(at).filter(|f| *f != "/") {
                *field = format!("/redacted-{}", self.hex("mount", field.as_bytes(), 8));
            }
        }
        if let Some(options) = fields.get_mut(dash + 3) {
            "redacted".clone_into(options);
        }
        Some(fields.join(" ").into_bytes())
    }

    /// A line of a configuration file: comments may identify people, and secrets are not settings.
    fn setting(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let trimmed = line.trim_ascii_start();
        if trimmed.starts_with(b"#!") {
            return None;
        }
        if matches!(trimmed.first(), Some(b'#' | b';')) {
            return Some(b"#".to_vec());
        }
        let at = line.iter().position(|b| matches!(b, b'=' | b':'))?;
        let key = String::from_utf8_lossy(line.get(..at)?).to_lowercase();
        SECRETS
            .iter()
            .any(|s| key.contains(s))
            .then(|| [line.get(..=at).unwrap_or_default(), b"redacted"].concat())
    }

    /// A word of `/proc/net/*`: `0100007F:1F90`, 32 digits before a colon or alone.
    fn hex_address(&mut self, word: &[u8], route: bool, network_order: bool) -> Option<Vec<u8>> {
        let (address, port) = match word.iter().position(|&b| b == b':') {
            Some(at) => word.split_at(at),
            None => (word, &[][..]),
        };
        if !address.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let digits = std::str::from_utf8(address).ok()?;
        let new = match (address.len(), port.is_empty()) {
            // The kernel prints the address as the number it is in memory.
            (8, false) if port.len() == 5 => self.little_endian_v4(digits)?,
            (8, true) if route => self.little_endian_v4(digits)?,
            (32, _) if matches!(port.len(), 0 | 5) => {
                let mut words = [0u32; 4];
                for (i, w) in words.iter_mut().enumerate() {
                    let n = u32::from_str_radix(digits.get(8 * i..8 * i + 8)?, 16).ok()?;
                    *w = if network_order { n } else { n.swap_bytes() };
                }
                let bits = words.iter().fold(0u128, |all, &w| all << 32 | u128::from(w));
                let new = u128::from(self.addresses.v6(Ipv6Addr::from(bits)));
                let word = |i: u32| {
                    let w = (new >> (96 - 32 * i)) as u32;
                    if network_order { w } else { w.swap_bytes() }
                };
                let text: String = (0..4).map(|i| format!("{:08X}", word(i))).collect();
                if network_order { text.to_lowercase() } else { text }
            }
            _ => return None,
        };
        Some([new.as_bytes(), port].concat())
    }

    fn little_endian_v4(&mut self, digits: &str) -> Option<String> {
        let n = u32::from_str_radix(digits, 16).ok()?;
        let new = self.addresses.v4(Ipv4Addr::from(n.swap_bytes()));
        Some(format!("{:08X}", u32::from(new).swap_bytes()))
    }

    /// Each word between blanks by what `new` makes of it; the blanks stay.
    fn each_word(
        &mut self,
        bytes: &[u8],
        mut new: impl FnMut(&mut Self, &[u8]) -> Option<Vec<u8>>,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for piece in bytes.split_inclusive(|b| b.is_ascii_whitespace()) {
            let end = piece.len() - usize::from(piece.last().is_some_and(u8::is_ascii_whitespace));
            let (word, blank) = piece.split_at(end);
            match new(self, word).filter(|_| !word.is_empty()) {
                Some(w) => out.extend(w),
                None => out.extend(word),
            }
            out.extend(blank);
        }
        out
    }
}

/// Each line by what `new` makes of it.
fn lines(bytes: &[u8], mut new: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    let lines: Vec<Vec<u8>> =
        bytes.split(|&b| b == b'\n').map(|l| new(l).unwrap_or_else(|| l.to_vec())).collect();
    lines.join(&b'\n')
}
