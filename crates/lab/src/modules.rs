//! Kernel modules: their files and dependencies.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Module files by name (`-` and `_` are equal).
pub(crate) fn find_modules(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(folder) = todo.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.filter_map(|e| Some(e.ok()?.path())) {
            if path.is_dir() && !path.is_symlink() {
                todo.push(path);
            } else if let Some(name) =
                path.file_name().and_then(|n| n.to_str()?.strip_suffix(".ko"))
            {
                found.insert(name.replace('-', "_"), path.clone());
            }
        }
    }
    found
}

/// Dependencies from a module's `.modinfo` section.
pub(crate) fn depends(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(at) = module.windows(key.len()).position(|w| w == key) else { return Vec::new() };
    let rest = module.get(at + key.len()..).unwrap_or_default();
    let end = rest.iter().position(|&b| b == 0).unwrap_or(0);
    String::from_utf8_lossy(rest.get(..end).unwrap_or_default())
        .split(',')
        .filter(|d| !d.is_empty())
        .map(|d| d.replace('-', "_"))
        .collect()
}

/// `modules.dep` in depmod's format, so that `modprobe` works in the guest.
pub(crate) fn modules_dep(folder: &Path) -> String {
    let modules = find_modules(folder);
    let relative = |name: &str| {
        modules.get(name).and_then(|p| p.strip_prefix(folder).ok()).map(|p| p.display().to_string())
    };
    let direct: BTreeMap<&String, Vec<String>> = modules
        .iter()
        .map(|(name, path)| (name, depends(&fs::read(path).unwrap_or_default())))
        .collect();
    let mut text = String::new();
    for name in modules.keys() {
        let mut ordered = Vec::new();
        closure(name, &|n| direct.get(&n.to_owned()).cloned().unwrap_or_default(), &mut ordered);
        // modprobe loads from right to left.
        let line: Vec<String> = ordered.iter().rev().skip(1).filter_map(|n| relative(n)).collect();
        text.push_str(&format!("{}: {}\n", relative(name).unwrap_or_default(), line.join(" ")));
    }
    text
}

/// `name` with all its dependencies, each before the modules that need it.
pub(crate) fn closure(
    name: &str,
    depends: &dyn Fn(&str) -> Vec<String>,
    ordered: &mut Vec<String>,
) {
    fn visit(
        name: &str,
        depends: &dyn Fn(&str) -> Vec<String>,
        seen: &mut BTreeSet<String>,
        ordered: &mut Vec<String>,
    ) {
        if ordered.iter().any(|o| o == name) || !seen.insert(name.to_owned()) {
            return;
        }
        for d in depends(name) {
            visit(&d, depends, seen, ordered);
        }
        ordered.push(name.to_owned());
    }
    visit(name, depends, &mut BTreeSet::new(), ordered);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_says_what_it_needs() {
        assert_eq!(depends(b"xx\0license=GPL\0depends=a,b-c\0name=d\0"), ["a", "b_c"]);
        assert!(depends(b"xx\0depends=\0").is_empty());
        assert!(depends(b"").is_empty());
    }

    #[test]
    fn what_is_needed_comes_first_and_a_circle_ends() {
        let depends = |n: &str| match n {
            "a" => vec!["b".to_owned(), "c".to_owned()],
            "b" => vec!["c".to_owned()],
            "c" => vec!["a".to_owned()],
            _ => vec![],
        };
        let mut ordered = Vec::new();
        closure("a", &depends, &mut ordered);
        assert_eq!(ordered, ["c", "b", "a"]);
    }
}
