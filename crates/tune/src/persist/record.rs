//! What we keep over a reboot, and in which files: `persist.json` beside the journals.

use std::path::{Path, PathBuf};

use model::SCHEMA_VERSION;
use serde::{Deserialize, Serialize};

use super::{files, owner::Owner};
use crate::TuneError;

/// A value with what it is a setting of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistedValue {
    /// The change set that it is from.
    pub id: u64,
    /// Knob, as it was called when it was last written to the files.
    pub knob: String,
    /// What it was called when it was set, if its interface was renamed between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_as: Option<String>,
    /// Value in the kernel's form.
    pub value: String,
    pub subject: Subject,
}

impl PersistedValue {
    /// Whether it is what a change set wrote under this name.
    pub fn is_of(&self, id: u64, knob: &str) -> bool {
        self.id == id && self.set_as.as_ref().unwrap_or(&self.knob) == knob
    }
}

/// What a value is a setting of, in words that a reboot does not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Subject {
    /// The kernel, or a file of sysfs whose path stays.
    Host,
    Nic(Interface),
    /// The interrupt of this action (`virtio0-input.0`); its number may be another one next time.
    Irq {
        /// As in `/proc/interrupts`.
        action: String,
    },
    /// The processes of a systemd service.
    Unit {
        /// `postgresql@15-main.service`.
        name: String,
    },
}

/// How an interface is known again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub name: String,
    /// MAC address, for one with hardware behind it; the others are known by name.
    pub mac: Option<String>,
    /// Its driver, where it has hardware behind it: VLANs and bonds share the address.
    pub driver: Option<String>,
    /// The `.link` file that applied before ours, if known.
    pub link_file: Option<String>,
    /// Its `[Link]` section, which ours takes over: only one file applies.
    pub link_lines: Vec<String>,
    /// Who sets its MTU after udev, as it was when the interface was last there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_owner: Option<Owner>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Files are being written; if nobody does so now, it was interrupted.
    pub pending: bool,
    pub kept: Vec<PersistedValue>,
    /// Files that are ours, or were about to be.
    pub files: Vec<String>,
    /// Folders that we made for them.
    pub folders: Vec<String>,
}

impl Record {
    /// Its file below a folder of state.
    pub fn path(state: &Path) -> PathBuf {
        state.join("persist.json")
    }

    /// What is there; the empty one where there is none.
    ///
    /// # Errors
    /// When it cannot be read or makes no sense.
    pub fn load(path: &Path) -> Result<Self, TuneError> {
        let name = path.display().to_string();
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(TuneError::io(&name, &e)),
        };
        Self::parsed(&name, &bytes)
    }

    /// Of a file's bytes; the name is for people.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn parsed(name: &str, bytes: &[u8]) -> Result<Self, TuneError> {
        let record: Self = serde_json::from_slice(bytes)
            .map_err(|e| TuneError::Environment(format!("{name}: makes no sense ({e})")))?;
        if record.schema_version != SCHEMA_VERSION {
            return Err(TuneError::Environment(format!(
                "{name}: has schema_version {}, this netwright knows {SCHEMA_VERSION}",
                record.schema_version
            )));
        }
        Ok(record)
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TuneError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| TuneError::Environment(format!("{}: {e}", path.display())))?;
        files::put(path, &format!("{text}\n"), 0o644)
    }
}
