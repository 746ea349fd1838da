//! The system that the files are for: this one, or the one in a folder.

use std::path::Path;

use model::tune::PersistNote;

use crate::{Host, TuneError};

/// Whose files decide what is written, and what overrides it.
pub struct Destination {
    folder: Option<Host>,
    system: bool,
}

impl Destination {
    pub fn this() -> Self {
        Self { folder: None, system: false }
    }

    /// What stands in a folder. One without `/usr` is no system: then it counts which settings its files
    /// make, and for everything else this host.
    ///
    /// # Errors
    /// When it is no folder.
    pub fn folder(path: &Path) -> Result<Self, TuneError> {
        let folder = Host::tree(path)?;
        let system = folder.root().exists("/usr");
        Ok(Self { folder: Some(folder), system })
    }

    /// Whether it is not this host's system.
    pub fn is_another_system(&self) -> bool {
        self.system
    }

    /// Whose configuration is read beside ours.
    pub fn settings<'h>(&'h self, host: &'h Host) -> &'h Host {
        self.folder.as_ref().unwrap_or(host)
    }

    /// Whose programs and units there are.
    pub fn system<'h>(&'h self, host: &'h Host) -> &'h Host {
        self.folder.as_ref().filter(|_| self.system).unwrap_or(host)
    }

    /// What it is judged by, where it is a folder.
    pub fn note(&self) -> Option<PersistNote> {
        self.folder.as_ref()?;
        Some(match self.system {
            true => PersistNote::JudgedByFolder,
            false => PersistNote::JudgedByHost,
        })
    }
}
