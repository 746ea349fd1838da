//! What a NIC's link can do, and what it does: modes that both ends offer, and forward error
//! correction (FEC).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BitsPerSec, Reading};

/// Link modes by ethtool's names (`10000baseT/Full`), without ports, pause frames and FEC.
/// **Source**: *ethtool* netlink `LINKMODES_GET` (since Linux 5.6), or `ethtool NIC`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkModes {
    /// Whether the speed is negotiated.
    pub autoneg: Reading<bool>,
    /// What the NIC, its port and its transceiver can do, as the driver says.
    pub supported: Vec<String>,
    /// What the NIC offers to the other end.
    pub advertised: Vec<String>,
    /// What the other end offers; absent where the driver does not say.
    pub peer: Reading<Vec<String>>,
}

/// Forward error correction. **Source**: *ethtool* netlink `FEC_GET` (since Linux 5.13), or
/// `ethtool --show-fec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fec {
    /// The encodings that are configured, in small letters: `auto`, `off`, `rs`, `baser`, `llrs`.
    pub configured: Vec<String>,
    /// The encoding in use, of the same names; absent while the link is down.
    pub active: Reading<String>,
}

/// A pluggable transceiver's own diagnostics. **Source**: *ethtool* netlink `MODULE_EEPROM_GET` (since
/// Linux 5.13, `CAP_NET_ADMIN`) by SFF-8472, SFF-8636 or CMIS; or `ethtool -m`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Module {
    /// Temperature, thousandths of a degree Celsius.
    pub temperature_millicelsius: Reading<i32>,
    /// Temperature from which it gives an alarm; of SFP, and where ethtool printed it.
    pub high_alarm_millicelsius: Reading<i32>,
    /// Alarms that are on: `rx power low`, `bias current high (channel 2)`.
    pub alarms: Vec<String>,
    /// Warnings that are on.
    pub warnings: Vec<String>,
}

/// The speed of a link mode by its name, `None` for one that is no speed (`TP`, `Autoneg`).
///
/// **Source**: `__DEFINE_LINK_MODE_NAME` of `net/ethtool/common.c`: the number of Mbit/s comes
/// first.
pub fn mode_speed(mode: &str) -> Option<BitsPerSec> {
    let (mbit, _) = mode.split_once("base")?;
    Some(BitsPerSec(mbit.parse::<u64>().ok()?.checked_mul(1_000_000)?))
}

/// The highest speed of some link modes.
pub fn highest(modes: &[String]) -> Option<BitsPerSec> {
    modes.iter().filter_map(|mode| mode_speed(mode)).max()
}

impl LinkModes {
    /// The highest speed that both ends offer; `None` where the other end's offer is not known or
    /// they have no mode in common.
    pub fn highest_common(&self) -> Option<BitsPerSec> {
        let peer = self.peer.known()?;
        let common = self.advertised.iter().filter(|mode| peer.contains(mode));
        common.filter_map(|mode| mode_speed(mode)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(list: &[&str]) -> Vec<String> {
        list.iter().map(|&m| m.to_owned()).collect()
    }

    #[test]
    fn the_name_of_a_mode_has_its_speed() {
        let speed = |mode: &str| mode_speed(mode).map(|s| s.0 / 1_000_000);
        assert_eq!(speed("10000baseR_FEC"), Some(10_000));
        assert_eq!(speed("400000baseLR8_ER8_FR8/Full"), Some(400_000));
        assert_eq!([speed("Autoneg"), speed("RS"), speed("baseT")], [None; 3]);
        assert_eq!(
            highest(&modes(&["100baseT/Full", "1000baseT/Full", "TP"])).unwrap().0,
            1e9 as u64
        );
        assert_eq!(highest(&[]), None);
    }

    #[test]
    fn both_ends_must_offer_a_mode() {
        let of = |peer| LinkModes {
            autoneg: true.into(),
            supported: vec![],
            advertised: modes(&["100baseT/Full", "1000baseT/Full", "2500baseT/Full"]),
            peer,
        };
        let common = |peer| of(peer).highest_common().map(|s| s.0 / 1_000_000);
        assert_eq!(
            common(modes(&["10baseT/Half", "1000baseT/Full", "10000baseT/Full"]).into()),
            Some(1000)
        );
        assert_eq!(common(modes(&["10000baseT/Full"]).into()), None);
        assert_eq!(common(Reading::absent("the driver does not say")), None);
    }
}
