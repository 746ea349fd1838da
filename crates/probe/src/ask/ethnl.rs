//! The `ethtool` generic-netlink family, for what the ioctl cannot report: the coalescing
//! parameters that a driver has (the ioctl returns 0 for the others), the push buffer of rings, RSS
//! contexts, link modes by name, and forward error correction. [`super::ethtool`] queries everything else.

use parse::{
    genl_ethtool::{self, CoalesceMessage, FecMessage, LinkModesMessage, RingsMessage, RssMessage},
    netlink::Request,
};

use super::{
    genl, key_part,
    netlink::{self, Dump},
};
use crate::{ReadError, Root};

const LINKMODES_GET: u8 = 4;
const RINGS_GET: u8 = 15;
const COALESCE_GET: u8 = 19;
const FEC_GET: u8 = 29;
const MODULE_EEPROM_GET: u8 = 31;
const RSS_GET: u8 = 38;

/// Coalescing parameters of every device that has any. Needs no capability. Since 5.7.
///
/// # Errors
/// As the kernel answered; absent on an older kernel or a root without this answer.
pub fn coalesce(root: &Root) -> Result<Dump<CoalesceMessage>, ReadError> {
    root.ask("netlink/coalesce", || {
        ask("netlink/coalesce", "5.7", COALESCE_GET, genl_ethtool::coalesce)
    })
}

/// Rings of every device that has them. Needs no capability. Since 5.6; the push buffer since 6.4.
///
/// # Errors
/// As for [`coalesce`].
pub fn rings(root: &Root) -> Result<Dump<RingsMessage>, ReadError> {
    root.ask("netlink/rings", || ask("netlink/rings", "5.6", RINGS_GET, genl_ethtool::rings))
}

/// Every RSS context of every device. Needs no capability. Since 6.11.
///
/// # Errors
/// As for [`coalesce`].
pub fn rss_contexts(root: &Root) -> Result<Dump<RssMessage>, ReadError> {
    root.ask("netlink/rss", || ask("netlink/rss", "6.11", RSS_GET, genl_ethtool::rss))
}

/// Forward error correction of every device that has it, with its counters. Needs no capability. Since
/// 5.13.
///
/// # Errors
/// As for [`coalesce`].
pub fn fec(root: &Root) -> Result<Dump<FecMessage>, ReadError> {
    root.ask("netlink/fec", || ask("netlink/fec", "5.13", FEC_GET, genl_ethtool::fec))
}

/// The link modes of one device: one whose driver fails would end a dump of all. Needs no
/// capability. Since 5.6.
///
/// # Errors
/// As for [`coalesce`]; absent for a device without modes.
pub fn link_modes(root: &Root, nic: &str) -> Result<LinkModesMessage, ReadError> {
    let key = format!("ethtool/{}/linkmodes", key_part(nic));
    root.ask(&key, || {
        let what = format!("{key} (ethtool family, since Linux 5.6)");
        let family = genl::family("ethtool", &what)?;
        let name = attribute(HEADER_DEV_NAME, format!("{nic}\0").as_bytes());
        let request = Request::one(family, &[LINKMODES_GET, 1, 0, 0]).with(HEADER | NESTED, &name);
        netlink::one(libc::NETLINK_GENERIC, &what, &request, |m| {
            (m.kind == family).then(|| genl_ethtool::link_modes(m.payload)).flatten()
        })
    })
}

/// 128 bytes of a transceiver's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModulePart {
    /// The first half of address A0h.
    Lower,
    /// The first half of address A2h, which an SFP with diagnostics has.
    SfpDiagnostics,
}

/// A part of the memory of a device's transceiver. Needs `CAP_NET_ADMIN`. Since 5.13.
///
/// # Errors
/// As for [`coalesce`]; absent for a device without a transceiver.
pub fn module(root: &Root, nic: &str, part: ModulePart) -> Result<Vec<u8>, ReadError> {
    const OFFSET: u16 = 2;
    const LENGTH: u16 = 3;
    const PAGE: u16 = 4;
    const ADDRESS: u16 = 6;
    let (name, address) = match part {
        ModulePart::Lower => ("lower", 0x50),
        ModulePart::SfpDiagnostics => ("sfp", 0x51),
    };
    let key = format!("ethtool/{}/module-{name}", key_part(nic));
    root.ask(&key, || {
        let what = format!("{key} (ethtool family, since Linux 5.13)");
        let family = genl::family("ethtool", &what)?;
        let name = attribute(HEADER_DEV_NAME, format!("{nic}\0").as_bytes());
        let request = Request::one(family, &[MODULE_EEPROM_GET, 1, 0, 0])
            .with(HEADER | NESTED, &name)
            .with(OFFSET, &0u32.to_ne_bytes())
            .with(LENGTH, &128u32.to_ne_bytes())
            .with(PAGE, &[0])
            .with(ADDRESS, &[address]);
        netlink::one(libc::NETLINK_GENERIC, &what, &request, |m| {
            (m.kind == family).then(|| genl_ethtool::module_bytes(m.payload)).flatten()
        })
    })
}

const NESTED: u16 = 0x8000;
/// Must be there, with nothing in it, for a dump of all devices.
const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
/// `ETHTOOL_FLAG_STATS`: the answer has counters.
const WITH_COUNTERS: u32 = 4;

/// An attribute within the header.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn ask<T>(
    key: &str,
    since: &str,
    command: u8,
    parser: fn(&[u8]) -> Option<T>,
) -> Result<Dump<T>, ReadError> {
    let what = format!("{key} (ethtool family, since Linux {since})");
    let family = genl::family("ethtool", &what)?;
    let header = match command {
        FEC_GET => attribute(HEADER_FLAGS, &WITH_COUNTERS.to_ne_bytes()),
        _ => vec![],
    };
    let request = Request::dump(family, &[command, 1, 0, 0]).with(HEADER | NESTED, &header);
    netlink::dump(libc::NETLINK_GENERIC, &what, &request, |m| {
        (m.kind == family).then(|| parser(m.payload)).flatten()
    })
    .map_err(|e| match e {
        // The family is older (5.6) than its operations.
        ReadError::Failed { errno: libc::EOPNOTSUPP, path } => ReadError::Absent { path },
        other => other,
    })
}
