//! The files of a systemd service: its environment files and variables.

use parse::ini;

use crate::Root;

/// What the unit and its drop-ins say.
#[derive(Debug, Default)]
pub struct Unit {
    /// The unit's file and its drop-ins.
    pub files: Vec<String>,
    /// `EnvironmentFile=` in the order they are read: path, and where it is named.
    pub environment_files: Vec<(String, String)>,
    /// `Environment=` words: text, and where.
    pub environment: Vec<(String, String)>,
    /// `ExecStart=` that counts, and where.
    pub exec_start: Option<(String, String)>,
    /// Linked to `/dev/null`: it cannot be started.
    pub masked: bool,
    /// Some target wants it at boot.
    pub enabled: bool,
}

const FOLDERS: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The unit of this name; `None` where there is no file of it.
pub fn read(root: &Root, name: &str) -> Option<Unit> {
    let path = FOLDERS
        .iter()
        .map(|d| format!("{d}/{name}"))
        .find(|p| root.exists(p) || root.link(p).is_ok())?;
    let mut unit = Unit {
        masked: root.link(&path).is_ok_and(|t| t == "/dev/null"),
        enabled: is_wanted(root, name),
        ..Unit::default()
    };
    add(root, &path, &mut unit);
    let mut drop_ins: Vec<(String, String)> = FOLDERS
        .iter()
        .map(|d| format!("{d}/{name}.d"))
        .flat_map(|d| {
            let names = root.entries(&d).unwrap_or_default();
            names.into_iter().map(move |n| (n.clone(), format!("{d}/{n}")))
        })
        .filter(|(n, _)| n.ends_with(".conf"))
        .collect();
    // By name; the foremost folder's hides its namesakes.
    drop_ins.sort_by(|a, b| a.0.cmp(&b.0));
    drop_ins.dedup_by(|later, first| later.0 == first.0);
    for (_, path) in drop_ins {
        add(root, &path, &mut unit);
    }
    Some(unit)
}

fn add(root: &Root, path: &str, unit: &mut Unit) {
    let Ok(bytes) = root.read(path) else { return };
    unit.files.push(path.to_owned());
    for e in ini::parse(&bytes).section("Service") {
        let at = format!("{path}:{}", e.line);
        match (e.key.as_str(), e.value.as_str()) {
            ("EnvironmentFile", "") => unit.environment_files.clear(),
            ("EnvironmentFile", file) => {
                unit.environment_files.push((file.trim_start_matches('-').to_owned(), at));
            }
            ("Environment", "") => unit.environment.clear(),
            ("Environment", words) => {
                let words = words.split_whitespace().map(|w| w.trim_matches(['"', '\'']));
                unit.environment.extend(words.map(|w| (w.to_owned(), at.clone())));
            }
            ("ExecStart", "") => unit.exec_start = None,
            ("ExecStart", line) => unit.exec_start = Some((line.to_owned(), at)),
            _ => {}
        }
    }
}

fn is_wanted(root: &Root, name: &str) -> bool {
    FOLDERS.iter().any(|d| {
        let wants = root.entries(d).unwrap_or_default();
        wants.iter().filter(|w| w.ends_with(".wants") || w.ends_with(".requires")).any(|w| {
            let link = format!("{d}/{w}/{name}");
            root.link(&link).is_ok() || root.exists(&link)
        })
    })
}
