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
}

/// Where the active profile's name stands.
pub const ACTIVE: &str = "/etc/tuned/active_profile";

/// The active profile; `None` where tuned has none.
pub fn active(root: &Root) -> Option<Profile> {
    let name = root.word(ACTIVE).into_known()?;
    let mut profile = Profile {
        name: name.clone(),
        lines: vec![],
        reapplies_sysctl_files: reapplies(root),
        missing: vec![],
    };
    let mut seen = BTreeSet::new();
    for one in name.split_whitespace() {
        include(root, one, &mut profile, &mut seen);
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

/// Reads a profile after those it includes.
fn include(root: &Root, name: &str, profile: &mut Profile, seen: &mut BTreeSet<String>) {
    // A name is one component: it cannot lead out of tuned's folders.
    if name.contains('/') || name.starts_with('.') || seen.len() >= MOST_FILES {
        return;
    }
    if !seen.insert(name.to_owned()) {
        return;
    }
    let found = ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"]
        .iter()
        .map(|dir| format!("{dir}/{name}/tuned.conf"))
        .find_map(|path| root.read(&path).ok().map(|bytes| (path, bytes)));
    let Some((path, bytes)) = found else {
        profile.missing.push(name.to_owned());
        return;
    };
    let conf = ini::parse(&bytes);
    if let Some(names) = conf.get("main", "include") {
        for parent in ini::without_comment(&names.value).split([',', ';', ' ']) {
            let parent = parent.trim().trim_start_matches('-');
            if !parent.is_empty() && !parent.contains("${") {
                include(root, parent, profile, seen);
            }
        }
    }
    add(&path, &conf, profile);
}

fn add(path: &str, conf: &ini::Ini, profile: &mut Profile) {
    let plugin_of = |section: &str| {
        conf.get(section, "type").map_or_else(|| section.to_owned(), |e| e.value.clone())
    };
    for e in &conf.entries {
        let own = ["main", "variables"].contains(&e.section.as_str());
        let about = ["type", "replace", "enabled", "devices", "priority"].contains(&e.key.as_str());
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
