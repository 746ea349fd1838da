//! The system that the files are written for: this host, or a system in a directory.

use std::path::Path;

use model::tune::PersistNote;

use crate::{Host, TuneError};

/// The configuration that decides which files are written, and which settings override them.
pub struct Destination {
    folder: Option<Host>,
    system: bool,
}

impl Destination {
    pub fn this() -> Self {
        Self { folder: None, system: false }
    }

    /// A system in a directory. Without `/usr` the directory is no complete system: then only the
    /// settings in its files count, and this host answers everything else.
    ///
    /// # Errors
    /// It is not a directory.
    pub fn folder(path: &Path) -> Result<Self, TuneError> {
        let folder = Host::tree(path)?;
        let system = folder.root().exists("/usr");
        Ok(Self { folder: Some(folder), system })
    }

    /// Whether it is not this host's system.
    pub fn is_another_system(&self) -> bool {
        self.system
    }

    /// The host with the existing configuration files.
    pub fn settings<'h>(&'h self, host: &'h Host) -> &'h Host {
        self.folder.as_ref().unwrap_or(host)
    }

    /// The host with the installed programs and units.
    pub fn system<'h>(&'h self, host: &'h Host) -> &'h Host {
        self.folder.as_ref().filter(|_| self.system).unwrap_or(host)
    }

    /// A note on what the directory was judged by; `None` for this host.
    pub fn note(&self) -> Option<PersistNote> {
        self.folder.as_ref()?;
        Some(match self.system {
            true => PersistNote::JudgedByFolder,
            false => PersistNote::JudgedByHost,
        })
    }
}
