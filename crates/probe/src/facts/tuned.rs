//! tuned's active profile, with everything that it includes.
//!
//! **Source**: `/etc/tuned/active_profile`; profiles in `/etc/tuned` before `/usr/lib/tuned`, each
//! a folder with `tuned.conf`, since tuned 2.23 below `profiles/`.

use std::collections::BTreeSet;

use parse::ini;

use crate::Root;

/// Profiles include each other; no real chain is longer than four.
const MOST_FILES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name, or names with blanks between.
    pub name: String,
    /// What it sets, included profiles first: later lines win.
    pub lines: Vec<Line>,
    /// Whether tuned puts the system's sysctl files back over its own settings
    /// (`reapply_sysctl`, on unless `/etc/tuned/tuned-main.conf` says otherwise).
    pub reapplies_sysctl_files: bool,
    /// Files that were named and are not there.
    pub missing: Vec<String>,
    /// The first circle of profiles that include each other: their names with arrows between.
    pub circle: Option<String>,
}

/// A profile's file that lies elsewhere than in tuned's folders: its path and bytes, by name.
pub type Beside<'a> = &'a mut dyn FnMut(&str) -> Option<(String, Vec<u8>)>;

/// A profile whose own file has these bytes. Profiles that it includes are looked up by `beside`,
/// then in tuned's folders.
pub fn of_file(root: &Root, name: &str, path: &str, bytes: &[u8], beside: Beside<'_>) -> Profile {
    let mut profile = empty(root, name);
    let mut walk = Walk { root, beside, seen: BTreeSet::from([name.to_owned()]), stack: vec![] };
    walk.add(name, path, bytes, &mut profile);
    profile
}

fn empty(root: &Root, name: &str) -> Profile {
    Profile {
        name: name.to_owned(),
        lines: vec![],
        reapplies_sysctl_files: reapplies(root),
        missing: vec![],
        circle: None,
    }
}

/// One line of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub path: String,
    /// Number of the line, from 1.
    pub line: u32,
    /// The plugin: the section's `type=`, else the section's name (`sysctl`, `net`, `cpu`).
    pub plugin: String,
    pub key: String,
    /// Value; variables (`${…}`) stand unexpanded.
    pub value: String,
    /// Whether its section names the hosts that it is for.
    pub conditional: bool,
}

/// Where the active profile's name stands.
pub const ACTIVE: &str = "/etc/tuned/active_profile";

/// The active profile; `None` where tuned has none.
pub fn active(root: &Root) -> Option<Profile> {
    let name = root.word(ACTIVE).into_known()?;
    let mut profile = empty(root, &name);
    let beside = &mut |_: &str| None;
    let mut walk = Walk { root, beside, seen: BTreeSet::new(), stack: vec![] };
    for one in name.split_whitespace() {
        walk.include(one, &mut profile);
    }
    Some(profile)
}

fn reapplies(root: &Root) -> bool {
    let Ok(bytes) = root.read("/etc/tuned/tuned-main.conf") else { return true };
    let main = ini::parse(&bytes);
    main.get("", "reapply_sysctl").is_none_or(|e| {
        !matches!(
            ini::without_comment(&e.value).to_ascii_lowercase().as_str(),
            "0" | "false" | "no"
        )
    })
}

/// The way through profiles that include each other.
struct Walk<'a> {
    root: &'a Root,
    beside: Beside<'a>,
    seen: BTreeSet<String>,
    /// The profiles that are being read, each included by the one before.
    stack: Vec<String>,
}

impl Walk<'_> {
    /// Reads a profile after those it includes.
    fn include(&mut self, name: &str, profile: &mut Profile) {
        // A name is one component: it cannot lead out of tuned's folders.
        if name.contains('/') || name.starts_with('.') || self.seen.len() >= MOST_FILES {
            return;
        }
        if let Some(from) = self.stack.iter().position(|n| n == name) {
            let names = self.stack.iter().skip(from).map(String::as_str).chain([name]);
            let circle = names.collect::<Vec<_>>().join(" -> ");
            profile.circle.get_or_insert(circle);
        }
        if !self.seen.insert(name.to_owned()) {
            return;
        }
        let installed = || {
            ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"]
                .iter()
                .map(|dir| format!("{dir}/{name}/tuned.conf"))
                .find_map(|path| self.root.read(&path).ok().map(|bytes| (path, bytes)))
        };
        match (self.beside)(name).or_else(installed) {
            Some((path, bytes)) => self.add(name, &path, &bytes, profile),
            None => profile.missing.push(name.to_owned()),
        }
    }

    /// The lines of a file, after those of the profiles that it includes.
    fn add(&mut self, name: &str, path: &str, bytes: &[u8], profile: &mut Profile) {
        let conf = ini::parse(bytes);
        self.stack.push(name.to_owned());
        if let Some(names) = conf.get("main", "include") {
            for parent in ini::without_comment(&names.value).split([',', ';', ' ']) {
                let parent = parent.trim().trim_start_matches('-');
                if !parent.is_empty() && !parent.contains("${") {
                    self.include(parent, profile);
                }
            }
        }
        self.stack.pop();
        add(path, &conf, profile);
    }
}

/// Options of a section whose settings hold only for hosts that match.
const CONDITIONS: [&str; 2] = ["uname_regex", "cpuinfo_regex"];

fn add(path: &str, conf: &ini::Ini, profile: &mut Profile) {
    let plugin_of = |section: &str| {
        conf.get(section, "type").map_or_else(|| section.to_owned(), |e| e.value.clone())
    };
    for e in &conf.entries {
        let own = ["main", "variables"].contains(&e.section.as_str());
        let about = ["type", "replace", "enabled", "devices", "priority"].contains(&e.key.as_str())
            || CONDITIONS.contains(&e.key.as_str());
        let off =
            conf.get(&e.section, "enabled").is_some_and(|e| e.value == "0" || e.value == "false");
        let plugin = plugin_of(&e.section);
        if conf.get(&e.section, "replace").is_some_and(|r| r.value == "1" || r.value == "true") {
            // What included profiles said of this plugin does not count.
            profile.lines.retain(|l| l.path == path || l.plugin != plugin);
        }
        if own || about || off {
            continue;
        }
        profile.lines.push(Line {
            path: path.to_owned(),
            line: e.line,
            plugin,
            key: e.key.clone(),
            value: ini::without_comment(&e.value).to_owned(),
            conditional: CONDITIONS.iter().any(|c| conf.get(&e.section, c).is_some()),
        });
    }
}

impl Profile {
    /// The line that sets a kernel setting (by its path below `/proc/sys`) last.
    pub fn sysctl(&self, path: &str) -> Option<&Line> {
        self.lines
            .iter()
            .rev()
            .find(|l| l.plugin == "sysctl" && parse::sysctl_conf::path(&l.key) == path)
    }
}
