//! Fetches and unpacks Debian packages without installing them. Packages of another architecture
//! use package lists and a cache of the lab, so that this machine's apt is not affected.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{LabError, arch::Arch, tool};

/// An apt with the options that choose its sources and folders.
#[derive(Debug)]
pub struct Apt {
    /// Options for apt-get and apt-cache.
    options: Vec<String>,
}

impl Apt {
    pub fn machine() -> Self {
        Self { options: Vec::new() }
    }

    /// apt for another architecture, with its state in a directory and this machine's package
    /// sources.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn foreign(arch: Arch, folder: &Path) -> Result<Self, LabError> {
        let failed = |e| LabError::failed(format!("writing into {}", folder.display()), e);
        for inner in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(inner)).map_err(failed)?;
        }
        let config = folder.join("apt.conf");
        fs::write(&config, configuration(arch, folder)).map_err(failed)?;
        Ok(Self { options: vec!["-c".into(), config.display().to_string()] })
    }

    fn arguments<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        self.options.iter().map(String::as_str).chain(words.iter().copied()).collect()
    }

    /// Updates the package lists.
    ///
    /// # Errors
    /// apt's error output.
    pub fn update(&self) -> Result<(), LabError> {
        tool::run("apt-get", &self.arguments(&["update", "-q"])).map(drop)
    }

    /// The first dependency of `package` with this name prefix.
    ///
    /// # Errors
    /// apt is missing or does not know the package.
    pub fn dependency(&self, package: &str, prefix: &str) -> Result<String, LabError> {
        let text = tool::run("apt-cache", &self.arguments(&["depends", package]))?;
        text.lines()
            .filter_map(|l| l.trim().strip_prefix("Depends: "))
            .find(|p| p.starts_with(prefix))
            .map(str::to_owned)
            .ok_or_else(|| {
                LabError::failed(
                    format!("looking for {package}"),
                    format!("it names no {prefix}…; is apt's package list there?"),
                )
            })
    }

    /// Fetches and unpacks a package; returns the directory in `work` with its files.
    ///
    /// # Errors
    /// The error output of apt or dpkg.
    pub fn unpack(&self, package: &str, work: &Path) -> Result<PathBuf, LabError> {
        let folder = work.join(package);
        let io = |what: &str| {
            let what = what.to_owned();
            move |e: std::io::Error| LabError::failed(what, e)
        };
        fs::create_dir_all(&folder).map_err(io("making a folder in the cache"))?;
        let out = tool::command("apt-get")
            .args(self.arguments(&["download", "-q", package]))
            .current_dir(&folder)
            .output()
            .map_err(io("running apt-get"))?;
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr);
            let last = said.lines().next_back().unwrap_or("no message");
            return Err(LabError::failed(format!("apt-get download {package}"), last));
        }
        let deb = fs::read_dir(&folder)
            .map_err(io("reading the cache"))?
            .filter_map(|e| Some(e.ok()?.path()))
            .find(|p| p.extension().is_some_and(|x| x == "deb"))
            .ok_or_else(|| {
                LabError::failed(format!("apt-get download {package}"), "it left no package")
            })?;
        let tree = folder.join("tree");
        tool::run("dpkg-deb", &["-x", &deb.to_string_lossy(), &tree.to_string_lossy()])?;
        Ok(tree)
    }
}

/// apt's configuration for another architecture. It is read after this machine's, and disables its
/// post-update jobs, which concern this machine's packages.
fn configuration(arch: Arch, folder: &Path) -> String {
    let (arch, folder) = (arch.debian(), folder.display());
    format!(
        "APT::Architecture \"{arch}\";\n\
         #clear APT::Architectures;\n\
         APT::Architectures {{ \"{arch}\"; }};\n\
         Dir::State::lists \"{folder}/lists\";\n\
         Dir::State::status \"/dev/null\";\n\
         Dir::Cache \"{folder}/cache\";\n\
         #clear APT::Update::Pre-Invoke;\n\
         #clear APT::Update::Post-Invoke;\n\
         #clear APT::Update::Post-Invoke-Success;\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_apt_keeps_to_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let apt = Apt::foreign(Arch::Aarch64, folder.path()).unwrap();
        let said = tool::run("apt-config", &apt.arguments(&["dump"])).unwrap();
        let own = folder.path().display();
        for line in [
            "APT::Architecture \"arm64\";".to_owned(),
            format!("Dir::State::lists \"{own}/lists\";"),
            format!("Dir::Cache \"{own}/cache\";"),
        ] {
            assert!(said.lines().any(|l| l == line), "{line} is not in\n{said}");
        }
        assert!(!said.contains("APT::Architectures:: \"amd64\""), "{said}");
        assert!(!said.contains("Update::Post-Invoke:: "), "{said}");
    }
}
