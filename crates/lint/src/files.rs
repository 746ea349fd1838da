//! Reads the files that the operator names, and the profiles that they include.

use std::{
    io,
    path::{Path, PathBuf},
};

use model::lint::{NotFollowed, Place, SetLine};
use parse::{dockerfile, shell_settings, shell_vars, sysctl_conf, yaml_settings};
use probe::{Root, facts::tuned, given};

use crate::{
    LintError, boot,
    kind::{self, Kind},
    tuned as profile,
};

/// The largest file that is read, in bytes. A file of settings has a few thousand.
pub const MOST_BYTES: u64 = 4 << 20;

/// The most files of one run.
const MOST_FILES: usize = 1000;

/// A file that was named, and what it sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFile {
    /// As it was named.
    pub name: String,
    pub kind: Kind,
    /// The file of each setting (an included profile has its own) and the setting, in the order in
    /// which they are carried out.
    pub sets: Vec<(String, SetLine)>,
    /// The text of the file, for its corrected form.
    pub text: String,
    pub notes: Vec<String>,
    /// What may set something and is not followed, in the order of the file.
    pub not_followed: Vec<NotFollowed>,
    /// Whether tuned applies the host's sysctl files again after this profile.
    pub reapplies: bool,
}

/// Reads files; a folder stands for its `*.conf` files. `-` is standard input.
///
/// # Errors
/// A file cannot be read, or is no text of its kind.
pub fn read(root: &Root, names: &[PathBuf]) -> Result<Vec<ReadFile>, LintError> {
    let mut all = Vec::new();
    for name in names {
        for path in files_of(name)? {
            let bytes = bytes(&path)?;
            all.push(of_bytes(root, &path, bytes)?);
        }
    }
    Ok(all)
}

fn files_of(name: &Path) -> Result<Vec<PathBuf>, LintError> {
    if !name.is_dir() {
        return Ok(vec![name.to_owned()]);
    }
    let failed = |source| LintError::Read { path: name.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(name).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|e| e == "conf") {
            files.push(path);
        }
        if files.len() > MOST_FILES {
            return Err(failed(io::Error::other(
                "more than 1000 files; name those that are meant",
            )));
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(failed(io::Error::other("a folder without a *.conf file"))),
        false => Ok(files),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, LintError> {
    let read = match path.as_os_str() == "-" {
        true => given::stdin(MOST_BYTES).map(String::into_bytes),
        false => given::read(path, MOST_BYTES),
    };
    read.map_err(|source| match source.kind() {
        io::ErrorKind::InvalidData => {
            LintError::NoText { path: path.to_owned(), why: "holds no text".into() }
        }
        _ => LintError::Read { path: path.to_owned(), source },
    })
}

/// Takes a file apart.
///
/// # Errors
/// It is no text, or no YAML by its name.
pub fn of_bytes(root: &Root, path: &Path, bytes: Vec<u8>) -> Result<ReadFile, LintError> {
    let no_text = |why: String| LintError::NoText { path: path.to_owned(), why };
    let text = String::from_utf8(bytes).map_err(|_| no_text("holds no text (UTF-8)".into()))?;
    if let Some(line) = text.lines().position(|l| l.contains('\0')) {
        return Err(no_text(format!("holds no text: line {} has a NUL", line + 1)));
    }
    let name = path.display().to_string();
    let kind = kind::of(path, text.as_bytes());
    let (mut notes, mut reapplies) = (Vec::new(), false);
    let not_followed = match kind {
        Kind::Script => commands_not_followed(&text),
        Kind::Dockerfile => starts_not_followed(&text),
        _ => Vec::new(),
    };
    let mut not_followed: Vec<(u32, String)> = not_followed;
    let own = |sets: Vec<SetLine>| sets.into_iter().map(|s| (name.clone(), s)).collect();
    let sets = match kind {
        Kind::Sysctl => {
            let sets = of_sysctl(&text, &name, &mut notes);
            if path.file_name().is_some_and(|n| n == "sysctl.conf") && !sets.is_empty() {
                notes.push(boot::of_sysctl_conf(root));
            }
            own(sets)
        }
        Kind::Tuned => of_tuned(root, path, &text, &mut notes, &mut reapplies),
        Kind::Script => own(shell_settings::parse(text.as_bytes(), Place::Script)),
        Kind::Dockerfile => own(dockerfile::parse(text.as_bytes())),
        Kind::Irqbalance => own(of_irqbalance(&text)),
        Kind::Yaml => {
            let found = yaml_settings::parse(text.as_bytes());
            let found =
                found.map_err(|e| no_text(format!("is no YAML that is understood: {e}")))?;
            if !found.known {
                notes.push(format!("{name}: holds no task of Ansible and no Kubernetes object"));
            }
            not_followed.extend(found.config.into_iter().map(|(line, text)| {
                (line, format!("the text {text} of a ConfigMap, whose reader is not known"))
            }));
            own(found.lines)
        }
    };
    let not_followed = not_followed.into_iter();
    let not_followed =
        not_followed.map(|(line, what)| NotFollowed { file: name.clone(), line, what });
    Ok(ReadFile { kind, sets, notes, not_followed: not_followed.collect(), reapplies, name, text })
}

fn commands_not_followed(text: &str) -> Vec<(u32, String)> {
    let all = shell_settings::passed_over(text.as_bytes()).into_iter();
    all.map(|p| (p.line, p.what)).collect()
}

fn starts_not_followed(text: &str) -> Vec<(u32, String)> {
    let all = dockerfile::at_start(text.as_bytes()).into_iter();
    let what = |setting: &str| {
        let name = setting.strip_prefix("sysctl.").unwrap_or(setting);
        format!("CMD or ENTRYPOINT sets {name} when a container starts, in its network namespace")
    };
    all.map(|s| (s.line, what(&s.setting))).collect()
}

fn of_sysctl(text: &str, name: &str, notes: &mut Vec<String>) -> Vec<SetLine> {
    let conf = sysctl_conf::parse(text.as_bytes());
    for (line, strange) in conf.strange.iter().take(5) {
        notes.push(format!("{name}:{line}: no setting: {strange:?}"));
    }
    if let Some(more @ 1..) = conf.strange.len().checked_sub(5) {
        notes.push(format!("{name}: {more} more lines that are no setting"));
    }
    let set = |s: sysctl_conf::Setting| {
        let knob = format!("sysctl.{}", sysctl_conf::dotted(&s.path));
        Some(shell_settings::set_line(s.line, Place::SysctlFile, knob, &s.value?, true))
    };
    conf.settings.into_iter().filter_map(set).collect()
}

fn of_irqbalance(text: &str) -> Vec<SetLine> {
    let set = |a: shell_vars::Assignment| {
        let known = a.name.starts_with("IRQBALANCE_") || a.name == "OPTIONS";
        known.then(|| {
            let setting = format!("irqbalance {}", a.name);
            shell_settings::set_line(a.line, Place::IrqbalanceFile, setting, &a.value, true)
        })
    };
    shell_vars::parse(text.as_bytes()).into_iter().filter_map(set).collect()
}

/// The profile's lines after those of the profiles that it includes, from beside it or from tuned's
/// folders.
fn of_tuned(
    root: &Root,
    path: &Path,
    text: &str,
    notes: &mut Vec<String>,
    reapplies: &mut bool,
) -> Vec<(String, SetLine)> {
    let shown = path.display().to_string();
    let folder = path.parent();
    let name = folder.and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
    let others = folder.and_then(Path::parent).map(Path::to_owned);
    let mut beside = |name: &str| {
        let file = others.as_ref()?.join(name).join("tuned.conf");
        let bytes = given::read(&file, MOST_BYTES).ok()?;
        Some((file.display().to_string(), bytes))
    };
    let found =
        tuned::of_file(root, &name.unwrap_or_default(), &shown, text.as_bytes(), &mut beside);
    *reapplies = found.reapplies_sysctl_files;
    for missing in &found.missing {
        notes.push(format!("{shown}: includes the profile {missing}, which was not found"));
    }
    if let Some(circle) = &found.circle {
        notes.push(format!("{shown}: profiles include each other in a circle: {circle}"));
    }
    found.lines.iter().filter_map(|l| Some((l.path.clone(), profile::setting(l)?))).collect()
}
