//! Who sets an interface's MTU last: networkd and NetworkManager set it after udev, if their own
//! files name one.

use serde::{Deserialize, Serialize};

use super::section::section;
use crate::Host;

/// The program that sets an interface's MTU after udev.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Owner {
    /// NetworkManager, by this connection.
    NetworkManager { connection: String },
    /// networkd, through a file for this interface alone.
    Networkd {
        /// File name without its directory.
        file: String,
    },
}

/// Whether a program sets the MTU after udev.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mtu {
    Nobody,
    /// This program, which can be given another value.
    Of(Owner),
    /// A program that cannot be given another value, for this reason.
    Overridden(String),
}

/// The value of `NAME=` in a file under `/run` written by systemd or NetworkManager.
fn field(host: &Host, path: &str, name: &str) -> Option<String> {
    let text = host.text(path).ok()?;
    text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
}

impl Owner {
    /// Path and body of the file that makes the program use our value.
    pub fn file(&self, nic: &str, value: &str) -> (String, String) {
        match self {
            Self::NetworkManager { connection } => (
                "/etc/NetworkManager/conf.d/90-netwright.conf".into(),
                format!(
                    "# Holds unless the connection ({connection}) has an MTU of its own; then:\n\
                     # nmcli connection modify {connection} 802-3-ethernet.mtu {value}\n\
                     [connection-netwright-{nic}]\nmatch-device=interface-name:={nic}\n\
                     ethernet.mtu={value}\n"
                ),
            ),
            Self::Networkd { file } => (
                format!("/etc/systemd/network/{file}.d/90-netwright.conf"),
                format!("[Link]\nMTUBytes={value}\n"),
            ),
        }
    }
}

/// Finds out who sets the MTU.
pub fn mtu(host: &Host, ifindex: u32) -> Mtu {
    let state = format!("/run/NetworkManager/devices/{ifindex}");
    if let Some(connection) = field(host, &state, "connection-uuid") {
        return Mtu::Of(Owner::NetworkManager { connection });
    }
    let links = "/run/systemd/netif/links";
    let Some(file) = field(host, &format!("{links}/{ifindex}"), "NETWORK_FILE") else {
        return Mtu::Nobody;
    };
    let text = host.text(&file).unwrap_or_default();
    let Some(line) = section(&text, "Link").into_iter().find(|l| l.starts_with("MTUBytes=")) else {
        return Mtu::Nobody;
    };
    let users = host.root().entries(links).unwrap_or_default();
    let same =
        |i: &&String| field(host, &format!("{links}/{i}"), "NETWORK_FILE").as_ref() == Some(&file);
    if users.iter().filter(same).count() > 1 {
        return Mtu::Overridden(format!(
            "networkd sets {line} for several interfaces ({file}): split that file"
        ));
    }
    let name = file.rsplit('/').next().unwrap_or_default();
    Mtu::Of(Owner::Networkd { file: name.to_owned() })
}

/// The NetworkManager connection of an interface.
pub fn connection(host: &Host, ifindex: u32) -> Option<String> {
    field(host, &format!("/run/NetworkManager/devices/{ifindex}"), "connection-uuid")
}

#[cfg(test)]
mod tests;
