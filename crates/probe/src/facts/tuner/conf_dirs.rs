//! Settings in several folders, where a file hides those of its name in later folders, as for
//! systemd and udev.

use crate::Root;

/// Files ending in `suffix` in `<base>/<folder>` of every base, in the order of their names,
/// whichever folder they come from.
pub fn files(root: &Root, folder: &str, suffix: &str) -> Vec<String> {
    let mut by_name = std::collections::BTreeMap::new();
    for base in ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"] {
        let folder = format!("{base}/{folder}");
        for name in root.entries(&folder).unwrap_or_default() {
            if name.ends_with(suffix) && !name.starts_with('.') {
                let path = format!("{folder}/{name}");
                by_name.entry(name).or_insert(path);
            }
        }
    }
    by_name.into_values().collect()
}
