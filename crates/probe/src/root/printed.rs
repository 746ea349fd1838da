//! What tools printed into a support archive, or into a folder by hand, as the kernel's files that are
//! not there.

use std::collections::{BTreeMap, BTreeSet};

use parse::{
    conntrack_text, ethtool_text,
    ip_link_text::{self, PrintedLink},
    irq_name::is_pci_address,
    lscpu_text, net_dev, netstat_text, nstat_text, proc_stat, sysctl_conf, uptime_text,
};

use super::Backing;

mod origin;
mod outputs;
pub(crate) use outputs::SocketKind;
pub(super) use outputs::{Outputs, Text, is_known};

/// What stands in for the kernel's files.
pub(super) struct Printed {
    /// What commands printed, by command.
    pub outputs: Outputs,
    /// Contents of saved files, by path.
    files: BTreeMap<String, Text>,
    /// Targets of links by path.
    links: BTreeMap<String, String>,
}

const NET: &str = "/sys/class/net";

/// The names of one option of `ethtool`: driver, firmware, bus.
pub const ETHTOOL_DRIVER: [&str; 2] = ["ethtool -i", "ethtool --driver"];

impl Printed {
    /// **Source**: `sos_commands` of a sosreport, or files by hand in the folder itself: `sysctl -a`,
    /// `uptime`, `ip -s -d link`, `ethtool NIC`, `lscpu`, `nstat -zas`, `netstat -s`, `conntrack -S`,
    /// and files of `/proc` under short names.
    pub fn read(backing: &Backing) -> Self {
        let (outputs, files) = outputs::read(backing);
        let mut printed = Self { outputs, files, links: BTreeMap::new() };
        printed.settings(backing);
        printed.uptime(backing);
        printed.nics(backing);
        printed.counters(backing);
        printed.cpus(backing);
        printed.protocols(backing);
        printed.conntrack(backing);
        printed
    }

    /// The content of a file.
    pub fn file(&self, path: &str) -> Option<&Text> {
        self.files.get(path)
    }

    /// The target of a link.
    pub fn link(&self, path: &str) -> Option<&str> {
        self.links.get(path).map(String::as_str)
    }

    /// The names in a folder, ascending; `None` where nothing is known of it. What a kernel has in the
    /// folder of an interface says its kind, so those few files are no list of it.
    pub fn entries(&self, folder: &str) -> Option<Vec<String>> {
        if folder.strip_prefix(NET).is_some_and(|nic| nic.matches('/').count() == 1) {
            return None;
        }
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        let below = self.files.range(prefix.clone()..).map_while(|(p, _)| p.strip_prefix(&prefix));
        let names: BTreeSet<&str> = below.filter_map(|rest| rest.split('/').next()).collect();
        (!names.is_empty()).then(|| names.into_iter().map(str::to_owned).collect())
    }

    /// Of two sources the first counts. `origin` is the file that has the value.
    fn put(&mut self, path: String, value: Option<String>, origin: &str) {
        if let Some(value) = value {
            self.files.entry(path).or_insert_with(|| Text::of(origin, value));
        }
    }

    /// What a command printed, and the file that has it; nothing where there is none.
    fn output(&self, backing: &Backing, commands: &[&str], subject: &str) -> (Vec<u8>, String) {
        let Some(text) = self.outputs.find(commands, subject) else { return Default::default() };
        (text.read(backing).unwrap_or_default(), text.origin.clone())
    }

    fn settings(&mut self, backing: &Backing) {
        let (text, origin) = self.output(backing, &["sysctl -a"], "");
        for setting in sysctl_conf::parse(&text).settings {
            self.put(format!("/proc/sys/{}", setting.path), setting.value, &origin);
        }
    }

    /// A file of the kernel, by whichever name it is there.
    fn stored(&self, backing: &Backing, path: &str) -> Option<Vec<u8>> {
        backing.read(path).ok().or_else(|| self.files.get(path)?.read(backing))
    }

    fn uptime(&mut self, backing: &Backing) {
        let (text, origin) = self.output(backing, &["uptime"], "");
        let stat = self.stored(backing, "/proc/stat").unwrap_or_default();
        let seconds = uptime_s(&text, &stat).map(|s| format!("{s} 0\n"));
        // By hand the file itself may have this name.
        let whole = || seconds_first(&text).then(|| String::from_utf8_lossy(&text).into_owned());
        self.put("/proc/uptime".to_owned(), seconds.or_else(whole), &origin);
    }

    fn nics(&mut self, backing: &Backing) {
        const COMMANDS: [&str; 10] = [
            "ip -s -s -d link",
            "ip -s -d link",
            "ip -d -s link",
            "ip -d link",
            "ip -s link",
            "ip -stats link",
            "ip link",
            "ip -d address",
            "ip addr",
            "ip a",
        ];
        let (text, origin) = self.output(backing, &COMMANDS, "");
        for link in ip_link_text::parse(&text) {
            self.nic(backing, &link, &origin);
        }
    }

    fn nic(&mut self, backing: &Backing, link: &PrintedLink, origin: &str) {
        let dir = format!("{NET}/{}", link.name);
        let mut file = |what: &str, value| self.put(format!("{dir}/{what}"), value, origin);
        let of = |key: &str| link.values.get(key).cloned();
        let has = |flag: &str| link.flags.iter().any(|f| f == flag);
        file("ifindex", Some(link.ifindex.to_string()));
        file("flags", Some(format!("{:#x}", link.flag_bits())));
        file("mtu", of("mtu"));
        file("tx_queue_len", of("qlen"));
        file("operstate", link.state.clone());
        file("address", link.mac.clone());
        // The kernel answers EINVAL for an interface that is down.
        file("carrier", has("UP").then(|| u8::from(has("LOWER_UP")).to_string()));
        file("uevent", link.kind.as_ref().map(|kind| format!("DEVTYPE={kind}\n")));
        file("carrier_changes", link.carrier_changes.map(|n| n.to_string()));
        for (name, count) in &link.statistics {
            file(&format!("statistics/{name}"), Some(count.to_string()));
        }
        let (text, origin) = self.output(backing, &["ethtool"], &link.name);
        let settings = ethtool_text::link(&text).unwrap_or_default();
        let speed = settings.speed_mbit_s.map(|n| n.to_string());
        self.put(format!("{dir}/speed"), speed, &origin);
        self.put(format!("{dir}/duplex"), settings.duplex, &origin);
        if let Some(master) = of("master") {
            self.links.insert(format!("{dir}/master"), format!("../{master}"));
        }
        let device = if link.kind.is_some() || has("LOOPBACK") {
            Some("virtual".to_owned())
        } else {
            self.device(backing, link)
        };
        if let Some(device) = device {
            self.links.insert(dir, format!("../../devices/{device}/net/{}", link.name));
        }
    }

    /// Counters of interfaces that only `ip -s -s link` prints. The other columns of the file are sums.
    fn counters(&mut self, backing: &Backing) {
        const FILE: &str = "/proc/net/dev";
        let text = self.stored(backing, FILE).unwrap_or_default();
        let origin = match self.files.get(FILE) {
            Some(text) if backing.read(FILE).is_err() => text.origin.clone(),
            _ => FILE.to_owned(),
        };
        for (name, count) in net_dev::parse(&text).unwrap_or_default() {
            if let Some((nic, counter @ ("rx_fifo_errors" | "tx_fifo_errors"))) =
                name.rsplit_once('.')
            {
                let path = format!("{NET}/{nic}/statistics/{counter}");
                self.put(path, Some(count.to_string()), &origin);
            }
        }
    }

    fn cpus(&mut self, backing: &Backing) {
        const SYSTEM: &str = "/sys/devices/system";
        let (text, origin) = self.output(backing, &["lscpu"], "");
        let cpus = lscpu_text::parse(&text);
        self.put(format!("{SYSTEM}/cpu/online"), cpus.online, &origin);
        for (node, list) in cpus.nodes {
            self.put(format!("{SYSTEM}/node/node{node}/cpulist"), Some(list), &origin);
        }
    }

    /// Counters since boot: `nstat` without `-a` prints what they grew by since it last ran.
    fn protocols(&mut self, backing: &Backing) {
        const NSTAT: [&str; 6] =
            ["nstat -zas", "nstat -az", "nstat -za", "nstat -asz", "nstat -azs", "nstat -a"];
        const NETSTAT: [&str; 3] = ["netstat -s", "netstat --statistics", "netstat -sn"];
        let (text, origin) = self.output(backing, &NSTAT, "");
        self.counted(&nstat_text::parse(&text), &origin);
        let (text, origin) = self.output(backing, &NETSTAT, "");
        self.counted(&netstat_text::parse(&text), &origin);
    }

    fn counted(&mut self, all: &nstat_text::Counters, origin: &str) {
        for (file, protocols) in [("snmp", &all.snmp), ("netstat", &all.netstat)] {
            let pairs = protocols.iter().map(|(protocol, counters)| {
                let names: Vec<&str> = counters.keys().map(String::as_str).collect();
                let values: Vec<String> = counters.values().map(u64::to_string).collect();
                format!("{protocol}: {}\n{protocol}: {}\n", names.join(" "), values.join(" "))
            });
            let text = (!protocols.is_empty()).then(|| pairs.collect());
            self.put(format!("/proc/net/{file}"), text, origin);
        }
        let lines = all.snmp6.iter().map(|(name, value)| format!("{name} {value}\n"));
        let text = (!all.snmp6.is_empty()).then(|| lines.collect());
        self.put("/proc/net/snmp6".to_owned(), text, origin);
    }

    /// The sums over CPUs, as one row. The number of entries is not printed: that column is no number.
    fn conntrack(&mut self, backing: &Backing) {
        let commands = ["conntrack -S", "conntrack --stats"];
        let (text, origin) = self.output(backing, &commands, "");
        let counters = conntrack_text::parse(&text);
        let names = counters.keys().map(|name| format!(" {name}")).collect::<String>();
        let values = counters.values().map(|sum| format!(" {sum:08x}")).collect::<String>();
        let table = (!counters.is_empty()).then(|| format!("entries{names}\n-{values}\n"));
        self.put("/proc/net/stat/nf_conntrack".to_owned(), table, &origin);
    }

    /// The device behind an interface: what of its path is printed, without the bridges above.
    fn device(&self, backing: &Backing, link: &PrintedLink) -> Option<String> {
        let info = ethtool_text::driver(&self.output(backing, &ETHTOOL_DRIVER, &link.name).0);
        let plain = |name: &&String| !name.contains('/') && !name.starts_with('.');
        let function = info.get("bus-info").filter(|bus| is_pci_address(bus));
        let device = link.values.get("parentdev").filter(plain);
        match (function, device) {
            (Some(function), Some(device)) if function != device => {
                Some(format!("{function}/{device}"))
            }
            (function, device) => device.or(function).cloned(),
        }
    }
}

fn seconds_first(text: &[u8]) -> bool {
    parse::text::numbers::<f64>(text).is_ok_and(|n| n.len() == 2)
}

/// `uptime` prints minutes and the seconds of the clock. The kernel's time of boot, in seconds, makes
/// it exact, but at the edge of a minute: time zones differ by whole minutes.
fn uptime_s(uptime: &[u8], stat: &[u8]) -> Option<u64> {
    let printed = uptime_text::parse(uptime)?;
    let least = printed.minutes.checked_mul(60)?;
    let Some(booted) = proc_stat::booted_s(stat) else { return least.checked_add(30) };
    let second = booted.checked_add(least)? % 60;
    least.checked_add((60 + printed.second - second) % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_and_seconds_make_the_uptime_exact() {
        // Booted at second 41 of a minute, 9:08 h ago or up to a minute more, at second 21.
        let of = |uptime: &str, stat: &str| uptime_s(uptime.as_bytes(), stat.as_bytes());
        let printed = " 03:46:21 up  9:08,  0 user,  load average: 5.39";
        assert_eq!(of(printed, "btime 1795631861\n"), Some(9 * 3600 + 8 * 60 + 40));
        assert_eq!(
            of(printed, ""),
            Some(9 * 3600 + 8 * 60 + 30),
            "without a time of boot its middle"
        );
        assert_eq!(of("no uptime", "btime 1795631861\n"), None);
    }
}
