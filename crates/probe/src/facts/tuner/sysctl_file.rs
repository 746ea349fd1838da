//! sysctl files with settings that Netwright knows.

use std::collections::BTreeMap;

use model::tuner::Tuner;

use super::{super::sysctl, new, scan::Scan};

pub fn find(scan: &Scan<'_>) -> Vec<Tuner> {
    let mut by_file: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, line, key, value) in sysctl::file_lines(scan.root) {
        by_file.entry(file.clone()).or_default().push(format!("{file}:{line}: {key} = {value}"));
    }
    by_file
        .into_iter()
        .map(|(path, evidence)| {
            let mut tuner = new("sysctl_file", path.clone());
            tuner.owns = vec!["sysctl".into()];
            tuner.settings_files = vec![path];
            tuner.evidence = evidence;
            tuner
        })
        .collect()
}
