//! The kind of an interface, from sysfs and the driver's name alone. rtnetlink's `IFLA_INFO_KIND`
//! takes precedence where it is available; a tree of files has only this.

use model::{Reading, nic::UNKNOWN_KIND};

/// The evidence for a kind.
pub struct Signs<'a> {
    /// Names of the files in `/sys/class/net/X`.
    pub entries: &'a [String],
    /// The text of `uevent`.
    pub uevent: &'a str,
    /// Bits `IFF_*` from the file `flags`.
    pub flags: Option<u64>,
    /// Bits of the file `tun_flags`; tun and tap have it.
    pub tun_flags: Option<u64>,
    pub driver: &'a Reading<String>,
    /// A device is behind it, wherever that was learned.
    pub device: bool,
    /// It is known that no device is behind it.
    pub none_behind: bool,
}

const IFF_LOOPBACK: u64 = 0x8;
const IFF_TAP: u64 = 0x2;

/// `physical`, `loopback`, `bridge`, …; `virtual` where only that is known, [`UNKNOWN_KIND`]
/// without any evidence.
pub fn guess(signs: &Signs) -> String {
    let has = |name: &str| signs.entries.iter().any(|e| e == name);
    // A device behind it counts before DEVTYPE, which wlan and dsa have too.
    if signs.device || has("device") {
        return "physical".into();
    }
    if let Some(kind) = signs.uevent.lines().find_map(|l| l.strip_prefix("DEVTYPE=")) {
        return kind.trim().to_owned();
    }
    if signs.flags.is_some_and(|f| f & IFF_LOOPBACK != 0) {
        return "loopback".into();
    }
    if let Some(flags) = signs.tun_flags {
        return if flags & IFF_TAP != 0 { "tap" } else { "tun" }.into();
    }
    if has("bridge") {
        return "bridge".into();
    }
    if has("bonding") {
        return "bond".into();
    }
    // Virtual drivers name themselves after the kind they make, but for these.
    match signs.driver.known().map(String::as_str) {
        Some("bonding") => "bond".into(),
        Some("802.1Q VLAN Support") => "vlan".into(),
        // The driver's name is the kind, where the interface is known to have no device.
        Some(driver) if signs.none_behind => driver.to_owned(),
        _ if signs.none_behind => "virtual".into(),
        _ => UNKNOWN_KIND.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(entries: &[&str], uevent: &str, flags: u64, tun: Option<u64>, driver: &str) -> String {
        let entries: Vec<String> = entries.iter().map(|&e| e.into()).collect();
        let driver = match driver {
            "" => Reading::absent("none"),
            d => Reading::Known(d.into()),
        };
        guess(&Signs {
            entries: &entries,
            uevent,
            flags: Some(flags),
            tun_flags: tun,
            driver: &driver,
            device: false,
            none_behind: true,
        })
    }

    #[test]
    fn without_a_sign_of_either_the_kind_is_not_known() {
        let none = Reading::absent("none");
        let signs = |none_behind| Signs {
            entries: &[],
            uevent: "",
            flags: None,
            tun_flags: None,
            driver: &none,
            device: false,
            none_behind,
        };
        assert_eq!(guess(&signs(true)), "virtual");
        assert_eq!(guess(&signs(false)), "unknown");
        assert_eq!(guess(&Signs { device: true, ..signs(false) }), "physical");
    }

    #[test]
    fn the_signs_in_order_of_trust() {
        assert_eq!(kind(&["device"], "DEVTYPE=wlan\n", 0x1003, None, "iwlwifi"), "physical");
        assert_eq!(kind(&[], "DEVTYPE=vxlan\nINTERFACE=vx0\n", 0x1003, None, "vxlan"), "vxlan");
        assert_eq!(kind(&[], "INTERFACE=lo\n", 0x9, None, ""), "loopback");
        assert_eq!(kind(&[], "", 0x1003, Some(0x1902), "tun"), "tap");
        assert_eq!(kind(&[], "", 0x1003, Some(0x1801), "tun"), "tun");
        assert_eq!(kind(&["bridge"], "", 0x1003, None, ""), "bridge");
        assert_eq!(kind(&["bonding"], "", 0x1003, None, ""), "bond");
        assert_eq!(kind(&[], "", 0x1003, None, "veth"), "veth");
        assert_eq!(kind(&[], "", 0x1003, None, "802.1Q VLAN Support"), "vlan");
        assert_eq!(kind(&[], "", 0x1003, None, ""), "virtual");
    }
}
