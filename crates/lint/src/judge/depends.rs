//! What decides whether a setting helps a host, and how to find that out. One row per setting; a row
//! says nothing against a value.

use model::{lint::LineVerdict, units::BitsPerSec};

use super::{Context, Judged};

/// What decides, how to find out, and the source.
struct Row {
    /// The setting; a `*` stands for one interface, queue, interrupt, CPU or the rest of a command.
    setting: &'static str,
    on: &'static str,
    find_out: &'static str,
    source: &'static str,
}

const fn row(
    setting: &'static str,
    on: &'static str,
    find_out: &'static str,
    source: &'static str,
) -> Row {
    Row { setting, on, find_out, source }
}

const IP: &str = "Documentation/networking/ip-sysctl.rst";
const NET: &str = "Documentation/admin-guide/sysctl/net.rst";
const SCALING: &str = "Documentation/networking/scaling.rst";
const ETHTOOL: &str = "ethtool(8)";
const PROVE: &str = "`netwright prove` measures the workload with and without it";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("sysctl.net.core.somaxconn", "whether an accept queue overflows, and whether the server's own backlog is as large", "`nstat -az TcpExtListenOverflows`; `ss -ltn` shows Send-Q, the limit in force", IP),
    row("sysctl.net.ipv4.tcp_max_syn_backlog", "whether a queue of half-open connections overflows", "`nstat -az TcpExtTCPReqQFullDrop TcpExtTCPReqQFullDoCookies`", IP),
    row("sysctl.net.core.netdev_max_backlog", "whether packets pass a backlog: RPS, veth, or a driver without NAPI", "column 2 of /proc/net/softnet_stat grows where it drops", NET),
    row("sysctl.net.core.netdev_budget", "whether a round ends by the budget with packets left; netdev_budget_usecs ends it too, and until then other work of the CPU waits", "column 3 of /proc/net/softnet_stat; `netwright doctor`", NET),
    row("sysctl.net.core.netdev_budget_usecs", "whether a poll ends with packets left while the CPU has time", "column 3 of /proc/net/softnet_stat; `netwright doctor`", NET),
    row("sysctl.net.core.rmem_default", "whether UDP, raw or Unix sockets need more: TCP starts with tcp_rmem, and a program's SO_RCVBUF counts instead", "`nstat -az UdpRcvbufErrors`; `ss -unm` shows rb, the limit in force", "Documentation/networking/ip-sysctl.rst tcp_rmem; socket(7)"),
    row("sysctl.net.core.wmem_default", "whether UDP, raw or Unix sockets need more: TCP starts with tcp_wmem, and a program's SO_SNDBUF counts instead", "`ss -unm` shows tb, the limit in force", "Documentation/networking/ip-sysctl.rst tcp_wmem; socket(7)"),
    row("sysctl.net.core.optmem_max", "whether a program runs out of it (ENOBUFS): it holds a socket's options and the notes of zero-copy sending, and makes nothing faster by itself", "ENOBUFS of setsockopt or of MSG_ZEROCOPY in the program's log", "Documentation/networking/msg_zerocopy.rst"),
    row("sysctl.net.core.busy_read", "whether a CPU may spin while a socket waits: latency for CPU time", PROVE, NET),
    row("sysctl.net.core.busy_poll", "whether a CPU may spin while poll waits: latency for CPU time", PROVE, NET),
    row("sysctl.net.core.default_qdisc", "whether connections are paced (fq) and share the queue; it counts for interfaces that come up later", "`tc -s qdisc` shows what is in force", NET),
    row("sysctl.net.core.rps_sock_flow_entries", "whether the queues' rps_flow_cnt are set too; one without the other does nothing", "`netwright inspect --nic NIC`", SCALING),
    row("sysctl.net.ipv4.tcp_congestion_control", "the path's loss and buffers, and whether the kernel has the module", "`netwright prove` with the real path; sysctl net.ipv4.tcp_available_congestion_control", IP),
    row("sysctl.net.ipv4.tcp_fastopen", "whether client and server both use it, and what stands between passes it", "`nstat -az 'TcpExtTCPFastOpen*'`", IP),
    row("sysctl.net.ipv4.tcp_fin_timeout", "how many sockets wait in FIN-WAIT-2; it does not shorten TIME-WAIT, which is 60 s always", "`ss -tan state fin-wait-2 | wc -l`", IP),
    row("sysctl.net.ipv4.tcp_tw_reuse", "whether outgoing connections run out of ports; needs timestamps at both ends", "`ss -tan state time-wait | wc -l` against net.ipv4.ip_local_port_range", IP),
    row("sysctl.net.ipv4.ip_local_port_range", "how many connections leave for one address and port, and whether a service listens within the range: a connection may hold its port when it starts", "`ss -tan | wc -l`; `ss -ltn`; net.ipv4.ip_local_reserved_ports keeps ports out", IP),
    row("sysctl.net.ipv4.tcp_max_tw_buckets", "whether sockets in TIME-WAIT are destroyed early", "`nstat -az TcpExtTCPTimeWaitOverflow`", IP),
    row("sysctl.net.ipv4.tcp_max_orphans", "whether orphaned sockets are reset", "the kernel's log says `too many orphaned sockets`", IP),
    row("sysctl.net.ipv4.tcp_slow_start_after_idle", "whether connections pause for longer than a round trip timeout and send a burst then", PROVE, IP),
    row("sysctl.net.ipv4.tcp_notsent_lowat", "whether the application has better use of data that is not sent yet", PROVE, IP),
    row("sysctl.net.ipv4.tcp_mtu_probing", "whether a path drops ICMP, so that its MTU is not learned", "`nstat -az TcpExtTCPMTUPFail`; `tracepath HOST`", IP),
    row("sysctl.net.ipv4.tcp_ecn", "whether routers of the path mark instead of dropping", "`nstat -az 'IpExtInCEPkts'`", IP),
    row("sysctl.net.ipv4.tcp_no_metrics_save", "whether a path changes between connections", PROVE, IP),
    row("sysctl.net.ipv4.tcp_keepalive_time", "what stands between drops idle connections after how long", "the timeout of the firewall or balancer", IP),
    row("sysctl.net.ipv4.tcp_keepalive_intvl", "how soon a dead peer must be noticed", "tcp_keepalive_time + intvl x probes is the time until then", IP),
    row("sysctl.net.ipv4.tcp_keepalive_probes", "how soon a dead peer must be noticed", "tcp_keepalive_time + intvl x probes is the time until then", IP),
    row("sysctl.net.ipv4.tcp_syn_retries", "how long a connect may wait for an absent peer", "1 s, doubled with each retry; since Linux 6.5 the first 4 are 1 s apart (tcp_syn_linear_timeouts)", IP),
    row("sysctl.net.ipv4.tcp_synack_retries", "how long a half-open connection is kept", "1 s, doubled with each retry", IP),
    row("sysctl.net.ipv4.tcp_retries2", "how long an outage a connection must survive: RFC 1122 asks for 100 s, which is 8", "15 is 924 s at least", IP),
    row("sysctl.net.ipv4.tcp_retries1", "how soon a route is suspected: RFC 1122 recommends at least 3 retries", "`nstat -az TcpExtTCPTimeouts`", IP),
    row("sysctl.net.ipv4.tcp_frto", "whether round trips of the path vary: without F-RTO a timeout is then taken for loss", "`ss -ti` shows rtt with its deviation", IP),
    row("sysctl.net.ipv4.tcp_autocorking", "whether small writes may wait to be sent together", PROVE, IP),
    row("sysctl.net.ipv4.tcp_limit_output_bytes", "whether the driver needs more in its queue than this", PROVE, IP),
    row("sysctl.net.ipv4.ip_forward", "whether the host routes for others", "`ip route` and `ip link`: containers and virtual machines behind a bridge need it", IP),
    row("sysctl.net.ipv4.tcp_mem", "how much memory all TCP sockets take together", "`cat /proc/net/sockstat`: mem, in pages", IP),
    row("sysctl.net.ipv4.udp_mem", "how much memory all UDP sockets take together", "`cat /proc/net/sockstat`: mem, in pages", IP),
    row("sysctl.net.ipv4.udp_rmem_min", "whether UDP sockets drop under memory pressure", "`nstat -az UdpRcvbufErrors UdpMemErrors`", IP),
    row("sysctl.net.netfilter.nf_conntrack_max", "how many connections are tracked", "`sysctl net.netfilter.nf_conntrack_count`; `conntrack -S` for drops", "Documentation/networking/nf_conntrack-sysctl.rst"),
    row("sysctl.net.netfilter.nf_conntrack_buckets", "how many connections are tracked", "`sysctl net.netfilter.nf_conntrack_count`", "Documentation/networking/nf_conntrack-sysctl.rst"),
    row("sysctl.net.netfilter.nf_conntrack_tcp_timeout_established", "how long an idle connection must stay known", "the longest pause of the services behind it", "Documentation/networking/nf_conntrack-sysctl.rst"),
    row("sysctl.net.unix.max_dgram_qlen", "whether a reader of datagrams is late", "the writer's EAGAIN", NET),
    row("sysctl.fs.file-max", "how many files all processes hold", "`cat /proc/sys/fs/file-nr`: first against last number", "Documentation/admin-guide/sysctl/fs.rst"),
    row("sysctl.fs.nr_open", "whether one process needs more than a million files", "`cat /proc/PID/limits`", "Documentation/admin-guide/sysctl/fs.rst"),
    row("sysctl.fs.aio-max-nr", "whether programs run out of asynchronous requests (EAGAIN of io_setup)", "`cat /proc/sys/fs/aio-nr` against it", "io_setup(2)"),
    row("sysctl.fs.inotify.max_user_watches", "whether a program runs out of watches (ENOSPC); each holds kernel memory", "ENOSPC of inotify_add_watch in the program's log", "inotify(7)"),
    row("sysctl.fs.inotify.max_user_instances", "whether a user runs out of inotify instances (EMFILE)", "EMFILE of inotify_init in the program's log", "inotify(7)"),
    row("sysctl.vm.max_map_count", "whether a process needs more areas (ENOMEM of mmap)", "`wc -l /proc/PID/maps`", "Documentation/admin-guide/sysctl/vm.rst"),
    row("sysctl.kernel.numa_balancing", "whether processes are placed by hand: it moves memory of pinned ones in vain", "`grep numa_hint_faults /proc/vmstat`; `netwright doctor`", "Documentation/admin-guide/sysctl/kernel.rst"),
    row("nic.*.mtu", "whether every hop carries it; one that does not is a black hole", "`ping -M do -s $((MTU-28)) HOST`; `netwright tune apply` checks the path", "RFC 1191"),
    row("nic.*.rings.*", "whether the NIC drops while its CPU has time; a larger ring is delay elsewhere", "`ethtool -S NIC`: rx_missed, rx_no_buffer; `netwright doctor`", ETHTOOL),
    row("nic.*.channels", "whether one queue's CPU is full; fewer queues that do not overflow cost less", "`netwright doctor`", SCALING),
    row("nic.*.coalesce.*", "whether latency or CPU time is the goal", PROVE, ETHTOOL),
    row("nic.*.features.rx-gro", "whether a program must see packets as they were sent: off makes each packet pass the stack alone", PROVE, "Documentation/networking/segmentation-offloads.rst"),
    row("nic.*.features.tx-tcp-segmentation", "whether the driver is faulty: off makes the CPU cut each segment", PROVE, "Documentation/networking/segmentation-offloads.rst"),
    row("nic.*.features.tx-generic-segmentation", "whether a program must see segments as they are sent: off makes each pass the stack alone", PROVE, "Documentation/networking/segmentation-offloads.rst"),
    row("nic.*.features.rx-lro", "whether the host forwards or bridges, which LRO must not", PROVE, "Documentation/networking/segmentation-offloads.rst"),
    row("nic.*.features.*", "what the driver and the path make of it", PROVE, ETHTOOL),
    row("nic.*.pause.*", "whether the switch pauses too, and a slow receiver may stop others", "`ethtool -S NIC | grep -i pause`", ETHTOOL),
    row("nic.*.rss.*", "whether flows are uneven over the queues", "`netwright inspect --nic NIC`; `ethtool -S NIC` by queue", SCALING),
    row("nic.*.queue.*.rps_cpus", "whether the NIC has fewer queues than CPUs that receive; else it costs and gives nothing", "`netwright inspect --nic NIC`", SCALING),
    row("nic.*.queue.*.rfs_flows", "whether net.core.rps_sock_flow_entries is set too; one without the other does nothing", "`netwright inspect --nic NIC`", SCALING),
    row("nic.*.queue.*.xps_cpus", "whether each queue's CPUs are those of its interrupt", "`netwright inspect --nic NIC`", SCALING),
    row("nic.*.qdisc", "what the queue is for: pacing, fairness, a rate", "`tc -s qdisc` shows drops and backlog", "tc(8)"),
    row("nic.*.gro_flush_timeout", "whether napi_defer_hard_irqs is set too; one without the other does little", PROVE, "Documentation/networking/napi.rst"),
    row("nic.*.napi_defer_hard_irqs", "whether gro_flush_timeout is set too", PROVE, "Documentation/networking/napi.rst"),
    row("nic.*.threaded", "whether the scheduler should place packet processing", PROVE, "Documentation/networking/napi.rst"),
    row("irq.*.affinity", "the number of the interrupt, which changes between boots, and whether irqbalance moves it again", "`netwright inspect irqs`; `netwright tune plan irq.affinity=local:NIC`", "Documentation/core-api/irq/irq-affinity.rst"),
    row("cpu.governor", "whether a change of frequency costs the workload something; it takes power", "`netwright inspect cpus`", "Documentation/admin-guide/pm/cpufreq.rst"),
    row("cpu.*.governor", "whether a change of frequency costs the workload something; it takes power", "`netwright inspect cpus`", "Documentation/admin-guide/pm/cpufreq.rst"),
    row("cpu.*.idle_limit", "whether leaving an idle state costs the workload something; it takes power", "`netwright inspect cpus`", "Documentation/admin-guide/pm/cpuidle.rst"),
    row("taskset*", "whether the process migrates and pays for it, and whether those CPUs are near its NIC and memory", "`netwright watch`: migrations; `netwright prove`", "taskset(1)"),
    row("stop irqbalance", "whether it is for the length of a measurement, and put back: for good, a reset of a NIC without affinity hints may leave all its interrupts on one CPU", "`netwright inspect irqs`; `prove --freeze-host` stops and starts it around a run", "Documentation/core-api/irq/irq-affinity.rst; irqbalance(1)"),
    row("stop cpuspeed", "whether it is for the length of a measurement, and put back; only old distributions have the service", "`netwright inspect cpus` shows the governor", "Documentation/admin-guide/pm/cpufreq.rst"),
    row("setpci *CAP_EXP*", "what the device takes; a read request that is too large delays others", "`netwright inspect --nic NIC`; `lspci -vv`: MaxReadReq", "PCI Express Base Specification, Device Control"),
    row("irqbalance *", "which CPUs and interrupts are to be left alone", "`netwright inspect irqs`", "irqbalance(1)"),
    row("irqbalance", "which CPUs and interrupts are to be left alone", "`netwright inspect irqs`", "irqbalance(1)"),
    row("tuned.irqbalance.banned_cpus", "which CPUs are to be left alone", "`netwright inspect irqs`", "irqbalance(1)"),
    row("tuned.net.channels", "whether one queue's CPU is full", "`netwright doctor`", SCALING),
    row("tuned.sysctl.net.core.rps_sock_flow_entries", "whether the queues' rps_flow_cnt are set too", "`netwright inspect --nic NIC`", SCALING),
];

/// A kernel setting with a value that nothing is known against.
pub fn sysctl(context: &Context<'_>, key: &str, value: &str) -> Option<Judged> {
    match key {
        "net.core.rmem_max" | "net.core.wmem_max" => Some(asked_for(key)),
        "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => Some(buffer(context, value)),
        _ => setting(&format!("sysctl.{key}")),
    }
}

/// A limit for what programs ask for. TCP that sizes its buffers itself does not see it.
fn asked_for(key: &str) -> Judged {
    let (option, own, counter) = match key {
        "net.core.rmem_max" => ("SO_RCVBUF, as UDP receivers do", "tcp_rmem", "UdpRcvbufErrors"),
        _ => ("SO_SNDBUF", "tcp_wmem", "UdpSndbufErrors"),
    };
    let why = format!(
        "depends on whether a program asks for a buffer ({option}): TCP that sizes its own follows \
         {own} instead"
    );
    Judged {
        find_out: format!("`nstat -az {counter}`; `ss -tunm` shows rb and tb, the limits in force"),
        ..Judged::new(LineVerdict::Depends, why, format!("{IP} {own}; socket(7)"))
    }
}

/// The row of any setting.
pub fn setting(name: &str) -> Option<Judged> {
    let row = ROWS.iter().find(|r| matches(r.setting, name))?;
    let judged = Judged::new(LineVerdict::Depends, format!("depends on {}", row.on), row.source);
    Some(Judged { find_out: row.find_out.into(), ..judged })
}

/// Whether a name is the pattern, where each `*` stands for some characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.get(1..).and_then(|r| r.find(part).and_then(|i| r.get(i + part.len()..))) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A buffer's maximum: the longest path that it fills at the speed of the NIC.
fn buffer(context: &Context<'_>, value: &str) -> Judged {
    let most: u64 = value.split(' ').next_back().and_then(|n| n.parse().ok()).unwrap_or(0);
    let source = "Documentation/networking/ip-sysctl.rst tcp_rmem, tcp_wmem; a part of a buffer goes to \
                  overhead";
    let why = match context.nic_speed_bps.filter(|s| *s > 0) {
        Some(speed) => {
            let ms = most as f64 * 8.0 / speed as f64 * 1000.0;
            format!(
                "depends on the path: {most} bytes in flight fill {} up to a round trip of {} ms",
                BitsPerSec(speed),
                model::units::figure(ms)
            )
        }
        None => "depends on the path: bandwidth x round trip is what must be in flight".into(),
    };
    let find_out = "`ss -ti` shows rtt and rcv_space; `netwright measure rtt`, `netwright doctor`";
    Judged { find_out: find_out.into(), ..Judged::new(LineVerdict::Depends, why, source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, yes) in [
            ("nic.*.mtu", "nic.eth0.100.mtu", true),
            ("nic.*.mtu", "nic.eth0.mtux", false),
            ("nic.*.queue.*.rps_cpus", "nic.eth0.queue.rx-0.rps_cpus", true),
            ("cpu.governor", "cpu.governor", true),
            ("cpu.governor", "cpu.governor2", false),
            ("taskset*", "taskset -p 1", true),
        ] {
            assert_eq!(matches(pattern, name), yes, "{pattern} {name}");
        }
    }

    #[test]
    fn a_row_has_what_decides_and_how_to_find_out() {
        for row in ROWS {
            assert!(!row.on.is_empty() && !row.find_out.is_empty() && !row.source.is_empty());
            let key = row.setting.strip_prefix("sysctl.");
            assert!(key.is_none_or(|k| model::sysctls::find(k).is_some()), "{}", row.setting);
        }
    }
}
