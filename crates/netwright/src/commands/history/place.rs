//! Where the history is kept.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The file's name in a directory of ours.
const NAME: &str = "history.sqlite";

/// The value of NETWRIGHT_STORE that keeps nothing.
const OFF: &str = "off";

/// The store: the one that was named, else NETWRIGHT_STORE, else beside the journal, else in the
/// user's data directory. `None` where the environment says `off`, or where no directory is known.
pub fn of(named: Option<&Path>) -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|v: &OsString| !v.is_empty());
    if let Some(named) = named {
        return Some(named.to_owned());
    }
    match var("NETWRIGHT_STORE") {
        Some(off) if off == OFF => return None,
        Some(path) => return Some(path.into()),
        None => {}
    }
    if let Some(state) = var("NETWRIGHT_STATE") {
        return Some(PathBuf::from(state).join(NAME));
    }
    if rustix::process::geteuid().is_root() {
        return Some(Path::new(tune::journal::DEFAULT_STATE).join(NAME));
    }
    let data = var("XDG_DATA_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || Some(PathBuf::from(var("HOME")?).join(".local/share"));
    data.or_else(home).map(|data| data.join("netwright").join(NAME))
}
