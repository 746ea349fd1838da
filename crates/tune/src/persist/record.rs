//! The record of kept values and our files: `persist.json`, next to the journals.

use std::path::{Path, PathBuf};

use model::SCHEMA_VERSION;
use serde::{Deserialize, Serialize};

use super::{files, owner::Owner};
use crate::TuneError;

/// A kept value and the object it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistedValue {
    /// The change set that set it.
    pub id: u64,
    /// The knob's name when the files were last written.
    pub knob: String,
    /// The knob's name when it was set, if its interface was renamed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_as: Option<String>,
    /// The value in the kernel's form.
    pub value: String,
    pub subject: Subject,
}

impl PersistedValue {
    /// Whether this change set wrote it under this name.
    pub fn is_of(&self, id: u64, knob: &str) -> bool {
        self.id == id && self.set_as.as_ref().unwrap_or(&self.knob) == knob
    }
}

/// The object of a value, identified by names that a reboot does not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Subject {
    /// The kernel, or a sysfs file with a fixed path.
    Host,
    Nic(Interface),
    /// The interrupt of this action (`virtio0-input.0`); its number may differ after a reboot.
    Irq {
        /// Action name, as in `/proc/interrupts`.
        action: String,
    },
    /// The processes of a systemd service.
    Unit {
        /// Unit name, such as `postgresql@15-main.service`.
        name: String,
    },
}

/// How an interface is identified after a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub name: String,
    /// MAC address of a hardware interface; virtual ones are identified by name.
    pub mac: Option<String>,
    /// Driver of a hardware interface: VLANs and bonds share its address.
    pub driver: Option<String>,
    /// The `.link` file that applied before ours, if known.
    pub link_file: Option<String>,
    /// The lines of its `[Link]` section, copied into ours: only one file applies.
    pub link_lines: Vec<String>,
    /// The program that set its MTU after udev, when the interface last existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_owner: Option<Owner>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Files are being written, or writing them was interrupted.
    pub pending: bool,
    pub kept: Vec<PersistedValue>,
    /// Files that we wrote or were about to write.
    pub files: Vec<String>,
    /// Directories that we created for them.
    pub folders: Vec<String>,
}

impl Record {
    /// Path of the record in a state directory.
    pub fn path(state: &Path) -> PathBuf {
        state.join("persist.json")
    }

    /// Reads the record; an empty one if the file is missing.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn load(path: &Path) -> Result<Self, TuneError> {
        let name = path.display().to_string();
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(TuneError::io(&name, &e)),
        };
        Self::parsed(&name, &bytes)
    }

    /// Parses a record; the name is for messages.
    ///
    /// # Errors
    /// The record is damaged.
    pub fn parsed(name: &str, bytes: &[u8]) -> Result<Self, TuneError> {
        let record: Self = model::json::read(bytes)
            .map_err(|e| TuneError::Environment(format!("{name}: makes no sense ({e})")))?;
        if record.schema_version != SCHEMA_VERSION {
            return Err(TuneError::Environment(format!(
                "{name}: has schema_version {}, this netwright knows {SCHEMA_VERSION}",
                record.schema_version
            )));
        }
        Ok(record)
    }

    /// Writes the record atomically.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TuneError> {
        let text = serde_json::to_string(self)
            .map_err(|e| TuneError::Environment(format!("{}: {e}", path.display())))?;
        files::put(path, &(model::json::indented(&text) + "\n"), 0o644)
    }
}
