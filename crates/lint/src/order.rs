//! The order in which lines are carried out, and the line that wins.
//!
//! **Source**: sysctl.d(5): files by name whatever the folder, of one name the foremost folder's;
//! tuned.service(8) starts after systemd-sysctl; tuned-main.conf(5) `reapply_sysctl`.

use std::collections::{BTreeMap, BTreeSet};

use model::lint::{LinePlace, Place, SetLine};
use parse::sysctl_conf::same_value;

use crate::{files::ReadFile, shown::shown};

/// A setting with its file.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    pub file: &'a str,
    pub set: &'a SetLine,
    /// Files that run at a known time after each other share a number.
    group: usize,
    /// Whether a file of the same name in an earlier folder hides the whole file.
    hidden_by: Option<&'a str>,
}

/// Folders of sysctl.d, the foremost first.
const FOLDERS: [&str; 5] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];

/// What is carried out at boot.
const BOOT: usize = usize::MAX;

/// Where a file of sysctl.d stands: its rank among the folders, and its name.
fn boot_name(name: &str) -> (usize, &str) {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    if file == "sysctl.conf" {
        // Distributions that still read it have a link of this name.
        return (0, "99-sysctl.conf");
    }
    let rank = FOLDERS.iter().position(|f| folder == *f || folder.ends_with(f));
    (rank.unwrap_or(0), file)
}

/// Up to this rank tuned applies a folder's lines again.
const RUN: usize = 1;

/// The settings of tuned's profiles, where tuned then applies the host's own files again.
fn set_by_tuned(files: &[ReadFile]) -> BTreeSet<String> {
    let sets = files.iter().filter(|f| f.reapplies).flat_map(|f| &f.sets);
    let tuned = sets.filter(|(_, s)| s.place == Place::TunedProfile);
    tuned.map(|(_, s)| tune::knobs::value(&s.setting)).collect()
}

fn is_boot(place: Place) -> bool {
    matches!(place, Place::SysctlFile | Place::TunedProfile)
}

/// Every setting in the order in which it is carried out: the sysctl files as a boot applies them,
/// then tuned, then all others file by file as they were named.
pub fn by_boot(files: &[ReadFile]) -> Vec<Placed<'_>> {
    let mut all: Vec<(bool, (usize, String), Placed<'_>)> = Vec::new();
    let mut foremost: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    let of_sysctl = |f: &ReadFile| f.sets.iter().any(|(_, s)| s.place == Place::SysctlFile);
    for file in files.iter().filter(|f| of_sysctl(f)) {
        let (rank, name) = boot_name(&file.name);
        let first = foremost.entry(name).or_insert((rank, &file.name));
        if rank < first.0 {
            *first = (rank, &file.name);
        }
    }
    let tuned = set_by_tuned(files);
    for (i, file) in files.iter().enumerate() {
        for (path, set) in &file.sets {
            let boot = is_boot(set.place);
            let (order, hidden_by) = match set.place {
                Place::SysctlFile => {
                    let (rank, name) = boot_name(&file.name);
                    let first = foremost.get(name).filter(|f| f.0 < rank).map(|f| f.1);
                    let again = rank <= RUN && tuned.contains(&tune::knobs::value(&set.setting));
                    ((if again { 2 } else { 0 }, name.to_owned()), first)
                }
                Place::TunedProfile => ((1, String::new()), None),
                _ => ((3 + i, String::new()), None),
            };
            let group = if boot { BOOT } else { i };
            all.push((!boot, order, Placed { file: path, set, group, hidden_by }));
        }
    }
    all.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    all.into_iter().map(|(_, _, p)| p).collect()
}

/// For each setting in this order the later line that sets it to another value, and what that line does.
/// A line whose value the kernel refuses replaces nothing.
pub fn winners(
    sets: &[Placed<'_>],
    refused: &dyn Fn(&SetLine) -> bool,
) -> Vec<Option<(LinePlace, String)>> {
    let mut last: BTreeMap<(usize, String), &Placed<'_>> = BTreeMap::new();
    let mut out: Vec<Option<(LinePlace, String)>> = Vec::with_capacity(sets.len());
    for placed in sets.iter().rev() {
        if let Some(hidden) = placed.hidden_by {
            let place = LinePlace { file: hidden.to_owned(), line: 1 };
            out.push(Some((
                place,
                "stands before this whole file, as the foremost of that name".into(),
            )));
            continue;
        }
        let key = (placed.group, tune::knobs::value(&placed.set.setting));
        match last.get(&key) {
            Some(later) if !same_value(&later.set.value, &placed.set.value) => {
                let place = LinePlace { file: later.file.to_owned(), line: later.set.line };
                // A line that only raises or lowers leaves a value that is beyond it.
                let sure = later.set.mode == model::lint::SetMode::Exactly;
                out.push(sure.then(|| (place, overrides(later.set, placed.set))));
            }
            Some(_) => out.push(None),
            None => {
                // Commands that act on a process or a device again are no second value of one setting.
                if tune::knobs::find(&placed.set.setting).is_some() && !refused(placed.set) {
                    last.insert(key, placed);
                }
                out.push(None);
            }
        }
    }
    out.reverse();
    out
}

/// What a later line does to a setting, which it may know by another name.
fn overrides(later: &SetLine, line: &SetLine) -> String {
    let value = shown(later);
    match later.setting == line.setting {
        true => format!("sets it to {value} later"),
        false => {
            let name = later.setting.strip_prefix("sysctl.").unwrap_or(&later.setting);
            format!("sets {name} to {value} later, which replaces it")
        }
    }
}

/// What the order rests on, and what is not known of it.
pub fn notes(sets: &[Placed<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let has = |place: Place| sets.iter().any(|s| s.set.place == place);
    if has(Place::SysctlFile) && has(Place::TunedProfile) {
        notes.push(
            "tuned starts after the sysctl files; unless tuned-main.conf has reapply_sysctl=0, it then \
             applies those of /etc and /run again, which win"
                .into(),
        );
    }
    let mut by_group: BTreeMap<String, (usize, &Placed<'_>)> = BTreeMap::new();
    for placed in sets.iter().filter(|s| tune::knobs::find(&s.set.setting).is_some()) {
        let key = tune::knobs::value(&placed.set.setting);
        let (group, first) = *by_group.entry(key).or_insert((placed.group, placed));
        if group != placed.group && !same_value(&first.set.value, &placed.set.value) {
            notes.push(format!(
                "{}:{} and {}:{} set {} to different values; which runs last is not known",
                first.file, first.set.line, placed.file, placed.set.line, placed.set.setting
            ));
        }
    }
    notes.truncate(50);
    notes
}
