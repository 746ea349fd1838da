//! Dropped packets by reason, with names for the kernel's numbers.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use model::{CpuId, Reading, watch::PacketDrops};

use super::{MOST, function_names::FunctionNames, held::Programs};
use crate::{
    Root,
    bpf::drops::{self as bpf, Key, NAME, PROGRAM, WANTED},
    samples::clock::monotonic_ns,
    watch::{
        ObserveWhen,
        duty_cycle::{self, DutyCycle, USUAL_NS},
    },
};

const TYPES: &str = "/sys/kernel/btf/vmlinux";
const REASONS: &str = "skb_drop_reason";
const PREFIX: &str = "SKB_DROP_REASON_";
/// Reasons of subsystems (mac80211, Open vSwitch) have their number in the upper half.
const SUBSYSTEM: u32 = 16;

/// Packets by kind, those that found no room, and the share of the time in which they were counted.
pub struct DropCounts {
    packets: HashMap<Key, u64>,
    lost: u64,
    observed: f64,
}

#[derive(Debug)]
pub struct DropsPart {
    pub programs: Programs<bpf::Drops>,
    /// Names of the kernel's reasons, read with the first drop.
    reasons: Option<Reading<BTreeMap<u32, String>>>,
    /// Functions by address, as far as they were needed.
    functions: FunctionNames,
    duty: DutyCycle,
    /// Share of the time before the last look in which it was attached.
    pub observed_share: f64,
}

impl DropsPart {
    /// Attaches, if it is wanted.
    pub fn attach(asked: &Reading<()>, when: ObserveWhen, possible: &[CpuId]) -> Self {
        let attach = || bpf::Drops::attach(possible.to_vec());
        let unwanted = Reading::absent("drops were not asked for");
        let asked = if when == ObserveWhen::Never { &unwanted } else { asked };
        Self {
            programs: Programs::new((NAME, &WANTED), asked, attach),
            reasons: None,
            functions: FunctionNames::default(),
            duty: DutyCycle::begin(when, monotonic_ns()),
            observed_share: 0.0,
        }
    }

    /// An interval begins, until `end`: attaches the program again, if it was detached amid the last
    /// one.
    pub fn resume(&mut self, end: u64) {
        if let Some(programs) = self.programs.attached() {
            self.duty.resume(programs, monotonic_ns(), end);
        }
    }

    /// When to call [`Self::spare`].
    pub fn due(&self) -> Option<u64> {
        self.duty.due()
    }

    /// Detaches the program for the rest of the interval if it has cost enough.
    pub fn spare(&mut self) {
        if let Some(programs) = self.programs.attached() {
            self.duty.look(programs, monotonic_ns());
        }
    }

    /// What was dropped since the last look, most first; those beyond [`MOST`] and those that found
    /// no room as one.
    pub fn look(&mut self, root: &Root) -> Reading<Vec<PacketDrops>> {
        let counts = self.take();
        self.named(root, counts)
    }

    /// What was dropped since the last look, without its names: reading those takes a while.
    pub fn take(&mut self) -> Reading<DropCounts> {
        let observed = self.duty.observed(monotonic_ns());
        self.observed_share = observed;
        match self.programs.take(bpf::Drops::take) {
            Ok((packets, lost)) => Reading::Known(DropCounts { packets, lost, observed }),
            Err(why) => why,
        }
    }

    /// The same with its names.
    pub fn named(&mut self, root: &Root, taken: Reading<DropCounts>) -> Reading<Vec<PacketDrops>> {
        taken.map(|counts| self.of_counts(root, counts))
    }

    fn of_counts(&mut self, root: &Root, counts: DropCounts) -> Vec<PacketDrops> {
        let DropCounts { packets, lost, observed } = counts;
        let mut all: Vec<(u64, Key)> =
            packets.into_iter().filter(|(_, n)| *n > 0).map(|(key, n)| (n, key)).collect();
        all.sort_by_key(|(n, key)| (Reverse(*n), key.reason(), key.location));
        let rest = all.iter().skip(MOST).map(|(n, _)| n).sum::<u64>() + lost;
        all.truncate(MOST);
        self.name(root, &all);
        let mut drops = merged(all.iter().map(|(n, key)| self.one(*n, key)));
        if rest > 0 {
            const WHY: &str = "no free row in the table";
            drops.push(PacketDrops {
                reason: Reading::absent(WHY),
                protocol: "*".into(),
                nic: Reading::absent(WHY),
                net_namespace: Reading::absent(WHY),
                function: Reading::absent(WHY),
                packets: rest,
                observed_share: observed,
            });
        }
        drops.iter_mut().for_each(|d| d.observed_share = observed);
        drops
    }

    /// Reads the names that are needed and not known yet.
    fn name(&mut self, root: &Root, all: &[(u64, Key)]) {
        if all.is_empty() {
            return;
        }
        self.reasons
            .get_or_insert_with(|| root.parsed(TYPES, |b| parse::btf_enum::values(b, REASONS)));
        self.functions.find(root, all.iter().map(|(_, key)| key.location));
    }

    fn one(&self, packets: u64, key: &Key) -> PacketDrops {
        let reason = match key.reason() {
            None => Reading::absent("this kernel gives no reason (Linux 5.17 does)"),
            Some(n) if n >> SUBSYSTEM != 0 => Reading::Known(format!(
                "SUBSYSTEM_{}_{}",
                n >> SUBSYSTEM,
                n & ((1 << SUBSYSTEM) - 1)
            )),
            Some(n) => self.reasons.clone().unwrap_or_else(unread).map(|names| {
                let name = names.get(&n).map(|name| name.trim_start_matches(PREFIX).to_owned());
                name.unwrap_or_else(|| n.to_string())
            }),
        };
        PacketDrops {
            reason,
            protocol: protocol(key.protocol()),
            nic: key.nic().map_or_else(
                || Reading::absent("the packet has no interface any more"),
                |name| Reading::Known(name.to_owned()),
            ),
            net_namespace: key.net_namespace().map_or_else(
                || Reading::absent("the packet has neither interface nor socket any more"),
                Reading::Known,
            ),
            function: self.functions.of(key.location).unwrap_or_else(unread),
            packets,
            observed_share: 1.0,
        }
    }
}

impl duty_cycle::Part for bpf::Drops {
    fn runs(&self) -> duty_cycle::Runs {
        self.cpus().unwrap_or_default()
    }

    fn ns_per_run(&self) -> Vec<f64> {
        vec![self.object.ns_per_run(PROGRAM).unwrap_or(USUAL_NS)]
    }

    fn pause(&mut self) {
        self.object.pause(&[PROGRAM]);
    }

    fn resume(&mut self) {
        self.object.resume();
    }
}

fn unread<T>() -> Reading<T> {
    Reading::absent("the kernel's names were not read")
}

/// One row for each kind: a function may drop at several addresses.
fn merged(all: impl Iterator<Item = PacketDrops>) -> Vec<PacketDrops> {
    let mut rows: HashMap<String, PacketDrops> = HashMap::new();
    for one in all {
        let key = format!(
            "{:?} {} {:?} {:?} {:?}",
            one.reason, one.protocol, one.nic, one.net_namespace, one.function
        );
        rows.entry(key).and_modify(|row| row.packets += one.packets).or_insert(one);
    }
    let mut rows: Vec<PacketDrops> = rows.into_values().collect();
    let name = |r: &Reading<String>| r.known().cloned();
    rows.sort_by_key(|r| (Reverse(r.packets), name(&r.reason), name(&r.nic), name(&r.function)));
    rows
}

/// EtherType as a name. **Source**: `include/uapi/linux/if_ether.h`.
fn protocol(number: u16) -> String {
    match number {
        0x0800 => "IPv4".into(),
        0x86dd => "IPv6".into(),
        0x0806 => "ARP".into(),
        0x8100 | 0x88a8 => "VLAN".into(),
        0 => "none".into(),
        n => format!("{n:#06x}"),
    }
}
