//! Network interfaces, from `/sys/class/net` and ethtool. Other modules add what rtnetlink, the
//! `netdev` family and `/proc/interrupts` have: NAPI instances, qdiscs, addresses, MTU limits, XDP,
//! details of a kind, interrupts.

mod ethtool;
mod kind;
mod link;
mod module;
pub mod place;
mod printed;
mod queues;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{
    BitsPerSec, Nanos, NumaNode, Reading,
    facts::NoAccess,
    nic::{KindDetails, Nic},
};
use parse::text;

use crate::{ReadError, Root, ask::ethtool::Ethtool, error::reading, facts::pci};

pub(crate) use link::fec_counters;
pub(super) use place::of as device;
use printed::or_printed;

const NET: &str = "/sys/class/net";
const NOT_READ: &str = "not read";

/// Every interface of `/sys/class/net`, ascending by name. What stands there and is no folder
/// (`bonding_masters`), and an interface that vanished meanwhile, is no interface.
pub fn read(root: &Root) -> Vec<Nic> {
    let ethtool = Ethtool::new(root);
    let dumps = ethtool::EthtoolDumps::read(root);
    let names = root.entries(NET).unwrap_or_default();
    names.iter().filter_map(|name| one(root, &ethtool, &dumps, name)).collect()
}

/// The names of all interfaces, ascending, and nothing more of them.
pub fn names(root: &Root) -> Vec<String> {
    let mut names = root.entries(NET).unwrap_or_default();
    names.retain(|name| root.read(&format!("{NET}/{name}/ifindex")).is_ok());
    names.sort_unstable();
    names
}

fn one(root: &Root, ethtool: &Ethtool, dumps: &ethtool::EthtoolDumps, name: &str) -> Option<Nic> {
    let dir = format!("{NET}/{name}");
    let at = |file: &str| format!("{dir}/{file}");
    let entries = match root.entries(&dir) {
        Ok(entries) => entries,
        // A link without its target still shows that the interface exists, and so does its index.
        Err(ReadError::Absent { .. })
            if root.is_whole()
                || !names_interface(root, name) && root.read(&at("ifindex")).is_err() =>
        {
            return None;
        }
        Err(_) => vec![],
    };
    let place = place::of(root, name);
    let info = or_printed(
        reading(ethtool.driver_info(name)),
        root,
        (&printed::DRIVER, name),
        printed::driver,
    );
    let driver = driver(root, &place, &info);
    let flags = root.parsed(&at("flags"), text::hex);
    let (speed_bps, duplex) = speed_and_duplex(root, ethtool, name);
    let uevent = root.read(&at("uevent")).unwrap_or_default();
    let has = |file: &str| entries.iter().any(|e| e == file);
    let tun_flags =
        if has("tun_flags") { root.parsed(&at("tun_flags"), text::hex).into_known() } else { None };
    Some(Nic {
        name: name.to_owned(),
        ifindex: root.number(&at("ifindex")),
        kind: kind::guess(&kind::Signs {
            entries: &entries,
            uevent: &String::from_utf8_lossy(&uevent),
            flags: flags.get(),
            tun_flags,
            driver: &driver,
            device: place.is_known(),
            // A folder that was copied whole has the `device` link too.
            none_behind: has("ifindex") || place::is_virtual(root, name),
        }),
        details: KindDetails::None,
        driver,
        driver_version: info.as_ref().and_then(|i| said(&i.version, "driver version")),
        firmware: info.as_ref().and_then(|i| said(&i.fw_version, "firmware version")),
        bus_address: place.as_ref().map(|p| p.bus_address.clone()),
        pci: place.as_ref().and_then(|p| match &p.pci {
            Some(function) => Reading::Known(pci::read(root, function)),
            None => Reading::absent(format!("{}: no PCI function", p.bus_address)),
        }),
        numa_node: place.as_ref().and_then(|p| numa_node(root, p)),
        mac: root.word(&at("address")),
        addresses: Reading::absent(NOT_READ),
        operstate: root.word(&at("operstate")),
        up: flags.map(|f| f & libc::IFF_UP as u64 != 0),
        carrier: root.number::<u8>(&at("carrier")).map(|c| c != 0),
        speed_bps,
        duplex,
        link_modes: link::modes(root, name),
        fec: link::fec(root, &dumps.fec, name),
        module: module::read(root, name, place.is_known()),
        mtu: root.number(&at("mtu")),
        min_mtu: Reading::absent(NOT_READ),
        max_mtu: Reading::absent(NOT_READ),
        txqueuelen: root.number(&at("tx_queue_len")),
        channels: or_printed(
            ethtool::channels(ethtool, name),
            root,
            (&printed::CHANNELS, name),
            printed::channels,
        ),
        rings: or_printed(
            ethtool::rings(ethtool, dumps, name),
            root,
            (&printed::RINGS, name),
            printed::rings,
        ),
        coalesce: or_printed(
            ethtool::coalesce(ethtool, dumps, name),
            root,
            (&printed::COALESCE, name),
            printed::coalesce,
        ),
        features: or_printed(
            ethtool::features(ethtool, name),
            root,
            (&printed::FEATURES, name),
            printed::features,
        ),
        rss: or_printed(
            ethtool::rss(ethtool, dumps, name),
            root,
            (&printed::RSS, name),
            printed::rss,
        ),
        pause: or_printed(
            ethtool::pause(ethtool, name),
            root,
            (&printed::PAUSE, name),
            printed::pause,
        ),
        ntuple_rules: or_printed(
            reading(ethtool.rule_count(name)).map(|r| r.rule_cnt),
            root,
            (&printed::RULES, name),
            printed::rule_count,
        ),
        driver_stats: driver_stats(root, ethtool, name),
        statistics: statistics(root, &at("statistics")),
        gro_flush_timeout_ns: root.number(&at("gro_flush_timeout")).map(Nanos),
        napi_defer_hard_irqs: root.number(&at("napi_defer_hard_irqs")),
        threaded_napi: root.number::<u8>(&at("threaded")).map(|t| t != 0),
        queues: queues::read(root, name),
        irqs: vec![],
        napis: Reading::absent(NOT_READ),
        qdiscs: Reading::absent(NOT_READ),
        master: if has("master") || entries.is_empty() {
            master(root, &at("master"))
        } else {
            Reading::Known(String::new())
        },
        xdp: Reading::absent(NOT_READ),
    })
}

/// The driver's own counters by name.
pub(crate) fn driver_stats(
    root: &Root,
    ethtool: &Ethtool,
    name: &str,
) -> Reading<BTreeMap<String, u64>> {
    or_printed(
        ethtool::stats(ethtool, name),
        root,
        (&printed::STATISTICS, name),
        printed::statistics,
    )
}

/// Whether an interface's link in a copied tree leads to where interfaces are.
fn names_interface(root: &Root, name: &str) -> bool {
    root.link(&format!("{NET}/{name}")).is_ok_and(|to| to.ends_with(&format!("/net/{name}")))
}

/// A text that drivers leave empty, or fill with `N/A`, when they have nothing to say.
fn said(text: &str, what: &str) -> Reading<String> {
    match text {
        "" | "N/A" => Reading::absent(format!("the driver gives no {what}")),
        text => Reading::Known(text.to_owned()),
    }
}

/// The last part of a link's target.
fn target_name(target: &str) -> String {
    target.rsplit('/').next().unwrap_or(target).to_owned()
}

/// The driver that is bound to the device; for a virtual interface what the driver calls
/// itself.
fn driver(
    root: &Root,
    place: &Reading<place::BusLocation>,
    info: &Reading<crate::ask::ethtool::answers::DriverInfo>,
) -> Reading<String> {
    place
        .as_ref()
        .and_then(|p| reading(root.link(&format!("{}/driver", p.device))))
        .map(|target| target_name(&target))
        .or_else(|| info.as_ref().and_then(|i| said(&i.driver, "name")))
}

/// The upper device, `""` once it has left it.
fn master(root: &Root, path: &str) -> Reading<String> {
    match root.link(path) {
        Err(ReadError::Absent { .. }) => Reading::Known(String::new()),
        link => reading(link).map(|target| target_name(&target)),
    }
}

/// The device's node, else its PCI function's (a virtio device has none).
fn numa_node(root: &Root, place: &place::BusLocation) -> Reading<NumaNode> {
    let node = |dir: &str| {
        let path = format!("{dir}/numa_node");
        root.number::<i64>(&path).and_then(|n| match u32::try_from(n) {
            Ok(n) => Reading::Known(NumaNode(n)),
            Err(_) => Reading::absent(format!("{path}: {n}, the firmware names no node")),
        })
    };
    match &place.pci {
        Some(function) if *function != place.device => {
            node(&place.device).or_else(|| node(function))
        }
        _ => node(&place.device),
    }
}

/// Speed and duplex from sysfs; where sysfs will not say because the interface is down, what
/// the driver says.
fn speed_and_duplex(
    root: &Root,
    ethtool: &Ethtool,
    name: &str,
) -> (Reading<BitsPerSec>, Reading<String>) {
    let (speed_path, duplex_path) = (format!("{NET}/{name}/speed"), format!("{NET}/{name}/duplex"));
    let speed = root.number::<i64>(&speed_path);
    let duplex = root.word(&duplex_path);
    if speed.is_known() || duplex.is_known() {
        let duplex = duplex.and_then(|d| match d.as_str() {
            "unknown" => Reading::absent(format!("{duplex_path}: unknown")),
            _ => Reading::Known(d),
        });
        return (speed.and_then(|s| bits_per_s(s, &speed_path)), duplex);
    }
    match ethtool.link_settings(name) {
        Ok(link) => {
            let call = format!("{speed_path} gives none, and ETHTOOL_GLINKSETTINGS");
            let duplex = match link.duplex {
                0 => Reading::Known("half".into()),
                1 => Reading::Known("full".into()),
                _ => Reading::absent(format!("{call}: unknown")),
            };
            (bits_per_s(link.speed.into(), &call), duplex)
        }
        // The file's own reason says more than "not supported".
        Err(_) => (speed.and_then(|s| bits_per_s(s, &speed_path)), duplex),
    }
}

/// From Mbit/s; −1, its unsigned form and 0 all mean that the driver does not know.
fn bits_per_s(mbit: i64, source: &str) -> Reading<BitsPerSec> {
    match u64::try_from(mbit) {
        Ok(n) if n > 0 && n < u64::from(u32::MAX) => Reading::Known(BitsPerSec(n * 1_000_000)),
        _ => Reading::absent(format!("{source}: unknown ({mbit})")),
    }
}

/// Every counter of the folder that is a number.
pub(crate) fn statistics(root: &Root, dir: &str) -> Reading<BTreeMap<String, u64>> {
    reading(root.entries(dir)).map(|names| {
        let counter = |name: String| {
            let value = root.number(&format!("{dir}/{name}")).into_known()?;
            Some((name, value))
        };
        names.into_iter().filter_map(counter).collect()
    })
}

/// What this process was kept from seeing of these interfaces: a line for each capability.
pub fn no_access(nics: &[Nic]) -> Vec<NoAccess> {
    let mut lines = vec![];
    let why = |denied: &mut dyn Iterator<Item = Option<String>>| denied.flatten().next();
    fn denied<T>(reading: &Reading<T>) -> Option<String> {
        match reading {
            Reading::Denied(why) => Some(why.clone()),
            _ => None,
        }
    }
    if let Some(why) =
        why(&mut nics.iter().map(|n| denied(&n.pci.as_ref().known()?.read_request_bytes)))
    {
        lines.push(NoAccess {
            what: "PCI read request and payload sizes of NICs".into(),
            why,
            remedy: "CAP_SYS_ADMIN, or run as root".into(),
        });
    }
    let settings = |n: &Nic| {
        denied(&n.channels)
            .or_else(|| denied(&n.rings))
            .or_else(|| denied(&n.coalesce))
            .or_else(|| denied(&n.features))
            .or_else(|| denied(&n.rss))
            .or_else(|| denied(&n.pause))
            .or_else(|| denied(&n.ntuple_rules))
            .or_else(|| denied(&n.driver_stats))
    };
    if let Some(why) = why(&mut nics.iter().map(settings)) {
        lines.push(NoAccess {
            what: "settings and statistics of NICs (ethtool)".into(),
            why,
            remedy: "CAP_NET_ADMIN, or a container profile that allows SIOCETHTOOL".into(),
        });
    }
    lines
}
