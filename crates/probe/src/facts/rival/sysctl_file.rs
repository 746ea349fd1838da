//! sysctl files that set what Netwright knows.

use std::collections::BTreeMap;

use model::rival::Rival;

use super::{super::sysctl, new, scan::Scan};

pub fn find(scan: &Scan<'_>) -> Vec<Rival> {
    let mut by_file: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, line, key, value) in sysctl::file_lines(scan.root) {
        by_file.entry(file.clone()).or_default().push(format!("{file}:{line}: {key} = {value}"));
    }
    by_file
        .into_iter()
        .map(|(path, evidence)| {
            let mut rival = new("sysctl_file", path.clone());
            rival.owns = vec!["sysctl".into()];
            rival.settings_files = vec![path];
            rival.evidence = evidence;
            rival
        })
        .collect()
}
