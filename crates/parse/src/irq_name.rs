//! The action names of network drivers' interrupts (`eth0-TxRx-3`, `virtio2-input.0`,
//! `mlx5_comp3@pci:0000:03:00.0`): the owner and the queue of each.
//!
//! **Source**: the `request_irq` calls of the drivers. There is no common rule, so this is the only
//! table of them. It is used last: the kernel's own answer (netdev netlink) takes precedence. An
//! unknown name gives [`Role::Unknown`], never a guess.

use model::QueueId;

/// What a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IrqName<'a> {
    pub owner: Owner<'a>,
    /// What it is for.
    pub role: Role,
}

/// The owner that a name indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// An interface, by its name when the driver asked for the interrupt (udev may have renamed
    /// it since).
    Nic(&'a str),
    /// A device: a PCI address or `virtio2`.
    Device(&'a str),
}

/// What an interrupt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Rx(u32),
    Tx(u32),
    /// A receive and a transmit queue of one number.
    Combined(u32),
    /// A receive queue and the first transmit queue (`qlcnic`).
    RxAndFirstTx(u32),
    /// A number with a meaning that depends on the driver, see [`IrqName::queues`].
    Vector(u32),
    /// The name of the owner and no more: all its queues if this is its only interrupt, else
    /// link events (`igb`, `ixgbe`, `e1000e`).
    Whole,
    /// Configuration, link events, a mailbox, a control queue.
    Event,
    /// The table does not know.
    Unknown,
}

type Make = fn(u32) -> Role;

/// What stands between owner and number; the first that fits counts.
const NUMBERED: &[(&str, Make)] = &[
    (":fdir-TxRx-", |_| Role::Event),  // i40e: flow director
    ("-tx-0-rx-", Role::RxAndFirstTx), // qlcnic
    ("-Mailbox-", |_| Role::Event),    // idpf
    ("-event-", |_| Role::Event),      // vmxnet3
    ("-iscsi", |_| Role::Event),       // cxgb4
    ("-Tx-Rx-", Role::Combined),       // ena
    ("-TxRx-", Role::Combined),        // igb, igc, ixgbe, i40e, iavf, ice, idpf, bnxt_en, hns3
    ("-txrx-", Role::Combined),        // tg3
    ("-rxtx-", Role::Combined),        // vmxnet3, nfp, nicvf, octeontx2
    ("-fp-", Role::Combined),          // bnx2x, qede
    ("-input.", Role::Rx),             // virtio_net
    ("-output.", Role::Tx),            // virtio_net
    ("-ntfy-block.", Role::Vector),    // gve before 2023
    ("-rx-", Role::Rx),                // igb, e1000e, bnxt_en, enic, sfc, vmxnet3, i40e
    ("-tx-", Role::Tx),
    ("-Rx-", Role::Rx), // hns3, idpf
    ("-Tx-", Role::Tx),
    (":rx-", Role::Rx), // stmmac
    (":tx-", Role::Tx),
    ("_rxq", Role::Rx), // hinic
    ("_txq", Role::Tx),
    ("-Rx", Role::Rx),      // cxgb4
    ("-rx", Role::Rx),      // ionic
    ("-tx", Role::Tx),      // ionic
    ("-q", Role::Combined), // be2net, xen-netfront with one event channel
    ("-", Role::Vector),    // sfc, atlantic, bnx2, tg3
];

/// Endings without a number.
const NAMED: &[(&str, Role)] = &[
    ("-virtqueues", Role::Whole), // virtio: one vector for all queues
    ("-config", Role::Event),     // virtio
    ("-control", Role::Event),    // virtio_net
    (":misc", Role::Event),       // i40e, ice
    (":mbx", Role::Event),        // iavf
    ("-mbx", Role::Event),
    ("-mailbox", Role::Event),  // qlcnic
    ("-mgmnt", Role::Event),    // gve before 2023
    ("-lsc", Role::Event),      // nfp: link state
    ("-exn", Role::Event),      // nfp: exceptions
    ("-sp", Role::Event),       // bnx2x, qede: slow path
    ("-err", Role::Event),      // enic
    ("-notify", Role::Event),   // enic
    ("-FWeventq", Role::Event), // cxgb4
    ("-unused", Role::Event),   // igb
    (":mac", Role::Event),      // stmmac
    (":wol", Role::Event),      // stmmac
    (":lpi", Role::Event),      // stmmac
];

/// What stands before `@pci:ADDRESS` (or `@ADDRESS`), without its number.
const AT_DEVICE: &[(&str, Make)] = &[
    ("mlx5_comp", Role::Combined),
    ("mlx5_async", |_| Role::Event),
    ("mlx5_cmd_eq", |_| Role::Event),
    ("mlx5_pages_eq", |_| Role::Event),
    ("mlx5_ctrl", |_| Role::Event),
    ("mlx4-async", |_| Role::Event),
    ("mlx4-", Role::Vector),
    ("gve-ntfy-blk", Role::Vector),
    ("gve-mgmnt", |_| Role::Event),
    ("ena-mgmnt", |_| Role::Event),
    ("mana_q", Role::Combined),
    ("mana_hwc", |_| Role::Event),
];

/// Driver names that some drivers put before the owner.
const DRIVERS: &[&str] =
    &["i40e-", "iavf-", "i40evf-", "ice-", "idpf-", "hns3-", "hclge-misc-", "ionic-", "fbnic-"];

/// Reads one action name (`/proc/interrupts` separates several by `, `).
pub fn parse(name: &str) -> IrqName<'_> {
    if let Some((what, device)) = name.split_once('@') {
        let device = device.strip_prefix("pci:").unwrap_or(device);
        return IrqName { owner: Owner::Device(device), role: at_device(what) };
    }
    let (head, role) = head_and_role(name);
    let (head, driver) = DRIVERS
        .iter()
        .find_map(|d| head.strip_prefix(d).filter(|h| !h.is_empty()).map(|h| (h, *d)))
        .unwrap_or((head, ""));
    let role = if driver == "hclge-misc-" { Role::Event } else { role };
    let owner = if is_device(head) { Owner::Device(head) } else { Owner::Nic(head) };
    IrqName { owner, role }
}

fn at_device(what: &str) -> Role {
    let stem = what.trim_end_matches(|c: char| c.is_ascii_digit());
    let Some((_, make)) = AT_DEVICE.iter().find(|(w, _)| *w == stem) else {
        return Role::Unknown;
    };
    let number = what.get(stem.len()..).unwrap_or_default();
    match number.parse() {
        Ok(n) => make(n),
        // `mlx5_async` and its like have none.
        Err(_) if number.is_empty() && make(0) == Role::Event => Role::Event,
        Err(_) => Role::Unknown,
    }
}

fn head_and_role(name: &str) -> (&str, Role) {
    // xen-netfront: `eth0-q3-rx`.
    for (end, make) in [("-rx", Role::Rx as Make), ("-tx", Role::Tx)] {
        let inner = name.strip_suffix(end).and_then(|n| numbered(n, "-q"));
        if let Some((head, n)) = inner {
            return (head, make(n));
        }
    }
    if let Some((head, role)) =
        NAMED.iter().find_map(|(end, role)| Some((name.strip_suffix(end)?, *role)))
    {
        return (head, role);
    }
    if is_device(name) {
        return (name, Role::Whole);
    }
    let found = NUMBERED.iter().find_map(|(w, make)| numbered(name, w).map(|(h, n)| (h, make(n))));
    if let Some((head, role)) = found {
        return (head, role);
    }
    // `virtio3-rx` is a queue of some virtio device, but no network card's.
    match name.split_once('-') {
        Some((head, _)) if is_device(head) => (head, Role::Unknown),
        _ => (name, Role::Whole),
    }
}

/// Owner and number around `word`.
fn numbered<'a>(name: &'a str, word: &str) -> Option<(&'a str, u32)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name.get(stem.len()..)?.parse().ok()?;
    let head = stem.strip_suffix(word)?;
    (!head.is_empty()).then_some((head, number))
}

/// A PCI address (`0000:7d:00.0`) or `virtio2`.
fn is_device(text: &str) -> bool {
    is_pci_address(text)
        || text
            .strip_prefix("virtio")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a text is a PCI address with its domain: `0000:7d:00.0`, `10000:01:00.0`.
pub fn is_pci_address(text: &str) -> bool {
    let hex = |s: &str, min, max| {
        (min..=max).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let mut parts = text.split(':');
    let (Some(domain), Some(bus), Some(rest), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let Some((device, function)) = rest.split_once('.') else { return false };
    hex(domain, 4, 8) && hex(bus, 2, 2) && hex(device, 2, 2) && hex(function, 1, 1)
}

impl IrqName<'_> {
    /// The queues of an interrupt, where the role determines them for `driver`. `max_tx` is the
    /// driver's `ethtool -l` maximum of transmit channels: `gve` numbers its vectors transmit
    /// first.
    pub fn queues(&self, driver: &str, max_tx: Option<u32>) -> Vec<QueueId> {
        let both = |n| vec![QueueId::rx(n), QueueId::tx(n)];
        // tg3 counts vectors from the one that is for link events, so queue 0 is vector 1.
        let shift = u32::from(driver == "tg3");
        let number = |n: u32| n.checked_sub(shift);
        match self.role {
            Role::Rx(n) => number(n).map(QueueId::rx).into_iter().collect(),
            Role::Tx(n) => number(n).map(QueueId::tx).into_iter().collect(),
            Role::RxAndFirstTx(n) => vec![QueueId::rx(n), QueueId::tx(0)],
            Role::Combined(n) => number(n).map(both).unwrap_or_default(),
            Role::Vector(n) => match (driver, max_tx) {
                ("gve", Some(tx)) if n < tx => vec![QueueId::tx(n)],
                ("gve", Some(tx)) => vec![QueueId::rx(n - tx)],
                ("sfc" | "atlantic" | "bnx2" | "mlx5_core", _) => both(n),
                // Its older interrupts carry the interface's name and the ring's number; the
                // newer ones (`mlx4-3@…`) number event queues that two ports share.
                ("mlx4_core" | "mlx4_en", _) if matches!(self.owner, Owner::Nic(_)) => both(n),
                _ => vec![],
            },
            Role::Whole | Role::Event | Role::Unknown => vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn real_names_by_driver() {
        use Owner::{Device, Nic};
        use Role::{Combined, Event, Rx, RxAndFirstTx, Tx, Unknown, Vector, Whole};
        for (name, owner, role) in [
            // virtio_net
            ("virtio2-config", Device("virtio2"), Event),
            ("virtio2-input.0", Device("virtio2"), Rx(0)),
            ("virtio2-output.15", Device("virtio2"), Tx(15)),
            ("virtio0-virtqueues", Device("virtio0"), Whole),
            ("virtio3", Device("virtio3"), Whole),
            // virtio vsock: no network card
            ("virtio3-rx", Device("virtio3"), Unknown),
            ("virtio1-req.0", Device("virtio1"), Unknown),
            // igb, igc, ixgbe, e1000e
            ("eth0", Nic("eth0"), Whole),
            ("enp3s0f1", Nic("enp3s0f1"), Whole),
            ("eth0-TxRx-3", Nic("eth0"), Combined(3)),
            ("enp5s0-rx-1", Nic("enp5s0"), Rx(1)),
            ("eno1-tx-0", Nic("eno1"), Tx(0)),
            ("br-lan-rx-0", Nic("br-lan"), Rx(0)),
            // i40e, iavf, ice, idpf
            ("i40e-eth0-TxRx-5", Nic("eth0"), Combined(5)),
            ("i40e-0000:3b:00.0:misc", Device("0000:3b:00.0"), Event),
            ("i40e-0000:3b:00.0:fdir-TxRx-0", Device("0000:3b:00.0"), Event),
            ("iavf-ens5-TxRx-0", Nic("ens5"), Combined(0)),
            ("iavf-0000:00:05.0:mbx", Device("0000:00:05.0"), Event),
            ("ice-ens1f0-TxRx-63", Nic("ens1f0"), Combined(63)),
            ("ice-0000:18:00.0:misc", Device("0000:18:00.0"), Event),
            ("idpf-eth0-TxRx-2", Nic("eth0"), Combined(2)),
            ("idpf-Mailbox-0", Nic("idpf"), Event),
            // mlx5_core, mlx4_core
            ("mlx5_comp3@pci:0000:03:00.0", Device("0000:03:00.0"), Combined(3)),
            ("mlx5_async0@pci:0000:03:00.0", Device("0000:03:00.0"), Event),
            ("mlx5_async@pci:0001:00:02.0", Device("0001:00:02.0"), Event),
            ("mlx5_pages_eq@pci:0000:03:00.0", Device("0000:03:00.0"), Event),
            ("mlx4-async@pci:0000:06:00.0", Device("0000:06:00.0"), Event),
            ("mlx4-1@0000:06:00.0", Device("0000:06:00.0"), Vector(1)),
            // ena
            ("ens5-Tx-Rx-2", Nic("ens5"), Combined(2)),
            ("ena-mgmnt@pci:0000:00:05.0", Device("0000:00:05.0"), Event),
            // bnxt_en, bnxt_re, bnx2x, tg3
            ("eth0-TxRx-0", Nic("eth0"), Combined(0)),
            ("bnxt_re-nq-0@pci:0000:5e:00.0", Device("0000:5e:00.0"), Unknown),
            ("eth0-fp-7", Nic("eth0"), Combined(7)),
            ("eth0-sp", Nic("eth0"), Event),
            ("eth0-0", Nic("eth0"), Vector(0)),
            ("eth0-txrx-1", Nic("eth0"), Combined(1)),
            // qlcnic
            ("eth0-tx-0-rx-3", Nic("eth0"), RxAndFirstTx(3)),
            // hns3
            ("hns3-0000:7d:00.0-TxRx-7", Device("0000:7d:00.0"), Combined(7)),
            ("hclge-misc-0000:7d:00.2", Device("0000:7d:00.2"), Event),
            // vmxnet3, nfp
            ("eth0-rxtx-3", Nic("eth0"), Combined(3)),
            ("eth0-event-4", Nic("eth0"), Event),
            ("ens4np0-rxtx-11", Nic("ens4np0"), Combined(11)),
            ("0000:02:00.0-lsc", Device("0000:02:00.0"), Event),
            // gve
            ("gve-ntfy-blk3@pci:0000:00:04.0", Device("0000:00:04.0"), Vector(3)),
            ("gve-mgmnt@pci:0000:00:04.0", Device("0000:00:04.0"), Event),
            ("eth%d-ntfy-block.15", Nic("eth%d"), Vector(15)),
            ("eth%d-mgmnt", Nic("eth%d"), Event),
            // mana
            ("mana_q5@pci:7870:00:00.0", Device("7870:00:00.0"), Combined(5)),
            ("mana_hwc@pci:7870:00:00.0", Device("7870:00:00.0"), Event),
            // xen-netfront
            ("eth0-q3-rx", Nic("eth0"), Rx(3)),
            ("eth0-q0-tx", Nic("eth0"), Tx(0)),
            // be2net, cxgb4, hinic, enic, stmmac
            ("eth0-q2", Nic("eth0"), Combined(2)),
            ("enp4s0f4-Rx3", Nic("enp4s0f4"), Rx(3)),
            ("enp4s0f4-FWeventq", Nic("enp4s0f4"), Event),
            ("eth0_rxq3", Nic("eth0"), Rx(3)),
            ("eth0-err", Nic("eth0"), Event),
            ("eth0:rx-1", Nic("eth0"), Rx(1)),
            ("eth0:mac", Nic("eth0"), Event),
            // other devices
            ("nvme0q1", Nic("nvme0q1"), Whole),
            ("ahci[0000:00:1f.2]", Nic("ahci[0000:00:1f.2]"), Whole),
        ] {
            assert_eq!(parse(name), IrqName { owner, role }, "{name}");
        }
    }

    #[test]
    fn some_drivers_count_in_their_own_way() {
        let q = |name, driver, max_tx| {
            parse(name).queues(driver, max_tx).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(q("eth0-txrx-1", "tg3", None), ["rx-0", "tx-0"]);
        assert_eq!(q("eth0-rx-4", "tg3", None), ["rx-3"]);
        assert_eq!(q("eth0-0", "tg3", None), [""; 0]);
        assert_eq!(q("eth0-2", "sfc", None), ["rx-2", "tx-2"]);
        assert_eq!(q("eth0-2", "what", None), [""; 0]);
        assert_eq!(q("eth0-2", "bnx2", None), ["rx-2", "tx-2"]);
        assert_eq!(q("eth0-2", "mlx4_core", None), ["rx-2", "tx-2"]);
        assert_eq!(q("mlx4-2@0000:06:00.0", "mlx4_core", None), [""; 0]);
        assert_eq!(q("eth0-tx-0-rx-3", "qlcnic", None), ["rx-3", "tx-0"]);
        assert_eq!(q("gve-ntfy-blk3@pci:0000:00:04.0", "gve", Some(16)), ["tx-3"]);
        assert_eq!(q("gve-ntfy-blk19@pci:0000:00:04.0", "gve", Some(16)), ["rx-3"]);
        assert_eq!(q("gve-ntfy-blk19@pci:0000:00:04.0", "gve", None), [""; 0]);
        assert_eq!(q("virtio2-input.0", "virtio_net", None), ["rx-0"]);
    }

    #[test]
    fn knows_a_pci_address() {
        for yes in ["0000:00:03.0", "10000:e1:1f.7", "7870:00:00.0"] {
            assert!(is_pci_address(yes), "{yes}");
        }
        for no in ["", "00:03.0", "0000:00:03", "0000:00:03.00", "0000:00:03.0:1", "eth0"] {
            assert!(!is_pci_address(no), "{no}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(name in "[a-z0-9@:.%_ -]{0,40}") {
            let _ = parse(&name).queues("gve", Some(3));
        }

        #[test]
        fn a_combined_name_round_trips(nic in "[a-z]{2,5}[0-9]{1,3}", n in any::<u32>()) {
            for shape in ["-TxRx-", "-Tx-Rx-", "-rxtx-", "-fp-"] {
                let name = format!("{nic}{shape}{n}");
                prop_assert_eq!(parse(&name), IrqName { owner: Owner::Nic(&nic), role: Role::Combined(n) });
            }
        }
    }
}
