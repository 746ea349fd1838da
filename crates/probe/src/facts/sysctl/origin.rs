//! The origin of a value: the files that a boot applies, tuned, the kernel cmdline.
//!
//! **Source**: sysctl.d(5) and systemd-sysctl(8) for systemd, sysctl(8) `--system` of procps
//! elsewhere, tuned-main.conf(5), kernel-parameters (`sysctl.KEY=`, since 5.8).

use std::collections::BTreeMap;

use model::sysctl::Origin;
use parse::{kernel_cmdline, sysctl_conf};

use super::super::tuned;
use crate::Root;

/// Everything on the host that sets kernel settings.
pub struct Setters {
    /// Assignments of the boot's files in the order they are applied.
    files: Vec<Assignment>,
    /// `/etc/sysctl.conf` where the boot does not read it, but `sysctl -p` does.
    by_hand: Vec<Assignment>,
    tuned: Option<tuned::Profile>,
    kernel_cmdline: Vec<(String, String)>,
}

/// One line of a sysctl file.
#[derive(Debug, Clone)]
struct Assignment {
    file: String,
    line: u32,
    path: String,
    value: Option<String>,
}

impl Setters {
    pub fn read(root: &Root) -> Self {
        let systemd = runs_systemd(root);
        let mut files = Vec::new();
        for file in boot_files(root, systemd) {
            files.extend(assignments(root, &file));
        }
        let conf = assignments(root, "/etc/sysctl.conf");
        let mut by_hand = Vec::new();
        if systemd {
            by_hand = conf;
        } else {
            files.extend(conf);
        }
        Self { files, by_hand, tuned: tuned::active(root), kernel_cmdline: kernel_cmdline(root) }
    }

    /// The source that set this setting (path below `/proc/sys`) to its present value. `None` when
    /// every source has another value, or there is none: [`Setters::names`] distinguishes these.
    pub fn of(&self, path: &str, live: &str) -> Option<Origin> {
        let file = last(&self.files, path).and_then(|a| file_origin(a, live));
        let tuned = self.tuned.as_ref().and_then(|p| tuned_origin(p, path, live));
        let reapplies = self.tuned.as_ref().is_some_and(|t| t.reapplies_sysctl_files);
        let (first, second) = if reapplies { (file, tuned) } else { (tuned, file) };
        first
            .or(second)
            .or_else(|| last(&self.by_hand, path).and_then(|a| file_origin(a, live)))
            .or_else(|| {
                let (_, value) = self.kernel_cmdline.iter().rev().find(|(p, _)| p == path)?;
                sysctl_conf::same_value(value, live).then_some(Origin::KernelCmdline)
            })
    }

    /// Whether anything names this setting, whatever value it gives.
    pub fn names(&self, path: &str) -> bool {
        last(&self.files, path).is_some()
            || self.tuned.as_ref().is_some_and(|p| {
                // A conditional line may rightly have changed nothing.
                p.sysctl(path).is_some_and(|l| !l.value.starts_with(['>', '<']))
            })
            || self.kernel_cmdline.iter().any(|(p, _)| p == path)
    }
}

/// The boot's files with the lines that set one of `paths`: file, line, path, value.
pub fn lines_of(root: &Root, known: impl Fn(&str) -> bool) -> Vec<(String, u32, String, String)> {
    let systemd = runs_systemd(root);
    let mut files = boot_files(root, systemd);
    if !systemd {
        files.push("/etc/sysctl.conf".into());
    }
    files
        .iter()
        .flat_map(|f| assignments(root, f))
        .filter(|a| known(&a.path))
        .filter_map(|a| Some((a.file, a.line, a.path, a.value?)))
        .collect()
}

/// systemd is, or would be, the one that applies the files.
fn runs_systemd(root: &Root) -> bool {
    root.exists("/run/systemd/system")
        || root.word("/proc/1/comm").known().is_some_and(|c| c == "systemd")
        || (!root.exists("/proc/1/comm") && root.exists("/usr/lib/systemd/systemd-sysctl"))
}

/// The files in the order they are applied: by name, whatever the folder; of one name only
/// that of the foremost folder counts.
fn boot_files(root: &Root, systemd: bool) -> Vec<String> {
    const SYSTEMD: [&str; 5] = [
        "/etc/sysctl.d",
        "/run/sysctl.d",
        "/usr/local/lib/sysctl.d",
        "/usr/lib/sysctl.d",
        "/lib/sysctl.d",
    ];
    let mut folders = SYSTEMD;
    if !systemd {
        folders.swap(0, 1); // procps looks in /run first
    }
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    for folder in folders {
        for name in root.entries(folder).unwrap_or_default() {
            if name.ends_with(".conf") && !name.starts_with('.') {
                by_name.entry(name.clone()).or_insert_with(|| format!("{folder}/{name}"));
            }
        }
    }
    by_name.into_values().collect()
}

/// The lines of a file; a link is named by where it leads, which is what a person edits. A
/// mask (a link to `/dev/null`) has none.
fn assignments(root: &Root, file: &str) -> Vec<Assignment> {
    let Ok(bytes) = root.read(file) else { return vec![] };
    let real = root.resolve(file).unwrap_or_else(|_| file.to_owned());
    sysctl_conf::parse(&bytes)
        .settings
        .into_iter()
        .map(|s| Assignment { file: real.clone(), line: s.line, path: s.path, value: s.value })
        .collect()
}

/// The effective assignment: the last one that names the key itself; else the last matching
/// pattern, unless `-key` excludes patterns.
fn last<'a>(all: &'a [Assignment], path: &str) -> Option<&'a Assignment> {
    let covers = |a: &&Assignment| {
        if sysctl_conf::is_glob(&a.path) {
            sysctl_conf::glob_matches(&a.path, path)
        } else {
            a.path == path
        }
    };
    let own = all.iter().rev().find(|a| a.value.is_some() && a.path == path);
    if own.is_some() {
        return own;
    }
    if all.iter().any(|a| a.value.is_none() && covers(&a)) {
        return None;
    }
    all.iter().rev().find(|a| a.value.is_some() && covers(a))
}

fn file_origin(a: &Assignment, live: &str) -> Option<Origin> {
    let value = a.value.as_ref().filter(|v| sysctl_conf::same_value(v, live))?;
    Some(Origin::File { path: a.file.clone(), line: a.line, value: value.clone() })
}

fn tuned_origin(profile: &tuned::Profile, path: &str, live: &str) -> Option<Origin> {
    let line = profile.sysctl(path)?;
    // `>4096` and `<4096` set it only if that raises or lowers it.
    let value = line.value.trim_start_matches(['>', '<']);
    sysctl_conf::same_value(value.trim_matches('"'), live).then(|| Origin::Tuned {
        profile: profile.name.clone(),
        path: line.path.clone(),
        line: line.line,
    })
}

/// `sysctl.KEY=VALUE` of the kernel cmdline, by path.
fn kernel_cmdline(root: &Root) -> Vec<(String, String)> {
    let Ok(bytes) = root.read("/proc/cmdline") else { return vec![] };
    kernel_cmdline::parse(&bytes)
        .into_iter()
        .filter_map(|p| {
            let key = p.key.strip_prefix("sysctl.").or_else(|| p.key.strip_prefix("sysctl/"))?;
            Some((sysctl_conf::path(key), p.value?))
        })
        .collect()
}
