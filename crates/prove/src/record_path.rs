//! Where records are stored.

use std::path::{Path, PathBuf};

use crate::{Experiment, ProveError, record, spec::Spec};

/// The default path of an experiment's record. An experiment by flags is named by what it varies
/// and measures, so that another one does not collide with it; the budget does not count.
pub fn usual(experiment: &Experiment, of_file: bool) -> PathBuf {
    let name = match of_file {
        true => experiment.name.clone(),
        false => format!("{}-{:08x}", experiment.name, what(&experiment.spec)),
    };
    let file: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' })
        .collect();
    state_folder("prove").join(format!("{}.jsonl", file.trim_start_matches('.')))
}

/// A hash of the workload, factors and metrics (FNV-1a, folded to 32 bits).
fn what(spec: &Spec) -> u32 {
    let tried = Spec {
        workload: spec.workload.clone(),
        command: spec.command.clone(),
        factors: spec.factors.clone(),
        metrics: spec.metrics.clone(),
        ..Spec::default()
    };
    let text = serde_json::to_string(&tried).unwrap_or_default();
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ hash >> 32) as u32
}

/// The folder of records, `prove`, or of builds.
pub(crate) fn state_folder(of: &str) -> PathBuf {
    if let Some(state) = std::env::var_os("NETWRIGHT_STATE").filter(|s| !s.is_empty()) {
        return PathBuf::from(state).join(of);
    }
    if rustix::process::geteuid().is_root() {
        return Path::new("/var/lib/netwright").join(of);
    }
    let var = |name| std::env::var_os(name).filter(|v: &std::ffi::OsString| !v.is_empty());
    let state = var("XDG_STATE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(var("HOME").unwrap_or_else(|| ".".into())).join(".local/state");
    state.unwrap_or_else(home).join("netwright").join(of)
}

/// Checks that a new record can be written. Creates folders for the default path only.
///
/// # Errors
/// The path cannot be written, or another kind of file is there.
pub fn room(path: &Path, is_named: bool) -> Result<(), ProveError> {
    let named = path.parent().filter(|p| is_named && !p.as_os_str().is_empty());
    if let Some(folder) = named {
        match std::fs::metadata(folder) {
            Ok(found) if found.is_dir() => {}
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err(ProveError::file(folder, e));
            }
            _ => {
                return Err(ProveError::Spec(format!(
                    "--record {}: there is no folder {}: make it, or name another file",
                    path.display(),
                    folder.display()
                )));
            }
        }
    }
    record::room(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_by_flags_names_its_record_and_how_long_does_not() {
        let spec = |command: &str, budget: &str| Spec {
            command: Some(command.into()),
            budget: Some(budget.into()),
            ..Spec::default()
        };
        assert_eq!(what(&spec("a", "1m")), what(&spec("a", "2m")));
        assert_ne!(what(&spec("a", "1m")), what(&spec("b", "1m")));
    }

    fn usage(result: Result<(), ProveError>) -> String {
        match result {
            Err(ProveError::Spec(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_folder_is_made_for_a_record_that_is_named_and_no_other_file_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let named = |path: &Path| room(path, true);
        let said = usage(named(&at("a/b/r.jsonl")));
        assert!(
            said.contains("there is no folder") && said.ends_with("name another file"),
            "{said}"
        );
        assert!(!at("a").exists());
        named(&at("r.jsonl")).unwrap();
        room(Path::new("no-such-record.jsonl"), true).unwrap();
        room(&at("a/b/r.jsonl"), false).unwrap();
        std::fs::write(at("mine.txt"), "mine").unwrap();
        assert!(usage(named(&at("mine.txt"))).contains("mine.txt: is no record of prove"));
        assert!(usage(named(&at("mine.txt/r.jsonl"))).contains("there is no folder"));
    }
}
