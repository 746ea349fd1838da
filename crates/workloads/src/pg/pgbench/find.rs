//! Finds pgbench: in `PATH`, or in Debian's directory for each server version.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    process::Command,
};

use traffic::{Error, Result};

/// Debian's directory of a server's programs, by version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A pgbench that is installed here.
#[derive(Debug, Clone)]
pub struct Tool {
    pub path: PathBuf,
    /// Its version line: `pgbench (PostgreSQL) 15.14 (Debian …)`.
    pub version: String,
    /// Major version, such as 15.
    pub major: u32,
}

/// The first pgbench that runs.
///
/// # Errors
/// There is none: names the package to install.
pub fn find() -> Result<Tool> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    among(&folders, Path::new(VERSIONS))
}

fn among(folders: &[PathBuf], versions: &Path) -> Result<Tool> {
    let found: Vec<PathBuf> =
        folders.iter().map(|f| f.join("pgbench")).filter(|p| p.is_file()).collect();
    // Debian's pgbench in PATH is a Perl wrapper; its CPU time would count as pgbench's.
    let (programs, scripts): (Vec<_>, Vec<_>) = found.into_iter().partition(|p| is_program(p));
    let all = programs.into_iter().chain(of_versions(versions)).chain(scripts);
    all.into_iter().find_map(ask).ok_or_else(|| {
        Error::Environment(
            "no pgbench in PATH nor in /usr/lib/postgresql; Debian has it in postgresql-15 (or the \
             server's package of another version), or leave out --driver pgbench"
                .into(),
        )
    })
}

fn of_versions(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<f64>().ok();
    let mut all: Vec<(f64, PathBuf)> =
        entries.filter_map(|e| Some((number(&e.path())?, e.path()))).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().map(|(_, p)| p.join("bin/pgbench")).filter(|p| p.is_file()).collect()
}

fn is_program(path: &Path) -> bool {
    let mut first = [0; 4];
    File::open(path).and_then(|mut f| f.read_exact(&mut first)).is_ok() && first == *b"\x7fELF"
}

/// Runs it for its version.
fn ask(path: PathBuf) -> Option<Tool> {
    let out = Command::new(&path).arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    let major = major(&version)?;
    out.status.success().then_some(Tool { path, version, major })
}

/// The major version in `pgbench (PostgreSQL) 15.14 (Debian …)` or `pgbench (PostgreSQL) 17beta1`.
fn major(version: &str) -> Option<u32> {
    let number = version.strip_prefix("pgbench (PostgreSQL) ")?;
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn script(at: &Path, text: &str) {
        fs::create_dir_all(at).expect("a folder of ours");
        fs::write(at.join("pgbench"), text).expect("it is there");
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(at.join("pgbench"), all).expect("our own file");
    }

    #[test]
    fn the_newest_answers_before_a_wrapper_and_none_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let (bin, versions) = (folder.path().join("bin"), folder.path().join("versions"));
        let says = |n: &str| format!("#!/bin/sh\necho 'pgbench (PostgreSQL) {n} (Debian)'\n");
        let path = [PathBuf::from("/nonexistent"), bin.clone()];
        match among(&path, &versions) {
            Err(Error::Environment(why)) => assert!(why.contains("postgresql-15"), "{why}"),
            other => panic!("{other:?}"),
        }
        script(&bin, "#!/bin/sh\necho 'install something'; exit 1\n");
        assert!(among(&path, &versions).is_err(), "a wrapper around nothing is none");
        script(&bin, &says("14.1"));
        assert_eq!(among(&path, &versions).expect("the wrapper").major, 14);
        for n in ["9.6", "15", "13"] {
            script(&versions.join(n).join("bin"), &says(&format!("{n}.9")));
        }
        let tool = among(&path, &versions).expect("three of them");
        assert_eq!((tool.major, tool.version.as_str()), (15, "pgbench (PostgreSQL) 15.9 (Debian)"));
        assert_eq!(major("pgbench (PostgreSQL) 17beta1"), Some(17));
        assert_eq!(major("pgbench of another kind"), None);
    }
}
