//! Judgements of settings' values, with reason and source. A threshold without a source is marked
//! as ours.

use super::{
    Rule,
    ValueMatch::{self, Above, Always, Below, Equal, Higher, Is, Lower, MostOfMemory, Since},
    Verdict::{self, Dangerous, Harmful, Lowers, NoEffect, NotUndone},
};

const fn rule(when: ValueMatch, verdict: Verdict, why: &'static str, source: &'static str) -> Rule {
    Rule { when, verdict, why, source }
}

macro_rules! ip_sysctl {
    ($name:literal) => {
        concat!("Documentation/networking/ip-sysctl.rst ", $name)
    };
}

macro_rules! admin {
    ($file:literal, $name:literal) => {
        concat!("Documentation/admin-guide/sysctl/", $file, ".rst ", $name)
    };
}

const LESS: Rule = rule(Lower, Lowers, "", "");

/// A capacity: less than this kernel's default only reduces it.
pub const ROOM: &[Rule] = &[LESS];

/// As [`ROOM`], where a source says what less comes to.
pub const NEVER_LESS: &[Rule] = &[rule(
    Lower,
    Lowers,
    "the kernel's documentation has it raised only",
    ip_sysctl!("tcp_max_orphans, tcp_max_tw_buckets"),
)];

pub const SACK: &[Rule] =
    &[rule(Is(0), Harmful, "loss recovery needs it", ip_sysctl!("tcp_sack, tcp_recovery"))];

pub const DSACK: &[Rule] = &[rule(
    Is(0),
    Harmful,
    "the other end then never learns that it resent in vain, and stays slowed down for it",
    "net/ipv4/tcp_input.c tcp_try_undo_dsack",
)];

pub const TIMESTAMPS: &[Rule] = &[rule(
    Is(0),
    Harmful,
    "without it a fast connection loses protection against wrapped sequence numbers (3.4 s at \
     10 Gbit/s), round trips are measured less often, and tcp_tw_reuse does nothing",
    ip_sysctl!("tcp_timestamps (RFC 1323)"),
)];

pub const WINDOW_SCALING: &[Rule] = &[rule(
    Is(0),
    Harmful,
    "windows end at 64 KiB without it",
    ip_sysctl!("tcp_window_scaling (RFC 1323)"),
)];

pub const MODERATE_RCVBUF: &[Rule] = &[rule(
    Is(0),
    Harmful,
    "receive buffers no longer grow with the path",
    ip_sysctl!("tcp_moderate_rcvbuf"),
)];

pub const FRTO: &[Rule] = &[rule(
    Is(0),
    Lowers,
    "a timeout of a path whose round trip varies is then taken for loss",
    ip_sysctl!("tcp_frto"),
)];

pub const SYNCOOKIES: &[Rule] = &[
    rule(
        Is(0),
        Harmful,
        "cookies are what answers once a SYN queue is full: a flood shuts out every real client",
        ip_sysctl!("tcp_syncookies"),
    ),
    rule(
        Is(2),
        Harmful,
        "2 is for tests: connections that are made by cookie do without TCP's extensions",
        ip_sysctl!("tcp_syncookies"),
    ),
];

pub const RETRIES1: &[Rule] =
    &[rule(Below(0, 3), Lowers, "RFC 1122 recommends at least 3", ip_sysctl!("tcp_retries1"))];

pub const RETRIES2: &[Rule] = &[rule(
    Below(0, 8),
    Lowers,
    "connections then end in an outage of less than the 100 s that RFC 1122 asks for, which is 8",
    ip_sysctl!("tcp_retries2"),
)];

pub const ABORT_ON_OVERFLOW: &[Rule] = &[rule(
    Is(1),
    Harmful,
    "a burst that a client would have outlasted resets it: raise the backlog, or accept faster",
    ip_sysctl!("tcp_abort_on_overflow"),
)];

pub const STDURG: &[Rule] = &[rule(
    Is(1),
    Harmful,
    "most hosts use the older meaning, so connections may fail",
    ip_sysctl!("tcp_stdurg"),
)];

pub const NETDEV_BUDGET: &[Rule] = &[
    LESS,
    rule(
        Above(0, 3000),
        Harmful,
        "netdev_budget_usecs ends the round before that, and until then other work of the CPU waits: \
         spread the load over queues or CPUs",
        admin!("net", "netdev_budget; the bound of 3000 is ours"),
    ),
];

pub const BACKLOG: &[Rule] = &[
    LESS,
    rule(
        Above(0, 30_000),
        Harmful,
        "a NIC's own packets do not pass it without RPS; packets that do pass it would queue \
         behind this many, which is delay",
        admin!("net", "netdev_max_backlog, networking/scaling.rst; the bound of 30000 is ours"),
    ),
];

pub const OPTMEM: &[Rule] = &[
    LESS,
    rule(
        Higher,
        NoEffect,
        "it holds a socket's options and the notes of zero-copy sending, and makes nothing faster \
         that does not run out of it (ENOBUFS)",
        "Documentation/networking/msg_zerocopy.rst",
    ),
];

pub const RMEM_DEFAULT: &[Rule] = &[
    LESS,
    rule(
        Higher,
        NoEffect,
        "TCP takes tcp_rmem instead; every UDP socket would take more, wanted or not",
        ip_sysctl!("tcp_rmem"),
    ),
];

pub const WMEM_DEFAULT: &[Rule] =
    &[LESS, rule(Higher, NoEffect, "TCP takes tcp_wmem instead", ip_sysctl!("tcp_wmem"))];

const MINIMUM: &str = "the minimum is granted to every socket even under memory pressure: 1,000 \
                       sockets would take gigabytes";
const START: &str = "every socket would start that large; only the maximum is to grow";

pub const TCP_RMEM: &[Rule] = &[
    rule(Above(0, 1 << 20), Harmful, MINIMUM, ip_sysctl!("tcp_rmem; the bound of 1 MiB is ours")),
    rule(Above(1, 4 << 20), Harmful, START, ip_sysctl!("tcp_rmem; the bound of 4 MiB is ours")),
    LESS,
];

pub const TCP_WMEM: &[Rule] = &[
    rule(Above(0, 1 << 20), Harmful, MINIMUM, ip_sysctl!("tcp_wmem; the bound of 1 MiB is ours")),
    rule(Above(1, 4 << 20), Harmful, START, ip_sysctl!("tcp_wmem; the bound of 4 MiB is ours")),
    LESS,
];

pub const TCP_MEM: &[Rule] = &[
    rule(MostOfMemory(None), Harmful, "", ip_sysctl!("tcp_mem; the bound of a quarter is ours")),
    rule(Equal, Harmful, "equal values remove the pressure stage", ip_sysctl!("tcp_mem")),
    LESS,
];

pub const UDP_WMEM_MIN: &[Rule] =
    &[rule(Always, NoEffect, "UDP does not count what it sends", ip_sysctl!("udp_wmem_min"))];

pub const LOW_LATENCY: &[Rule] =
    &[rule(Since((4, 14)), NoEffect, "it does nothing any more", ip_sysctl!("tcp_low_latency"))];

/// The version is the oldest that this table answers for.
pub const FACK: &[Rule] =
    &[rule(Since((4, 18)), NoEffect, "it does nothing any more", ip_sysctl!("tcp_fack"))];

pub const IPFRAG_LOW: &[Rule] = &[
    rule(
        Since((4, 17)),
        NoEffect,
        "it is obsolete since Linux 4.17",
        ip_sysctl!("ipfrag_low_thresh"),
    ),
    LESS,
];

pub const ROUTE_MAX_SIZE: &[Rule] = &[rule(
    Since((3, 6)),
    NoEffect,
    "IPv4 has no route cache since Linux 3.6",
    ip_sysctl!("route/max_size"),
)];

pub const WARNINGS: &[Rule] = &[rule(Always, NoEffect, "it is unused", admin!("net", "warnings"))];

pub const TW_RECYCLE: &[Rule] = &[rule(
    Is(1),
    Harmful,
    "connections of several clients behind one address (NAT) are refused at random",
    RECYCLE,
)];

pub const RECYCLE: &str = "commit 4396e46187ca";

pub const PORT_RANGE: &[Rule] = &[rule(
    Below(0, 10_000),
    Harmful,
    "services listen on ports from there on, and one that starts finds its port taken by a \
     connection: begin at 10000 or later",
    ip_sysctl!("ip_local_reserved_ports; the bound of 10000 is ours"),
)];

pub const PRIVILEGED_PORTS: &[Rule] = &[rule(
    Lower,
    Dangerous,
    "any user could take the ports of services",
    ip_sysctl!("ip_unprivileged_port_start"),
)];

pub const TASKS: &[Rule] = &[rule(
    Lower,
    Harmful,
    "once that many run, no process and no thread can be made, root's neither",
    admin!("kernel", "pid_max, threads-max"),
)];

pub const DIRTY: &[Rule] = &[rule(
    Is(0),
    Harmful,
    "0 does not select the other unit: set only that one, and the kernel makes this one 0",
    "mm/page-writeback.c dirty_ratio_handler, dirty_bytes_handler",
)];

pub const MIN_FREE: &[Rule] = &[
    rule(
        Below(0, 1024),
        Harmful,
        "below 1024 the system is prone to deadlock under load",
        admin!("vm", "min_free_kbytes"),
    ),
    rule(
        MostOfMemory(Some(1024)),
        Harmful,
        "",
        admin!(
            "vm",
            "min_free_kbytes: too high ends the host for want of memory; the bound of a quarter is ours"
        ),
    ),
];

pub const IPV6_OFF: &[Rule] = &[rule(
    Above(0, 0),
    Harmful,
    "the interface loses its IPv6 addresses, and they do not come back",
    "net/ipv6/addrconf.c addrconf_disable_ipv6",
)];

/// Names programs that the kernel runs as root.
pub const PROGRAM: &[Rule] = &[rule(
    Always,
    Dangerous,
    "it names a program for the kernel to run as root, which no network needs",
    "kernel/umh.c call_usermodehelper",
)];

pub const SECURITY: &[Rule] = &[rule(
    Always,
    Dangerous,
    "it guards the host, and no network needs it otherwise",
    "Documentation/admin-guide/sysctl",
)];

pub const ACT: &[Rule] = &[rule(Always, NotUndone, "writing it is an act, not a setting", "")];

pub const ONE_WAY: &[Rule] = &[rule(Always, NotUndone, "it cannot be undone before a reboot", "")];

pub const ONE_WAY_1: &[Rule] = &[rule(Always, NotUndone, "1 cannot be undone before a reboot", "")];

pub const ONE_WAY_3: &[Rule] = &[rule(Always, NotUndone, "3 cannot be undone before a reboot", "")];

pub const LWTUNNEL: &[Rule] = &[rule(
    Always,
    NotUndone,
    "1 cannot be undone before a reboot, and it is the whole host's, also where a network \
     namespace lets it be written",
    "net/netfilter/nf_hooks_lwtunnel.c nf_hooks_lwtunnel_sysctl_handler",
)];

pub const NAME: &[Rule] = &[rule(Always, NotUndone, "it is who the host is", "")];

pub const SECRET: &[Rule] =
    &[rule(Always, NotUndone, "it is a secret, and the journal can be read", "")];

pub const ZERO_AT_BOOT: &[Rule] =
    &[rule(Always, NotUndone, "0, as it is at boot, cannot be written", "")];

pub const WATCHDOG: &[Rule] = &[rule(
    Always,
    NotUndone,
    "a kernel before 6.8 takes 1 back no more once it was read as 0",
    "kernel/watchdog.c proc_watchdog_common",
)];

pub const MARK: &[Rule] =
    &[rule(Always, NotUndone, "a mark in it does not go away before a reboot", "")];

pub const COUNTS_DOWN: &[Rule] = &[rule(
    Always,
    NotUndone,
    "the kernel itself counts it down",
    admin!("kernel", "hung_task_warnings"),
)];

pub const SET_BACK: &[Rule] = &[rule(
    Always,
    NotUndone,
    "the kernel sets it back when it is used",
    admin!("kernel", "msg_next_id, sem_next_id, shm_next_id"),
)];

pub const MOVES: &[Rule] =
    &[rule(Always, NotUndone, "it moves with each new process", admin!("kernel", "ns_last_pid"))];

pub const GOES_DOWN: &[Rule] = &[rule(
    Always,
    NotUndone,
    "it only goes down before a reboot",
    "kernel/kexec_core.c kexec_limit_handler",
)];

pub const CAPABILITIES: &[Rule] = &[rule(
    Always,
    NotUndone,
    "a capability that it loses does not come back before a reboot",
    "kernel/umh.c proc_cap_handler",
)];

/// Lines of recipes that are commands, by their first words.
pub const COMMANDS: &[(&str, Rule)] = &[
    (
        "setpci",
        rule(
            Always,
            Dangerous,
            "it writes to a bare offset, which is the burst size of one PCI-X card of 2004 and \
             something else on every other device; pci.ADDRESS.mmrbc and \
             pci.ADDRESS.read_request name what they set",
            "Documentation/networking/device_drivers/ethernet/intel/ixgb.rst",
        ),
    ),
    ("service irqbalance", STOP_IRQBALANCE),
    ("systemctl stop irqbalance", STOP_IRQBALANCE),
    ("systemctl disable irqbalance", STOP_IRQBALANCE),
    (
        "service cpuspeed",
        rule(
            Always,
            Harmful,
            "there is no such service any more, and for good it wastes power; for the length of a \
             measurement, prove --freeze-host; else cpu.governor",
            "",
        ),
    ),
];

const STOP_IRQBALANCE: Rule = rule(
    Always,
    Harmful,
    "right for the length of a measurement (prove --freeze-host); for good, a reset of a NIC \
     without affinity hints may leave all its interrupts on one CPU; irqbalance.running=off is \
     the change that can be undone",
    "",
);
