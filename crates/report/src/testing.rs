//! Facts of made-up machines for the tests of this crate.

use std::collections::BTreeMap;

use model::{
    BitsPerSec, Bytes, CpuId, CpuSet, Facts, IrqId, NumaNode, QueueId, Reading, SCHEMA_VERSION,
    cpu::{Cache, Cpu, CpuFrequency, NumaNodeFacts},
    host::{Host, KernelBuild, Reader},
    irq::{Irq, IrqCount, Mapping},
    nic::{Channels, KindDetails, Nic, Queue, Rings},
    process::{Process, Thread},
    reading::Known,
};

fn no<T>() -> Reading<T> {
    Reading::absent("not in this test")
}

/// A host without any facts.
pub fn nothing() -> Facts {
    Facts {
        schema_version: SCHEMA_VERSION,
        host: host(),
        cpus: vec![],
        caches: vec![],
        idle_states: vec![],
        numa_nodes: vec![],
        nics: vec![],
        namespaces: no(),
        irqs: no(),
        softnet: no(),
        sysctls: BTreeMap::new(),
        tuners: vec![],
        processes: vec![],
        listeners: no(),
        storage: vec![],
        kernel_log: no(),
        applied: no(),
        memory_bytes: no(),
        no_access: vec![],
    }
}

fn host() -> Host {
    Host {
        name: no(),
        kernel: no(),
        kernel_version: no(),
        arch: no(),
        distribution: no(),
        hypervisor: no(),
        container: no(),
        lockdown: no(),
        cmdline: no(),
        machine: no(),
        cpu_model: no(),
        cpus_possible: no(),
        cpus_present: no(),
        cpus_online: no(),
        smt: no(),
        clocksource: no(),
        clocksources_available: no(),
        clock_read_ns: no(),
        sched_ext: no(),
        build: KernelBuild {
            hz: no(),
            cpu_accounting: no(),
            irq_time_accounting: no(),
            btf: no(),
            preempt: no(),
        },
        page_size_bytes: no(),
        clock_ticks_per_s: no(),
        uptime_s: no(),
        reader: Reader { euid: no(), capabilities: no() },
    }
}

/// The topology of a machine; each count is per unit of the one before.
#[derive(Clone, Copy)]
pub struct MachineShape {
    pub packages: u32,
    pub nodes: u32,
    pub l3s: u32,
    pub cores: u32,
    /// Threads per core; the second threads are numbered after all first ones.
    pub threads: u32,
}

/// A host of this shape, without NICs.
pub fn machine(shape: MachineShape) -> Facts {
    let MachineShape { packages, nodes, l3s, cores, threads } = shape;
    let firsts = packages * nodes * l3s * cores;
    let mut f = nothing();
    f.host.name = Known("box".into());
    f.host.kernel = Known("6.12.0".into());
    f.host.arch = Known("x86_64".into());
    f.host.hypervisor = Known("none".into());
    f.memory_bytes = Known(Bytes(64 << 30));
    let all: CpuSet = (0..firsts * threads).map(CpuId).collect();
    f.host.cpus_online = Known(all.clone());
    f.host.cpus_present = Known(all);
    for id in 0..firsts * threads {
        let core = id % firsts;
        let l3 = core / cores * cores;
        let siblings = (0..threads).map(|t| CpuId(core + t * firsts)).collect();
        let mut c = cpu(id);
        c.core_id = Known(i64::from(core % (nodes * l3s * cores)));
        c.package_id = Known(i64::from(core / (nodes * l3s * cores)));
        c.numa_node = Known(NumaNode(core / (l3s * cores)));
        c.l3_id = Known(CpuId(l3));
        c.smt_siblings = Known(siblings);
        f.cpus.push(c);
    }
    for l3 in 0..packages * nodes * l3s {
        let cpus = (0..threads)
            .flat_map(|t| (0..cores).map(move |c| CpuId(l3 * cores + c + t * firsts)))
            .collect();
        f.caches.push(Cache {
            level: 3,
            kind: "Unified".into(),
            cpus,
            size_bytes: Known(Bytes(32 << 20)),
            line_bytes: Known(Bytes(64)),
        });
    }
    for n in 0..packages * nodes {
        let cpus = f.cpus.iter().filter(|c| c.numa_node == Known(NumaNode(n))).map(|c| c.id);
        f.numa_nodes.push(NumaNodeFacts {
            id: NumaNode(n),
            cpus: cpus.collect(),
            memory_bytes: Known(Bytes(16 << 30)),
            memory_free_bytes: Known(Bytes(8 << 30)),
            distances: Known(
                (0..packages * nodes)
                    .map(|m| (NumaNode(m), if m == n { 10 } else { 21 }))
                    .collect(),
            ),
        });
    }
    f.irqs = Known(vec![]);
    f
}

/// A CPU with only an id.
pub fn cpu(id: u32) -> Cpu {
    Cpu {
        id: CpuId(id),
        online: Known(true),
        isolated: Known(false),
        nohz_full: Known(false),
        core_id: no(),
        cluster_id: no(),
        die_id: no(),
        package_id: no(),
        numa_node: no(),
        l3_id: no(),
        smt_siblings: no(),
        cluster_cpus: no(),
        capacity: no(),
        frequency: CpuFrequency {
            governor: no(),
            driver: no(),
            current_khz: no(),
            min_khz: no(),
            max_khz: no(),
            hardware_max_khz: no(),
            energy_preference: no(),
        },
        core_throttle_count: no(),
        package_throttle_count: no(),
    }
}

/// A NIC with only a name and a kind.
pub fn bare_nic(name: &str, kind: &str) -> Nic {
    Nic {
        name: name.into(),
        ifindex: no(),
        kind: kind.into(),
        details: KindDetails::None,
        driver: no(),
        driver_version: no(),
        firmware: no(),
        bus_address: no(),
        pci: no(),
        numa_node: no(),
        mac: no(),
        addresses: no(),
        operstate: no(),
        up: no(),
        carrier: no(),
        speed_bps: no(),
        duplex: no(),
        link_modes: no(),
        fec: no(),
        module: no(),
        mtu: no(),
        min_mtu: no(),
        max_mtu: no(),
        txqueuelen: no(),
        channels: no(),
        rings: no(),
        coalesce: no(),
        features: no(),
        rss: no(),
        pause: no(),
        ntuple_rules: no(),
        driver_stats: no(),
        statistics: no(),
        gro_flush_timeout_ns: no(),
        napi_defer_hard_irqs: no(),
        threaded_napi: no(),
        queues: vec![],
        irqs: vec![],
        napis: no(),
        qdiscs: no(),
        master: no(),
        xdp: no(),
    }
}

/// Puts a NIC with `queues` combined channels on `node`; queue i's IRQ is `first_irq` + i and
/// goes to `cpus[i % len]`.
pub fn add_nic(
    facts: &mut Facts,
    name: &str,
    node: u32,
    queues: u32,
    first_irq: u32,
    cpus: &[u32],
) {
    let mut nic = bare_nic(name, "physical");
    nic.driver = Known("mlx5_core".into());
    nic.bus_address = Known(format!("0000:{first_irq:02x}:00.0"));
    nic.numa_node = Known(NumaNode(node));
    nic.up = Known(true);
    nic.carrier = Known(true);
    nic.operstate = Known("up".into());
    nic.speed_bps = Known(BitsPerSec(100_000_000_000));
    nic.duplex = Known("full".into());
    nic.mtu = Known(1500);
    nic.channels = Known(Channels {
        rx: 0,
        tx: 0,
        combined: queues,
        other: 0,
        max_rx: 0,
        max_tx: 0,
        max_combined: queues,
        max_other: 0,
    });
    nic.rings = Known(Rings {
        rx: 1024,
        rx_mini: 0,
        rx_jumbo: 0,
        tx: 1024,
        max_rx: 8192,
        max_rx_mini: 0,
        max_rx_jumbo: 0,
        max_tx: 8192,
        tx_push_buffer_bytes: no(),
    });
    let mut irqs = facts.irqs.get().unwrap_or_default();
    for i in 0..queues {
        let cpu = CpuId(cpus[i as usize % cpus.len()]);
        let id = IrqId(first_irq + i);
        nic.irqs.push(id);
        irqs.push(Irq {
            irq: id,
            name: format!("{name}-TxRx-{i}"),
            chip: Known("PCI-MSIX".into()),
            hwirq: no(),
            affinity: Known([cpu].into_iter().collect()),
            effective_affinity: Known([cpu].into_iter().collect()),
            numa_node: Known(NumaNode(node)),
            managed: no(),
            counts: Known(vec![IrqCount { cpu, count: 1000 + u64::from(i) }]),
            device: no(),
            nic: Known(name.into()),
            also_nics: vec![],
            queues: vec![QueueId::rx(i), QueueId::tx(i)],
            queue: Known(format!("rx-{i}+tx-{i}")),
            mapped_by: Known(Mapping::Name),
        });
    }
    for direction in [QueueId::rx as fn(u32) -> QueueId, QueueId::tx] {
        for i in 0..queues {
            nic.queues.push(Queue {
                id: direction(i),
                napi_id: no(),
                irq: Known(IrqId(first_irq + i)),
                rps_cpus: Known(CpuSet::new()),
                rfs_flows: Known(0),
                xps_cpus: Known(CpuSet::new()),
                xps_rxqs: Known(CpuSet::new()),
            });
        }
    }
    facts.irqs = Known(irqs);
    facts.nics.push(nic);
}

/// A process with one thread last seen on each of `cpus`.
pub fn add_process(facts: &mut Facts, pid: u32, name: &str, cpus: &[u32]) {
    let threads = cpus
        .iter()
        .enumerate()
        .map(|(i, &c)| Thread {
            tid: pid + i as u32,
            name: name.into(),
            affinity: facts.host.cpus_online.clone(),
            last_cpu: Known(CpuId(c)),
            migrations: Known(7),
            cpu_ticks: Known(100),
        })
        .collect();
    facts.processes.push(Process {
        pid,
        name: name.into(),
        arguments: Known(vec![name.into()]),
        chosen_by: format!("name {name}"),
        threads,
        cgroup: no(),
        unit: no(),
        container: no(),
        cpuset_cpus: no(),
        cpuset_mems: no(),
        net_namespace: no(),
        memory_by_node: no(),
        sockets: no(),
    });
}

/// Compares a rendering at 80 and at 120 columns with the files `golden/NAME.80.txt` and
/// `golden/NAME.120.txt` beside the test, and checks that no line is wider than its page and that
/// `answer` is in the first two lines.
macro_rules! golden {
    ($name:literal, $answer:expr, $text:expr) => {
        for (width, want) in [
            (80, include_str!(concat!("golden/", $name, ".80.txt"))),
            (120, include_str!(concat!("golden/", $name, ".120.txt"))),
        ] {
            let style = $crate::text::TextStyle { width, ..Default::default() };
            let file = (file!(), $name);
            $crate::testing::is_golden(file, &style, $answer, &$text(style), want);
        }
    };
}
pub(crate) use golden;

/// One width of [`golden!`]. With `UPDATE_GOLDEN` set, the file becomes what is printed.
#[expect(clippy::disallowed_methods, reason = "a test that writes its expected output when asked")]
pub fn is_golden(
    (test, name): (&str, &str),
    style: &crate::text::TextStyle,
    answer: &str,
    text: &str,
    want: &str,
) {
    let width = style.width;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(test);
        let file = folder.with_file_name("golden").join(format!("{name}.{width}.txt"));
        std::fs::write(file, text).unwrap();
        return;
    }
    assert!(text == want, "golden/{name}.{width}.txt is not what is printed now:\n{text}");
    for line in text.lines() {
        let columns = crate::text::width(line);
        assert!(columns <= width, "{name}: {columns} of {width} columns: {line}");
    }
    // A wrapped line is one line of the layout.
    let first: Vec<&str> = text.lines().take_while(|l| !l.is_empty()).collect();
    let first = first.iter().map(|l| l.trim_start()).take(3).collect::<Vec<_>>().join(" ");
    assert!(first.contains(answer), "{name}: the first lines do not have {answer:?}:\n{text}");
}
