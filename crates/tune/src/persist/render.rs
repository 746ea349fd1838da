//! Turns kept values into this distribution's files. Reads the host, writes nothing.

use std::collections::BTreeMap;

use model::{
    Facts, quote,
    tune::{KeptValue, NotKept, PersistNote},
};
use parse::sysctl_conf;

use super::{
    destination::Destination,
    irq, kept_by, link, not_kept,
    owner::{self, Mtu},
    record::{Interface, PersistedValue, Subject},
};
use crate::{Host, knobs};

/// A file without our checksum line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub path: String,
    /// Permission bits of the file.
    pub mode: u32,
    pub body: String,
}

/// Result of rendering kept values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    pub files: Vec<Output>,
    pub kept: Vec<KeptValue>,
    pub not_kept: Vec<NotKept>,
    pub notes: Vec<PersistNote>,
}

/// Sorts late, so that it overrides most files; on Debian `/etc/sysctl.conf` is `99-sysctl.conf`.
const SYSCTL: &str = "/etc/sysctl.d/99-zz-netwright.conf";
const RULES: &str = "/etc/udev/rules.d/99-netwright.rules";
const TMPFILES: &str = "/etc/tmpfiles.d/netwright.conf";

/// Renders the files for the kept values.
pub fn render(
    host: &Host,
    destination: &Destination,
    facts: &Facts,
    kept: &[PersistedValue],
) -> Rendered {
    let system = destination.system(host);
    let mut work = Renderer {
        host: (!destination.is_another_system()).then_some(host),
        settings: destination.settings(host),
        system,
        facts,
        systemd: systemd_version(system),
        out: Rendered::default(),
        bodies: BTreeMap::new(),
    };
    let (plain, odd): (Vec<PersistedValue>, Vec<PersistedValue>) =
        kept.iter().cloned().partition(is_plain);
    let (kept, odd) = (plain.as_slice(), odd);
    odd.iter().for_each(|k| work.give_up(k, NOT_PLAIN));
    work.sysctls(kept);
    work.interfaces(kept);
    work.interrupts(kept);
    work.units(kept);
    work.sysfs(kept);
    let file = |(path, (mode, body))| Output { path, mode, body };
    work.out.notes.extend(destination.note().filter(|_| !kept.is_empty()));
    work.out.files = work.bodies.into_iter().map(file).collect();
    work.out
}

/// systemd's version, from the name of its library; `None` without systemd.
pub fn systemd_version(host: &Host) -> Option<u32> {
    let mut folders: Vec<String> =
        ["/usr/lib/systemd", "/lib/systemd", "/usr/lib64/systemd"].map(str::to_owned).to_vec();
    for triplet in host.root().entries("/usr/lib").unwrap_or_default() {
        if triplet.contains("-linux-gnu") {
            folders.push(format!("/usr/lib/{triplet}/systemd"));
        }
    }
    let version = |name: &String| {
        let rest = name.strip_prefix("libsystemd-shared-")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    folders.iter().find_map(|f| host.root().entries(f).ok()?.iter().find_map(version))
}

struct Renderer<'a> {
    /// The running host, if the files are for its own system.
    host: Option<&'a Host>,
    /// The host with the existing configuration files.
    settings: &'a Host,
    /// The host with the installed programs and units.
    system: &'a Host,
    facts: &'a Facts,
    systemd: Option<u32>,
    out: Rendered,
    /// Mode and body by path.
    bodies: BTreeMap<String, (u32, String)>,
}

/// Why no file can hold a value.
pub const NOT_PLAIN: &str = "the name holds characters that files of udev, systemd and tuned read as something else: rename it";

/// Whether its names need no quoting in files.
pub fn is_plain(kept: &PersistedValue) -> bool {
    let all = |words: &[&str]| words.iter().all(|w| quote::is_plain(w));
    match &kept.subject {
        Subject::Nic(nic) => {
            all(&[nic.name.as_str()]) && nic.driver.as_deref().is_none_or(quote::is_plain)
        }
        Subject::Host => match kept.knob.strip_prefix("sysctl.") {
            Some(key) => all(&key.split('/').collect::<Vec<_>>()),
            None => true,
        },
        Subject::Irq { .. } | Subject::Unit { .. } => true,
    }
}

/// The classic command that sets it, if one shell line does.
pub fn command(kept: &PersistedValue) -> Option<String> {
    let command = knobs::find(&kept.knob)?.command(&kept.value);
    // Some commands are for reading only, or are several.
    (!command.contains(['…', '\n']) && !command.contains("; ")).then_some(command)
}

/// Hint for a value that no file can express: what the user's own script has to do.
pub fn by_hand(kept: &PersistedValue) -> String {
    let how = knobs::find(&kept.knob).map(|k| k.command(&kept.value));
    format!(
        "no single command and no format sets it; a custom script can: {}",
        how.unwrap_or_default()
    )
}

/// File and value of a command `echo VALUE > FILE`.
fn echo(command: &str) -> Option<(&str, &str)> {
    let (value, file) = command.strip_prefix("echo ")?.split_once(" > ")?;
    Some((file, value))
}

impl Renderer<'_> {
    fn append(&mut self, path: &str, mode: u32, text: &str) {
        self.bodies.entry(path.to_owned()).or_insert((mode, String::new())).1.push_str(text);
    }

    fn keep(&mut self, kept: &PersistedValue, by: &str) {
        self.out.kept.push(kept_by(kept, by));
    }

    fn give_up(&mut self, kept: &PersistedValue, why: impl Into<String>) {
        self.out.not_kept.push(not_kept(kept, why));
    }

    fn sysctls(&mut self, all: &[PersistedValue]) {
        for kept in all {
            let Some(key) = kept.knob.strip_prefix("sysctl.") else { continue };
            let path = sysctl_conf::path(key);
            // A name with a dot in it (eth0.100) needs slashes.
            let key = if path.contains('.') { path.clone() } else { path.replace('/', ".") };
            if let Some(at) = self.later_line(&path) {
                self.give_up(kept, format!("{at} sets it too and is read later: change it there"));
                continue;
            }
            self.append(SYSCTL, 0o644, &format!("{key} = {}\n", kept.value));
            self.keep(kept, SYSCTL);
            if path.starts_with("net/netfilter/") || path.starts_with("net/bridge/") {
                self.out.notes.push(PersistNote::NeedsModule { key });
            }
        }
    }

    /// A later configuration line that sets the same key.
    fn later_line(&self, path: &str) -> Option<String> {
        let ours = SYSCTL.rsplit('/').next().unwrap_or_default();
        let mut files: Vec<String> = Vec::new();
        for folder in
            ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"]
        {
            let names = self.settings.root().entries(folder).unwrap_or_default();
            let later = |n: &&String| n.ends_with(".conf") && n.as_str() > ours;
            files.extend(names.iter().filter(later).map(|n| format!("{folder}/{n}")));
        }
        // procps reads it last, whatever its name; systemd does not read it.
        if self.settings.root().exists("/etc/sysctl.conf") {
            files.push("/etc/sysctl.conf".into());
        }
        files.iter().find_map(|file| {
            let text = self.settings.text(file).ok()?;
            let sets = |l: &str| {
                let (key, _) = l.trim().trim_start_matches('-').split_once('=')?;
                (sysctl_conf::path(key.trim()) == path).then_some(())
            };
            let line = text.lines().position(|l| sets(l).is_some())?;
            Some(format!("{file}:{}", line + 1))
        })
    }

    fn interfaces(&mut self, all: &[PersistedValue]) {
        let mut nics: Vec<&Interface> = Vec::new();
        for kept in all {
            if let Subject::Nic(i) = &kept.subject
                && !nics.iter().any(|n| n.name == i.name)
            {
                nics.push(i);
            }
        }
        for nic in nics {
            let mine =
                |k: &&PersistedValue| matches!(&k.subject, Subject::Nic(i) if i.name == nic.name);
            let mine: Vec<&PersistedValue> = all.iter().filter(mine).collect();
            match self.systemd {
                Some(version) => self.interface(nic, &mine, version),
                None => {
                    for kept in mine {
                        let why = match command(kept) {
                            Some(_) => "no systemd here: see --format shell".into(),
                            None => by_hand(kept),
                        };
                        self.give_up(kept, why);
                    }
                }
            }
        }
    }

    fn interface(&mut self, nic: &Interface, mine: &[&PersistedValue], version: u32) {
        let path = format!("/etc/systemd/network/00-netwright-{}.link", nic.name);
        let (mut options, mut rules) = (Vec::<(String, String)>::new(), String::new());
        let mut properties = Vec::new();
        let number =
            self.facts.nics.iter().find(|n| n.name == nic.name).and_then(|n| n.ifindex.get());
        for kept in mine {
            let knob = kept.knob.strip_prefix(&format!("nic.{}.", nic.name)).unwrap_or_default();
            if knob == "mtu"
                && let Some(host) = self.host
            {
                let kept_from_before = || nic.mtu_owner.clone().map_or(Mtu::Nobody, Mtu::Of);
                match number.map_or_else(kept_from_before, |number| owner::mtu(host, number)) {
                    Mtu::Nobody => {}
                    Mtu::Of(owner) => {
                        let (path, body) = owner.file(&nic.name, &kept.value);
                        self.append(&path, 0o644, &body);
                    }
                    Mtu::Overridden(why) => {
                        self.give_up(kept, why);
                        continue;
                    }
                }
            }
            let said = link::options(knob, &kept.value);
            if let Some(said) = said.filter(|all| all.iter().all(|o| o.2 <= version)) {
                properties.extend(link::property(knob, &kept.value));
                options.extend(said.into_iter().map(|(k, v, _)| (k.to_owned(), v)));
                self.keep(kept, &path);
            } else {
                match self.rule(kept, nic) {
                    Ok(rule) => {
                        rules += &rule;
                        self.keep(kept, RULES);
                    }
                    Err(why) => self.give_up(kept, why),
                }
            }
        }
        if !options.is_empty() {
            let body = link_file(nic, &options);
            self.append(&path, 0o644, &body);
            self.shadows(nic, &path);
        }
        if !rules.is_empty() {
            self.append(RULES, 0o644, &rules);
        }
        if let (Some(number), Some(host)) = (number, self.host)
            && let Some(uuid) = owner::connection(host, number)
            && !properties.is_empty()
        {
            let command = format!("nmcli connection modify {uuid} {}", properties.join(" "));
            self.out.notes.push(PersistNote::NetworkManager { nic: nic.name.clone(), command });
        }
    }

    /// Notes a `.link` file that sorts before ours: systemd would use only that file.
    fn shadows(&mut self, nic: &Interface, path: &str) {
        let name = |p: &str| p.rsplit('/').next().unwrap_or_default().to_owned();
        if let Some(before) = nic.link_file.as_ref().filter(|f| name(f) < name(path)) {
            let (first, file) = (before.clone(), path.to_owned());
            self.out.notes.push(PersistNote::LinkFileBefore { first, file });
        }
    }

    /// A udev rule for a value that a `.link` file cannot express.
    fn rule(&self, kept: &PersistedValue, nic: &Interface) -> Result<String, String> {
        let command = command(kept).ok_or_else(|| by_hand(kept))?;
        let matches = match &nic.mac {
            Some(mac) => format!("ATTR{{address}}==\"{mac}\", DRIVERS==\"?*\""),
            None => format!("KERNEL==\"{}\"", nic.name),
        };
        let head = format!("ACTION==\"add\", SUBSYSTEM==\"net\", {matches}");
        if command.contains('"') {
            return Err("udev has no option for it".into());
        }
        let folder = format!("/sys/class/net/{}/", nic.name);
        if let Some((file, value)) = echo(&command) {
            let attribute = file.strip_prefix(&folder).ok_or("it is no file of the interface")?;
            return Ok(format!("{head}, ATTR{{{attribute}}}=\"{value}\"\n"));
        }
        let (tool, rest) = command.split_once(' ').unwrap_or((&command, ""));
        let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
        let tool = folders
            .iter()
            .map(|f| format!("{f}/{tool}"))
            .find(|p| self.system.root().exists(p))
            .ok_or_else(|| format!("{tool} is not installed, and nothing else sets it at boot"))?;
        let rest = rest.replace('%', "%%").replace('$', "$$");
        Ok(format!("{head}, RUN+=\"{tool} {rest}\"\n"))
    }

    fn interrupts(&mut self, all: &[PersistedValue]) {
        let of = |k: &&PersistedValue| matches!(k.subject, Subject::Irq { .. });
        let irqs: Vec<&PersistedValue> = all.iter().filter(of).collect();
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for kept in &irqs {
            match &kept.subject {
                Subject::Irq { action } if self.systemd.is_some() => {
                    pairs.push((action, &kept.value));
                    self.keep(kept, irq::SCRIPT);
                }
                _ => self.give_up(kept, "no systemd here: see --format shell"),
            }
        }
        if !pairs.is_empty() {
            for (path, mode, body) in irq::at_boot(&pairs) {
                self.append(&path, mode, &body);
            }
        }
        let given = all.iter().find(|k| k.knob == irq::POLICY_KNOB && k.value != "none");
        self.policy(given, &pairs);
        if let Some(kept) = all.iter().find(|k| k.knob == irq::BANNED_KNOB) {
            match irq::banned_cpus(self.system, &kept.value) {
                Ok(files) => {
                    self.environment(files);
                    self.keep(kept, irq::ENVIRONMENT);
                }
                Err(why) => self.give_up(kept, why),
            }
        }
    }

    /// Adds lines to our environment file for irqbalance, and once the drop-in that reads it.
    fn environment(&mut self, files: Vec<(String, u32, String)>) {
        for (path, mode, body) in files {
            if path == irq::ENVIRONMENT || !self.bodies.contains_key(&path) {
                self.append(&path, mode, &body);
            }
        }
        let command = "systemctl daemon-reload; systemctl restart irqbalance".to_owned();
        let anew = PersistNote::PolicyReadAnew { command };
        if !self.out.notes.contains(&anew) {
            self.out.notes.push(anew);
        }
    }

    /// Adds the policy script: the user's, else one that bans these interrupts.
    fn policy(&mut self, given: Option<&PersistedValue>, pairs: &[(&str, &str)]) {
        if given.is_none() && pairs.is_empty() {
            return;
        }
        let balance = self.facts.tuners.iter().find(|r| r.kind == "irqbalance");
        let settings_files = match self.host {
            Some(_) => balance.map(|b| b.settings_files.clone()),
            None => irq::installed(self.system),
        };
        let actions: Vec<&str> = pairs.iter().map(|p| p.0).collect();
        let own = irq::keep_off(&actions);
        let script = given.map_or(own.0.as_str(), |k| &k.value);
        let files = match (settings_files, given) {
            (Some(_), Some(kept))
                if kept.value.starts_with("/run/") || kept.value.starts_with("/tmp/") =>
            {
                Err(format!("{} is gone with the next boot: put it elsewhere", kept.value))
            }
            (Some(files), _) => irq::hand_over(self.system, &files, script),
            (None, Some(_)) => Err("irqbalance is not installed".into()),
            (None, None) => return,
        };
        match (files, given) {
            (Err(why), Some(kept)) => self.give_up(kept, why),
            (Err(why), None) => self.out.notes.push(PersistNote::NoPolicy { why }),
            (Ok(files), given) => {
                self.environment(files);
                match given {
                    None => self.append(&own.0, own.1, &own.2),
                    Some(kept) => self.keep(kept, irq::ENVIRONMENT),
                }
                if let Some(kept) = given.filter(|_| !pairs.is_empty()) {
                    let script = kept.value.clone();
                    self.out.notes.push(PersistNote::PolicyAsked { script });
                }
            }
        }
    }

    fn units(&mut self, all: &[PersistedValue]) {
        let mut done: BTreeMap<&str, &str> = BTreeMap::new();
        for kept in all {
            let Subject::Unit { name } = &kept.subject else { continue };
            let path = format!("/etc/systemd/system/{name}.d/50-netwright.conf");
            match done.insert(name, &kept.value) {
                Some(other) if other != kept.value => {
                    self.give_up(kept, format!("another process of {name} is placed on {other}"));
                    done.insert(name, other);
                }
                Some(_) => self.keep(kept, &path),
                None => {
                    let limits = kept.knob.ends_with(".cpuset");
                    if limits && !self.system.root().exists("/sys/fs/cgroup/cgroup.controllers") {
                        self.give_up(kept, "systemd limits a unit's CPUs by cgroup v2 only");
                        continue;
                    }
                    let body = match kept.value.split_once(" mems ").unwrap_or((&kept.value, "")) {
                        (cpus, "") if limits => format!("[Service]\nAllowedCPUs={cpus}\n"),
                        (cpus, mems) if limits => {
                            format!("[Service]\nAllowedCPUs={cpus}\nAllowedMemoryNodes={mems}\n")
                        }
                        (cpus, _) => format!("[Service]\nCPUAffinity=\nCPUAffinity={cpus}\n"),
                    };
                    self.append(&path, 0o644, &body);
                    self.keep(kept, &path);
                }
            }
        }
    }

    /// Adds kernel files that belong to no interface.
    fn sysfs(&mut self, all: &[PersistedValue]) {
        for kept in all.iter().filter(|k| k.subject == Subject::Host) {
            let is_policy = kept.knob == irq::POLICY_KNOB && kept.value != "none";
            let is_said = is_policy || kept.knob == irq::BANNED_KNOB;
            if kept.knob.starts_with("sysctl.") || is_said {
                continue;
            }
            let command = command(kept).unwrap_or_default();
            match echo(&command) {
                Some((file, value)) if self.systemd.is_some() && file.starts_with("/sys/") => {
                    self.append(TMPFILES, 0o644, &format!("w! {file} - - - - {value}\n"));
                    self.keep(kept, TMPFILES);
                }
                _ => self.give_up(kept, "nothing of the distribution's sets it at boot"),
            }
        }
    }
}

/// Copies the options of the `.link` file that applied before, then adds ours.
fn link_file(nic: &Interface, options: &[(String, String)]) -> String {
    let mut body = String::from("[Match]\n");
    match &nic.mac {
        Some(mac) => {
            body += &format!("MACAddress={mac}\n");
            if let Some(driver) = &nic.driver {
                body += &format!("Driver={driver}\n");
            }
        }
        None => body += &format!("OriginalName={}\n", nic.name),
    }
    body += "\n[Link]\n";
    if let Some(file) = nic.link_file.as_ref().filter(|_| !nic.link_lines.is_empty()) {
        body += &format!("# As in {file}, which applied before: only one file does.\n");
    }
    for line in &nic.link_lines {
        let key = line.split('=').next().unwrap_or_default().trim();
        if !options.iter().any(|(k, _)| k == key) {
            body += &format!("{line}\n");
        }
    }
    for (key, value) in options {
        body += &format!("{key}={value}\n");
    }
    body
}
