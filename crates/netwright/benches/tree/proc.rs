//! The rest of `/proc`.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
};

use super::{Dice, Tree, TreeShape};

pub fn write(tree: &Tree, shape: &TreeShape) -> io::Result<()> {
    tree.dir("proc/net")?;
    tree.files(
        "proc",
        &[
            ("meminfo", "MemTotal:       1056764928 kB\nMemFree:        1011491200 kB"),
            ("uptime", "864000.12 12345678.90"),
            ("cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/nvme0n1p2 ro quiet"),
            ("version", "Linux version 6.12.0 (builder@host) (gcc 14.2.0) #1 SMP PREEMPT_DYNAMIC"),
            ("cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled"),
            ("modules", "ice 1048576 0 - Live 0x0000000000000000"),
        ],
    )?;
    settings(tree)?;
    cpuinfo(tree, shape)?;
    softnet(tree, shape)
}

fn softnet(tree: &Tree, shape: &TreeShape) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(tree.path("proc/net/softnet_stat"))?);
    let mut dice = Dice::new(3);
    for cpu in 0..shape.cpus {
        let (processed, squeezed) = (dice.count(), dice.below(20));
        write!(out, "{processed:08x} 00000000 {squeezed:08x}")?;
        write!(out, "{}", " 00000000".repeat(9))?;
        writeln!(out, " {cpu:08x} 00000000 00000000")?;
    }
    out.flush()
}

fn cpuinfo(tree: &Tree, shape: &TreeShape) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(tree.path("proc/cpuinfo"))?);
    let flags = "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush \
                 mmx fxsr sse sse2 ht syscall nx mmxext fxsr_opt pdpe1gb rdtscp lm constant_tsc \
                 rep_good amd_lbr_v2 nopl nonstop_tsc cpuid extd_apicid aperfmperf rapl pni \
                 pclmulqdq monitor ssse3 fma cx16 pcid sse4_1 sse4_2 x2apic movbe popcnt aes \
                 xsave avx f16c rdrand lahf_lm cmp_legacy svm extapic cr8_legacy abm sse4a";
    for cpu in 0..shape.cpus {
        let core = shape.core(cpu);
        let package = shape.package_of_core(core);
        writeln!(
            out,
            "processor\t: {cpu}\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n\
             model name\t: AMD EPYC 9754 128-Core Processor\nstepping\t: 1\n\
             microcode\t: 0xa101144\ncpu MHz\t\t: 2250.000\ncache size\t: 1024 KB\n\
             physical id\t: {package}\nsiblings\t: {}\ncore id\t\t: {core}\ncpu cores\t: {}\n\
             apicid\t\t: {cpu}\ninitial apicid\t: {cpu}\nfpu\t\t: yes\nfpu_exception\t: yes\n\
             cpuid level\t: 16\nwp\t\t: yes\nflags\t\t: {flags}\nbugs\t\t: sysret_ss_attrs\n\
             bogomips\t: 4493.12\nTLB size\t: 3584 4K pages\nclflush size\t: 64\n\
             cache_alignment\t: 64\naddress sizes\t: 52 bits physical, 57 bits virtual\n\
             power management: ts ttp tm hwpstate cpb eff_freq_ro [13] [14]\n",
            shape.cpus / shape.packages,
            shape.cores() / shape.packages,
        )?;
    }
    out.flush()
}

/// `/proc/sys` as far as rules and facts ask for it.
fn settings(tree: &Tree) -> io::Result<()> {
    tree.files(
        "proc/sys/kernel",
        &[
            ("osrelease", "6.12.0"),
            ("version", "#1 SMP PREEMPT_DYNAMIC"),
            ("ostype", "Linux"),
            ("hostname", "bench"),
            ("arch", "x86_64"),
            ("numa_balancing", "1"),
            ("sched_autogroup_enabled", "1"),
        ],
    )?;
    tree.files("proc/sys/fs", &[("file-max", "9223372036854775807"), ("nr_open", "1048576")])?;
    tree.files(
        "proc/sys/net/core",
        &[
            ("busy_poll", "0"),
            ("busy_read", "0"),
            ("default_qdisc", "fq_codel"),
            ("dev_weight", "64"),
            ("flow_limit_cpu_bitmap", "0"),
            ("flow_limit_table_len", "4096"),
            ("netdev_budget", "300"),
            ("netdev_budget_usecs", "2000"),
            ("netdev_max_backlog", "1000"),
            ("optmem_max", "131072"),
            ("rmem_default", "212992"),
            ("rmem_max", "4194304"),
            ("rps_sock_flow_entries", "0"),
            ("somaxconn", "4096"),
            ("wmem_default", "212992"),
            ("wmem_max", "4194304"),
        ],
    )?;
    tree.files(
        "proc/sys/net/ipv4",
        &[
            ("ip_local_port_range", "32768\t60999"),
            ("ip_local_reserved_ports", ""),
            ("tcp_congestion_control", "cubic"),
            ("tcp_available_congestion_control", "reno cubic"),
            ("tcp_ecn", "2"),
            ("tcp_fin_timeout", "60"),
            ("tcp_low_latency", "0"),
            ("tcp_max_syn_backlog", "4096"),
            ("tcp_max_tw_buckets", "262144"),
            ("tcp_mem", "12377340\t16503122\t24754680"),
            ("tcp_mtu_probing", "0"),
            ("tcp_rmem", "4096\t131072\t33554432"),
            ("tcp_sack", "1"),
            ("tcp_slow_start_after_idle", "1"),
            ("tcp_syncookies", "1"),
            ("tcp_timestamps", "1"),
            ("tcp_tw_reuse", "2"),
            ("tcp_window_scaling", "1"),
            ("tcp_wmem", "4096\t16384\t4194304"),
            ("udp_mem", "24754680\t33006244\t49509360"),
            ("udp_rmem_min", "4096"),
            ("udp_wmem_min", "4096"),
        ],
    )
}
