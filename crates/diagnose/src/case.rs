//! The input of the rules: facts, samples and goal, with lookups.

use model::{
    CpuId, CpuSet, Facts, Goal, NumaNode, Reading, Samples, Severity,
    cpu::Cpu,
    nic::Nic,
    process::Process,
    samples::{CpuSample, Delta, NicSample},
    sysctl::Sysctl,
    tuner::Tuner,
};

use crate::missing::{Missing, need};

/// One host to judge.
pub struct Case<'a> {
    /// The host's facts. The chosen processes are those in `facts.processes`.
    pub facts: &'a Facts,
    /// The samples over a window, or why there are none.
    pub samples: &'a Reading<Samples>,
    /// What the operator wants of the host, as rules with a trade-off need it.
    pub goal: Goal,
}

impl<'a> Case<'a> {
    /// The samples, if they cover any time at all.
    pub(crate) fn samples(&self) -> Result<&'a Samples, Missing> {
        let samples = need("counters over a window", self.samples)?;
        if samples.window_ns.0 == 0 {
            return Err(Missing("counters over a window: the window has no length".into()));
        }
        Ok(samples)
    }

    pub(crate) fn window_s(&self) -> Result<f64, Missing> {
        Ok(self.samples()?.window_ns.0 as f64 / 1e9)
    }

    /// The window in words: `over 5.0 s`.
    pub(crate) fn over(&self) -> String {
        if self.since_boot() {
            return "since boot".into();
        }
        self.window_s().map_or_else(|_| "over the window".into(), |s| format!("over {s:.1} s"))
    }

    /// Whether the counters are since boot, without a window.
    pub(crate) fn since_boot(&self) -> bool {
        self.samples.known().is_some_and(|s| s.since_boot)
    }

    pub(crate) fn cpu_sample(&self, cpu: CpuId) -> Result<&'a CpuSample, Missing> {
        let found = by_id(&self.samples()?.cpus, cpu, |c| c.id);
        found.ok_or_else(|| Missing(format!("counters of CPU {cpu}: not in the samples")))
    }

    pub(crate) fn nic_sample(&self, name: &str) -> Result<&'a NicSample, Missing> {
        let found = self.samples()?.nics.iter().find(|n| n.name == name);
        found.ok_or_else(|| Missing(format!("counters of {name}: not in the samples")))
    }

    /// Growth of one of `/sys/class/net/X/statistics`.
    pub(crate) fn nic_statistic(&self, nic: &str, name: &str) -> Result<u64, Missing> {
        let source = format!("/sys/class/net/{nic}/statistics");
        let all = need(&source, &self.nic_sample(nic)?.statistics)?;
        delta(&format!("{source}/{name}"), all.get(name))
    }

    /// Growth of a protocol counter such as `Tcp.RetransSegs`.
    pub(crate) fn protocol(&self, name: &str) -> Result<u64, Missing> {
        let all = need("protocol counters", &self.samples()?.protocols)?;
        delta(name, all.get(name))
    }

    /// Growth of an IPv6 counter; `None` where IPv6 is off and nothing is counted.
    pub(crate) fn protocol6(&self, name: &str) -> Result<Option<u64>, Missing> {
        let all = need("protocol counters", &self.samples()?.protocols)?;
        let family = name.split_once('.').map_or(name, |n| n.0);
        let counts = |n: &String| n.strip_prefix(family).is_some_and(|rest| rest.starts_with('.'));
        // A kernel with IPv6 off has none of its settings either.
        let off = self.sysctl_number("net.ipv6.conf.all.forwarding").is_err()
            && self.sysctl_number("net.ipv4.ip_forward").is_ok();
        if off && !all.keys().any(counts) {
            return Ok(None);
        }
        delta(name, all.get(name)).map(Some)
    }

    pub(crate) fn cpu(&self, id: CpuId) -> Option<&'a Cpu> {
        by_id(&self.facts.cpus, id, |c| c.id)
    }

    pub(crate) fn nic(&self, name: &str) -> Option<&'a Nic> {
        self.facts.nics.iter().find(|n| n.name == name)
    }

    /// Evidence: CPUs were read at all.
    pub(crate) fn cpus_read(&self) -> Result<(), Missing> {
        if self.facts.cpus.is_empty() {
            return Err(Missing("CPUs: none was read".into()));
        }
        Ok(())
    }

    /// Evidence: interfaces were read at all.
    pub(crate) fn nics_read(&self) -> Result<(), Missing> {
        if self.facts.nics.is_empty() {
            return Err(Missing("network interfaces: none was read".into()));
        }
        Ok(())
    }

    /// Evidence: for every CPU, whether it is online and may take network work.
    pub(crate) fn housekeeping_read(&self) -> Result<(), Missing> {
        self.cpus_read()?;
        for c in &self.facts.cpus {
            need(&format!("whether CPU {} is online", c.id), &c.online)?;
        }
        Ok(())
    }

    /// Online CPUs. A CPU with an unknown state counts, as present CPUs are usually online.
    pub(crate) fn online(&self) -> CpuSet {
        let runs = |c: &&Cpu| c.online.get() != Some(false);
        self.facts.cpus.iter().filter(runs).map(|c| c.id).collect()
    }

    /// Online CPUs that may take network work: neither isolated nor nohz_full.
    pub(crate) fn housekeeping(&self) -> CpuSet {
        let free = |c: &&Cpu| c.isolated.get() != Some(true) && c.nohz_full.get() != Some(true);
        let free: CpuSet = self.facts.cpus.iter().filter(free).map(|c| c.id).collect();
        self.online().intersection(&free)
    }

    /// Node of a CPU; `None` where unknown.
    pub(crate) fn node_of(&self, cpu: CpuId) -> Option<NumaNode> {
        self.cpu(cpu).and_then(|c| c.numa_node.get())
    }

    /// Node of a CPU as evidence.
    pub(crate) fn node_read(&self, cpu: CpuId) -> Result<NumaNode, Missing> {
        let found = self.cpu(cpu).ok_or_else(|| Missing(format!("CPU {cpu}: was not read")))?;
        need(&format!("node of CPU {cpu}"), &found.numa_node).copied()
    }

    /// CPUs of a node, as the nodes' own lists say.
    pub(crate) fn node_cpus(&self, node: NumaNode) -> CpuSet {
        let found = self.facts.numa_nodes.iter().find(|n| n.id == node);
        found.map(|n| n.cpus.clone()).unwrap_or_default()
    }

    /// Nodes that have CPUs; missing when no node was read.
    pub(crate) fn nodes_with_cpus(&self) -> Result<Vec<NumaNode>, Missing> {
        if self.facts.numa_nodes.is_empty() {
            return Err(Missing("NUMA nodes: none was read".into()));
        }
        let with = self.facts.numa_nodes.iter().filter(|n| !n.cpus.is_empty());
        Ok(with.map(|n| n.id).collect())
    }

    pub(crate) fn sysctl(&self, key: &str) -> Result<&'a Sysctl, Missing> {
        let found = self.facts.sysctls.get(key);
        found.ok_or_else(|| Missing(format!("{key}: was not read")))
    }

    pub(crate) fn sysctl_text(&self, key: &str) -> Result<&'a str, Missing> {
        need(key, &self.sysctl(key)?.value).map(String::as_str)
    }

    /// A setting of one number.
    pub(crate) fn sysctl_number(&self, key: &str) -> Result<u64, Missing> {
        let text = self.sysctl_text(key)?;
        text.trim().parse().map_err(|_| Missing(format!("{key}: {text:?} is not a number")))
    }

    /// A setting of several numbers.
    pub(crate) fn sysctl_numbers(&self, key: &str) -> Result<Vec<u64>, Missing> {
        let text = self.sysctl_text(key)?;
        numbers(text).ok_or_else(|| Missing(format!("{key}: {text:?} is not a list of numbers")))
    }

    /// A tuner of this kind that runs now.
    pub(crate) fn running_tuner(&self, kind: &str) -> Option<&'a Tuner> {
        let runs = |r: &&Tuner| r.kind == kind && r.running.get() == Some(true);
        self.facts.tuners.iter().find(runs)
    }

    /// The chosen processes; missing when none was asked for.
    pub(crate) fn processes(&self) -> Result<&'a [Process], Missing> {
        if self.facts.processes.is_empty() {
            return Err(Missing(
                "processes: none was chosen (--pid, --name, --port, --unit, --container)".into(),
            ));
        }
        Ok(&self.facts.processes)
    }

    /// Evidence: what the threads of a process did.
    pub(crate) fn threads_read(&self, p: &Process) -> Result<(), Missing> {
        let mut own = self.samples()?.threads.iter().filter(|t| t.pid == p.pid).peekable();
        if own.peek().is_none() {
            return Err(Missing(format!("threads of {}[{}]: not in the samples", p.name, p.pid)));
        }
        own.try_for_each(|t| need(&format!("CPU time of thread {}", t.tid), &t.cpu_ns).map(drop))
    }

    /// Packets per second through the receive paths of all CPUs; `None` when no CPU reports it.
    pub(crate) fn packets_per_s(&self) -> Option<f64> {
        let window = self.window_s().ok()?;
        let rows = self.samples().ok()?.cpus.iter();
        let counts: Vec<u64> = rows.filter_map(|c| c.softnet.known()?.processed.get()).collect();
        (!counts.is_empty()).then(|| counts.iter().sum::<u64>() as f64 / window)
    }

    /// The severity of a harmful setting that no counter proves: a warning on a host that carries
    /// traffic, information on an idle or unsampled one.
    pub(crate) fn setting_severity(&self) -> Severity {
        match self.packets_per_s() {
            Some(rate) if rate >= model::samples::TRAFFIC_PER_S => Severity::Warning,
            _ => Severity::Info,
        }
    }
}

/// The element with this id. Lists are in ascending order, so it bisects; an element out of order
/// (another program's JSON) is still found.
pub(crate) fn by_id<T, K: Ord + Copy>(list: &[T], id: K, key: impl Fn(&T) -> K) -> Option<&T> {
    match list.binary_search_by_key(&id, &key) {
        Ok(at) => list.get(at),
        Err(_) => list.iter().find(|t| key(t) == id),
    }
}

/// A counter's growth out of a map.
pub(crate) fn delta(what: &str, found: Option<&Delta>) -> Result<u64, Missing> {
    match found {
        Some(d) => need(what, d).copied(),
        None => Err(Missing(format!("{what}: not counted by this kernel or driver"))),
    }
}

/// Numbers separated by blanks.
pub(crate) fn numbers(text: &str) -> Option<Vec<u64>> {
    let list: Option<Vec<u64>> = text.split_whitespace().map(|t| t.parse().ok()).collect();
    list.filter(|l| !l.is_empty())
}
