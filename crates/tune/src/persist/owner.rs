//! Who has the last word on an interface's MTU: networkd and NetworkManager set it after udev,
//! where their own files say one.

use super::{record::Interface, subject::section};
use crate::Host;

/// What beside the `.link` file is needed for an interface's MTU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mtu {
    /// Nothing.
    Nothing,
    /// A file: path and body.
    File(String, String),
    /// It would be overridden, for this reason.
    Overridden(String),
}

/// The value of `NAME=` in a file of the kind that systemd and NetworkManager keep under `/run`.
fn field(host: &Host, path: &str, name: &str) -> Option<String> {
    let text = host.text(path).ok()?;
    text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
}

/// Looks who owns it.
pub fn mtu(host: &Host, nic: &Interface, ifindex: u32, value: &str) -> Mtu {
    let state = format!("/run/NetworkManager/devices/{ifindex}");
    if let Some(uuid) = field(host, &state, "connection-uuid") {
        return Mtu::File(
            "/etc/NetworkManager/conf.d/90-netwright.conf".into(),
            format!(
                "# Holds unless the connection ({uuid}) has an MTU of its own; then:\n\
                 # nmcli connection modify {uuid} 802-3-ethernet.mtu {value}\n\
                 [connection-netwright-{0}]\nmatch-device=interface-name:={0}\nethernet.mtu={value}\n",
                nic.name
            ),
        );
    }
    let links = "/run/systemd/netif/links";
    let Some(file) = field(host, &format!("{links}/{ifindex}"), "NETWORK_FILE") else {
        return Mtu::Nothing;
    };
    let text = host.text(&file).unwrap_or_default();
    let Some(line) = section(&text, "Link").into_iter().find(|l| l.starts_with("MTUBytes=")) else {
        return Mtu::Nothing;
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
    Mtu::File(
        format!("/etc/systemd/network/{name}.d/90-netwright.conf"),
        format!("[Link]\nMTUBytes={value}\n"),
    )
}

/// The connection by which NetworkManager runs an interface.
pub fn connection(host: &Host, ifindex: u32) -> Option<String> {
    field(host, &format!("/run/NetworkManager/devices/{ifindex}"), "connection-uuid")
}
