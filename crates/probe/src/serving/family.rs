//! A process and all that descend from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::Root;

/// More than this are not followed.
const MOST: usize = 100_000;

/// These and their descendants, each once.
pub fn of(root: &Root, first: &[u32]) -> BTreeSet<u32> {
    let mut all: BTreeSet<u32> = first.iter().copied().collect();
    // Without CONFIG_PROC_CHILDREN everybody is asked for its parent.
    let own = std::process::id();
    let parents = match root.exists(&format!("/proc/{own}/task/{own}/children")) {
        true => None,
        false => Some(by_parent(root)),
    };
    let mut left: Vec<u32> = first.to_vec();
    while let Some(pid) = left.pop() {
        let children = match &parents {
            Some(parents) => parents.get(&pid).cloned().unwrap_or_default(),
            None => children(root, pid),
        };
        for child in children {
            if all.len() < MOST && all.insert(child) {
                left.push(child);
            }
        }
    }
    all
}

/// Each thread tells of the children that it made itself.
fn children(root: &Root, pid: u32) -> Vec<u32> {
    let folder = format!("/proc/{pid}/task");
    let threads = root.entries(&folder).unwrap_or_default();
    let texts = threads.iter().filter_map(|t| root.read(&format!("{folder}/{t}/children")).ok());
    texts.flat_map(|text| numbers(&text)).collect()
}

fn numbers(text: &[u8]) -> Vec<u32> {
    String::from_utf8_lossy(text).split_whitespace().filter_map(|n| n.parse().ok()).collect()
}

fn by_parent(root: &Root) -> BTreeMap<u32, Vec<u32>> {
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let names = root.entries("/proc").unwrap_or_default();
    for pid in names.iter().filter_map(|name| name.parse::<u32>().ok()) {
        if let Some(parent) = parent(root, pid) {
            all.entry(parent).or_default().push(pid);
        }
    }
    all
}

/// **Source**: `/proc/PID/stat`: the fourth word; the second is a name in brackets, which may hold
/// anything.
fn parent(root: &Root, pid: u32) -> Option<u32> {
    let text = root.read(&format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_is_found_either_way() {
        let root = Root::live();
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let own = std::process::id();
        let found = of(&root, &[own]).contains(&child.id());
        let by_parent = by_parent(&root);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
        assert!(by_parent.get(&own).unwrap().contains(&child.id()), "{by_parent:?}");
        assert_eq!(of(&root, &[u32::MAX]), BTreeSet::from([u32::MAX]), "one that is gone");
    }
}
