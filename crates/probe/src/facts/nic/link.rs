//! What a NIC's link can do, and its forward error correction: the kernel's answers, or what ethtool
//! printed into a support archive.

use std::collections::BTreeMap;

use model::{
    Reading,
    link::{Fec, LinkModes, mode_speed},
};
use parse::{
    ethtool_link_text::{self, Modes},
    genl_ethtool::{FecMessage, LinkModesMessage},
};

use super::printed::or_printed;
use crate::{
    ReadError, Root,
    ask::{ethnl, netlink::Dump},
    error::reading,
};

const SETTINGS: [&str; 1] = ["ethtool"];
const FEC: [&str; 3] =
    ["ethtool -I --show-fec", "ethtool --include-statistics --show-fec", "ethtool --show-fec"];
/// What a driver without a word about the other end leaves.
const NO_PEER: &str = "the driver does not say what the other end offers";

/// The modes of both ends of a NIC's link; absent where the driver knows none.
pub fn modes(root: &Root, nic: &str) -> Reading<LinkModes> {
    let asked = reading(ethnl::link_modes(root, nic)).map(of_kernel);
    or_printed(asked, root, (&SETTINGS, nic), |text| ethtool_link_text::modes(text).map(of_text))
        .and_then(|modes| match modes.supported.is_empty() {
            true => Reading::absent("the driver reports no link modes"),
            false => Reading::Known(modes),
        })
}

fn of_kernel(message: LinkModesMessage) -> LinkModes {
    let autoneg =
        message.autoneg.map_or(Reading::absent("the driver does not say"), Reading::Known);
    link_modes(autoneg, message.supported, message.advertised, message.peer)
}

fn of_text(text: Modes) -> LinkModes {
    let autoneg = text.autoneg.map_or(Reading::absent("ethtool did not print it"), Reading::Known);
    let of = |list: Option<Vec<String>>| list.unwrap_or_default();
    link_modes(autoneg, of(text.supported), of(text.advertised), text.peer)
}

fn link_modes(
    autoneg: Reading<bool>,
    supported: Vec<String>,
    advertised: Vec<String>,
    peer: Option<Vec<String>>,
) -> LinkModes {
    let speeds = |list: Vec<String>| -> Vec<String> {
        list.into_iter().filter(|mode| mode_speed(mode).is_some()).collect()
    };
    // Not one speed is a driver that does not know the other end.
    let peer = peer.map(speeds).filter(|modes| !modes.is_empty());
    LinkModes {
        autoneg,
        supported: speeds(supported),
        advertised: speeds(advertised),
        peer: peer.map_or(Reading::absent(NO_PEER), Reading::Known),
    }
}

/// The encodings of a NIC. `dump` is the kernel's answer for all.
pub fn fec(root: &Root, dump: &Result<Dump<FecMessage>, ReadError>, nic: &str) -> Reading<Fec> {
    let of_kernel = |message: &FecMessage| {
        let name = |encoding: &String| match encoding.as_str() {
            "None" => "off".to_owned(),
            other => other.to_lowercase(),
        };
        let auto = message.auto.then(|| "auto".to_owned());
        Fec {
            configured: auto.into_iter().chain(message.configured.iter().map(name)).collect(),
            active: active(message.active.as_ref().map(name)),
        }
    };
    or_printed(one(dump, nic).map(of_kernel), root, (&FEC, nic), |text| {
        let text = ethtool_link_text::fec(text)?;
        let names = |list: Vec<String>| -> Vec<String> {
            list.iter().map(|n| n.to_lowercase()).filter(|n| n != "none").collect()
        };
        let in_use = names(text.active);
        Some(Fec {
            configured: names(text.configured),
            active: active((!in_use.is_empty()).then(|| in_use.join(" "))),
        })
    })
    .and_then(|fec| match fec.configured.is_empty() && !fec.active.is_known() {
        true => Reading::absent("the NIC has no forward error correction"),
        false => Reading::Known(fec),
    })
}

fn active(name: Option<String>) -> Reading<String> {
    name.map_or(Reading::absent("the driver names none in use"), Reading::Known)
}

/// Counters of forward error correction by name; absent where the driver has none.
pub(crate) fn fec_counters(
    root: &Root,
    dump: &Reading<Dump<FecMessage>>,
    nic: &str,
) -> Reading<BTreeMap<String, u64>> {
    let asked = dump.as_ref().and_then(|all| entry(all, nic)).map(|m| m.counters.clone());
    or_printed(asked, root, (&FEC, nic), |text| Some(ethtool_link_text::fec(text)?.counters))
        .and_then(|counters| match counters.is_empty() {
            true => Reading::absent("the driver counts no blocks"),
            false => Reading::Known(counters),
        })
}

fn one<'a>(dump: &'a Result<Dump<FecMessage>, ReadError>, nic: &str) -> Reading<&'a FecMessage> {
    match dump {
        Ok(all) => entry(all, nic),
        Err(e) => reading(Err(e.clone())),
    }
}

fn entry<'a>(all: &'a Dump<FecMessage>, nic: &str) -> Reading<&'a FecMessage> {
    let found = all.entries.iter().find(|m| m.nic == nic);
    found.map_or(Reading::absent("the driver has no forward error correction"), Reading::Known)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn ports_and_pause_frames_are_no_modes() {
        let list = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let found = of_kernel(LinkModesMessage {
            nic: "eth0".into(),
            autoneg: Some(true),
            supported: list("100baseT/Full 1000baseT/Full Autoneg TP Pause RS"),
            advertised: list("100baseT/Full Autoneg"),
            peer: Some(list("Autoneg Pause")),
        });
        assert_eq!(found.supported, ["100baseT/Full", "1000baseT/Full"]);
        assert_eq!(found.advertised, ["100baseT/Full"]);
        assert_eq!(found.peer.why_not(), Some(NO_PEER));
    }

    #[test]
    fn an_archive_has_what_ethtool_printed() {
        let sos = tempfile::tempdir().unwrap();
        let folder = sos.path().join("sos_commands/networking");
        fs::create_dir_all(&folder).unwrap();
        let put = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        put(
            "ethtool_eth0",
            "Settings for eth0:\n\tSupported link modes:   25000baseCR/Full\n\
             \tAdvertised link modes:  25000baseCR/Full\n\tSpeed: 10000Mb/s\n\
             \tAuto-negotiation: on\n",
        );
        put(
            "ethtool_-I_--show-fec_eth0",
            "FEC parameters for eth0:\nSupported/Configured FEC encodings: Auto RS BaseR\n\
             Active FEC encoding: RS\nStatistics:\n  corrected_blocks: 9\n  uncorrectable_blocks: 4\n",
        );
        put("ethtool_--show-fec_eth1", "netlink error: Operation not supported\n");
        let root = Root::open(sos.path()).unwrap();
        let modes = modes(&root, "eth0").into_known().unwrap();
        assert_eq!(modes.supported, ["25000baseCR/Full"]);
        let dump = || Err(ReadError::Absent { path: "netlink/fec".into() });
        let found = fec(&root, &dump(), "eth0").into_known().unwrap();
        assert_eq!(
            (found.configured.join(" "), found.active),
            ("auto rs baser".into(), "rs".to_owned().into())
        );
        let counters = fec_counters(&root, &reading(dump()), "eth0").into_known().unwrap();
        assert_eq!(counters["uncorrectable_blocks"], 4);
        assert!(!fec(&root, &dump(), "eth1").is_known());
    }
}
