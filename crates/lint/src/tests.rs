#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod not_followed;

use std::path::Path;

use model::{
    BitsPerSec, Bytes, Facts, Reading,
    lint::{LineVerdict as V, LintDocument, LintHost},
};
use probe::Root;
use proptest::prelude::*;

use crate::{files, fix, lint};

/// A host of this kernel with 24 GiB and a NIC of 10 Gbit/s.
fn host(kernel: &str) -> (Facts, LintHost) {
    let base = include_str!("../../diagnose/tests/golden/_base/facts.json");
    let mut facts: Facts = serde_json::from_str(base).unwrap();
    facts.host.kernel = Reading::Known(kernel.into());
    facts.memory_bytes = Reading::Known(Bytes(24 << 30));
    facts.sysctls = probe::facts::sysctl::of_another(&facts.host, Some(1), &facts.memory_bytes);
    let host = LintHost {
        source: "test".into(),
        name: Reading::Known("h".into()),
        kernel: facts.host.kernel.clone(),
        memory_bytes: facts.memory_bytes.clone(),
        nic_speed_bps: Reading::Known(BitsPerSec(10_000_000_000)),
        given: vec![],
    };
    (facts, host)
}

/// A host's files: one that no file of a test asks for.
fn root() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("etc")).unwrap();
    std::fs::write(folder.path().join("etc/hostname"), "h\n").unwrap();
    let root = Root::open(folder.path()).unwrap();
    (folder, root)
}

fn files_of(texts: &[(&str, &str)]) -> Vec<files::ReadFile> {
    let (_folder, root) = root();
    let one = |(name, text): &(&str, &str)| {
        files::of_bytes(&root, Path::new(name), text.as_bytes().to_vec()).unwrap()
    };
    texts.iter().map(one).collect()
}

fn judged(kernel: &str, texts: &[(&str, &str)]) -> LintDocument {
    let (facts, host) = host(kernel);
    lint(&facts, host, &files_of(texts))
}

fn verdicts(kernel: &str, name: &str, text: &str) -> Vec<(u32, V)> {
    let document = judged(kernel, &[(name, text)]);
    document.lines.iter().map(|l| (l.line, l.verdict)).collect()
}

/// The recipe of a 10 Gbit/s talk of 2008, as a field case had it.
const RECIPE: &str = "net.ipv4.tcp_sack = 0
net.ipv4.tcp_timestamps = 0
net.ipv4.tcp_mem = 10000000 10000000 10000000
net.ipv4.tcp_rmem = 10000000 10000000 10000000
net.ipv4.tcp_wmem = 10000000 10000000 10000000
net.core.rmem_max = 524287
net.core.wmem_max = 524287
net.core.rmem_default = 524287
net.core.wmem_default = 524287
net.core.optmem_max = 524287
net.core.netdev_max_backlog = 300000
fs.file-max = 65535
setpci -d 8086:1a48 e6.b=2e
ip li set dev eth1 mtu 9000 txqueuelen 1000 up
service irqbalance stop
";

/// Each line with its verdict, reason, what it depends on, and source.
#[test]
fn the_recipe_of_2008_is_judged_as_reviewed() {
    let document = judged("6.18.1", &[("recipe", RECIPE)]);
    let line = |l: &model::lint::LintLine| {
        let find_out = match l.find_out.as_str() {
            "" => String::new(),
            text => format!("    find out: {text}\n"),
        };
        format!(
            "{}: {} = {}\n    {}: {}\n{find_out}    source: {}\n",
            l.line, l.setting, l.value, l.verdict, l.why, l.source
        )
    };
    let said: String = document.lines.iter().map(line).collect();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recipe_2008.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &said).unwrap();
    }
    assert_eq!(said, std::fs::read_to_string(golden).unwrap());
}

/// What the golden file must say, whatever its words.
#[test]
fn the_recipe_of_2008_has_the_verdicts_of_the_review() {
    let said = verdicts("6.18.1", "recipe", RECIPE);
    let expected = [
        (1, V::Harmful),
        (2, V::Harmful),
        (3, V::WrongUnit),
        (4, V::Harmful),
        (5, V::Harmful),
        (6, V::BelowDefault),
        (7, V::BelowDefault),
        (8, V::Depends),
        (9, V::Depends),
        (10, V::Depends),
        (11, V::NoEffect),
        (12, V::Harmful),
        (13, V::Dangerous),
        (14, V::Depends),
        (14, V::Good),
        (15, V::Depends),
    ];
    assert_eq!(said, expected);
}

fn each(rows: &[(&str, &str, V)]) {
    for (kernel, text, verdict) in rows {
        let said = verdicts(kernel, "a.conf", &format!("{text}\n"));
        assert_eq!(said, [(1, *verdict)], "{kernel}: {text}");
    }
}

/// Versions and defaults: the table made of kernel sources (`model::sysctl_versions`).
#[test]
fn the_kernel_decides_what_is_there_and_what_it_starts_with() {
    each(&[
        ("6.18.1", "net.core.rmem_max = 1048576", V::BelowDefault),
        ("6.17.1", "net.core.rmem_max = 1048576", V::Depends),
        ("6.17.1", "net.core.rmem_max = 131072", V::BelowDefault),
        ("6.18.1", "net.core.rmem_max = 4194304", V::Good),
        ("6.18.1", "net.ipv4.tcp_rmem = 4096 87380 16777216", V::BelowDefault),
        ("6.1.0", "net.ipv4.tcp_rmem = 4096 131072 16777216", V::Depends),
        ("6.18.1", "net.ipv4.tcp_rmem = 4096 131072 33554432", V::Good),
        ("5.3.0", "net.core.somaxconn = 1024", V::Depends),
        ("5.3.0", "net.core.somaxconn = 128", V::Good),
        ("5.4.0", "net.core.somaxconn = 1024", V::BelowDefault),
        ("6.1.0", "net.core.somaxconn = 4096", V::Good),
        ("6.1.0", "net.core.somaxconn = 0x1000", V::Good),
        ("6.1.0", "vm.swappiness = 60", V::Good),
        ("6.1.0", "fs.aio-max-nr = 1024", V::BelowDefault),
        ("6.1.0", "fs.aio-max-nr = 1048576", V::Depends),
        // Gone, and not yet there.
        ("6.1.0", "net.ipv4.tcp_tw_recycle = 1", V::Gone),
        ("4.18.0", "net.ipv4.tcp_tw_recycle = 1", V::Gone),
        ("3.10.0", "net.ipv4.tcp_tw_recycle = 1", V::Harmful),
        ("6.1.0", "kernel.sched_migration_cost_ns = 5000000", V::Gone),
        ("5.12.0", "kernel.sched_migration_cost_ns = 5000000", V::Unknown),
        ("5.17.0", "net.ipv4.tcp_rx_skb_cache = 1", V::Gone),
        ("5.15.0", "net.ipv4.tcp_rx_skb_cache = 1", V::Unknown),
        ("6.17.0", "net.netfilter.nf_conntrack_dccp_loose = 1", V::Gone),
        ("6.4.0", "net.ipv4.tcp_syn_linear_timeouts = 2", V::NoEffect),
        ("6.5.0", "net.ipv4.tcp_syn_linear_timeouts = 2", V::Unknown),
        ("6.5.0", "net.ipv4.tcp_syn_linear_timeouts = 4", V::Good),
        // A vendor's kernel may have it under an old number.
        ("5.14.0-503.el9.x86_64", "net.ipv4.tcp_syn_linear_timeouts = 2", V::Depends),
        ("5.14.0-503.el9.x86_64", "net.core.rmem_max = 4194304", V::Depends),
        // Kernels that the table does not have.
        ("6.19.0", "net.core.somaxconn = 1024", V::Depends),
        ("3.10.0", "net.core.somaxconn = 1024", V::Depends),
    ]);
}

/// What the kernel does with a value that is no number, too large, or of another length was tried with
/// sysctl(8) in a network namespace of Linux 6.18.
#[test]
fn values_that_the_kernel_does_not_take() {
    each(&[
        ("6.1.0", "net.core.rmem_max = 16M", V::WrongUnit),
        ("6.1.0", "net.ipv4.tcp_fin_timeout = 30s", V::WrongUnit),
        ("6.1.0", "net.ipv4.tcp_sack = yes", V::NoEffect),
        ("6.1.0", "net.ipv4.tcp_sack = 256", V::NoEffect),
        ("6.1.0", "net.ipv4.tcp_sack = 2", V::Unknown),
        ("6.1.0", "net.ipv4.tcp_syn_retries = 200", V::NoEffect),
        ("6.1.0", "net.ipv4.tcp_syn_retries = 127", V::Depends),
        ("6.1.0", "net.core.rmem_max = 1000", V::NoEffect),
        ("6.1.0", "net.netfilter.nf_conntrack_count = 5", V::NoEffect),
        ("6.1.0", "net.ipv4.tcp_rmem = \"4096 131072 16777216\"", V::NoEffect),
        // The first number alone is set; what follows the last one is passed over.
        ("6.1.0", "net.ipv4.tcp_rmem = 16777216", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_rmem = 4096 131072 6291456 4", V::Good),
        ("6.1.0", "net.ipv4.tcp_sack = 0 # not here", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_wmem = 65536 16384 4194304", V::Harmful),
        ("6.1.0", "net.ipv4.ip_local_port_range = 60000 5000", V::NoEffect),
        ("6.1.0", "net.ipv4.ip_local_port_range = 1 65535", V::NoEffect),
        ("6.1.0", "net.ipv4.ip_local_port_range = 1024 65535", V::Depends),
        ("6.1.0", "net.ipv4.ip_local_port_range = 32768 60999", V::Good),
    ]);
}

/// On 24 GiB: the unit is pages.
#[test]
fn memory_decides_on_units() {
    each(&[
        ("6.1.0", "net.ipv4.tcp_mem = 10000000 10000000 10000000", V::WrongUnit),
        ("6.1.0", "net.ipv4.tcp_mem = 786432 1048576 2000000", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_mem = 786432 1048576 1572864", V::Depends),
        ("6.1.0", "net.ipv4.tcp_mem = 1000000 1000000 1000000", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_mem = 8192 87380 174760", V::BelowDefault),
        ("6.1.0", "vm.min_free_kbytes = 512", V::Harmful),
        ("6.1.0", "vm.min_free_kbytes = 8000000", V::Harmful),
        ("6.1.0", "vm.min_free_kbytes = 80000000", V::WrongUnit),
        ("6.1.0", "fs.file-max = 65535", V::Harmful),
        ("6.1.0", "fs.file-max = 2097152", V::BelowDefault),
        ("6.1.0", "fs.file-max = 6815744", V::Depends),
        // A tenth of 24 GiB in KiB is 2,516,582: within 5% it is an estimate as good as another.
        ("6.1.0", "fs.file-max = 2400000", V::Good),
        ("6.1.0", "fs.file-max = 2390000", V::BelowDefault),
        // Pages of 2 MiB: 24 GiB are 12,288 of them.
        ("6.1.0", "vm.nr_hugepages = 12289", V::WrongUnit),
        ("6.1.0", "vm.nr_hugepages = 12288", V::Depends),
        ("6.1.0", "vm.nr_hugepages = 6145", V::Depends),
        ("6.1.0", "vm.nr_hugepages = 6144", V::Unknown),
    ]);
}

/// Rules that hold on every host, with the value beside each that they leave alone.
#[test]
fn harmful_values_and_those_beside_them() {
    each(&[
        ("6.1.0", "net.ipv4.tcp_sack = 0", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_sack = 1", V::Good),
        ("6.1.0", "net.ipv4.vs.conn_reuse_mode = 0", V::Unknown),
        ("6.1.0", "net.core.rmem_max = 4294967295", V::NoEffect),
        ("6.1.0", "net.core.rmem_max = 2147483647", V::Depends),
        ("6.1.0", "net.ipv4.tcp_rmem = 4096 131072 4294967295", V::NoEffect),
        ("6.1.0", "net.ipv4.tcp_congestion_control = reno # x", V::NoEffect),
        ("6.1.0", "net.ipv4.tcp_timestamps = 0", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_timestamps = 2", V::Unknown),
        ("6.1.0", "net.ipv4.tcp_window_scaling = 0", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_moderate_rcvbuf = 0", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_syncookies = 0", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_syncookies = 2", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_syncookies = 1", V::Good),
        ("6.1.0", "net.ipv4.tcp_abort_on_overflow = 1", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_wmem = 10000000 10000000 10000000", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_retries2 = 3", V::Depends),
        ("6.1.0", "net.ipv4.tcp_frto = 0", V::Depends),
        ("6.5.0", "net.ipv4.tcp_adv_win_scale = 2", V::Unknown),
        ("6.6.0", "net.ipv4.tcp_adv_win_scale = 2", V::NoEffect),
        ("6.1.0", "net.nf_conntrack_max = 65536", V::BelowDefault),
        ("6.1.0", "net.ipv4.tcp_retries2 = 8", V::Depends),
        ("6.1.0", "net.ipv4.tcp_max_tw_buckets = 5000", V::BelowDefault),
        ("6.1.0", "net.ipv4.tcp_max_tw_buckets = 2000000", V::Depends),
        ("6.1.0", "net.ipv4.tcp_low_latency = 1", V::NoEffect),
        ("6.1.0", "net.ipv4.udp_wmem_min = 16384", V::NoEffect),
        ("6.1.0", "net.ipv4.route.max_size = 8000000", V::NoEffect),
        ("6.1.0", "net.core.netdev_max_backlog = 300000", V::NoEffect),
        ("6.1.0", "net.core.netdev_max_backlog = 10000", V::Depends),
        ("6.1.0", "net.core.netdev_max_backlog = 100", V::BelowDefault),
        ("6.1.0", "net.core.netdev_budget = 50000", V::Depends),
        ("6.1.0", "net.core.rmem_default = 16777216", V::Depends),
        ("6.1.0", "net.core.rmem_default = 65536", V::BelowDefault),
    ]);
}

/// What Netwright does not know is never judged.
#[test]
fn what_is_unknown_stays_unknown() {
    each(&[
        ("6.1.0", "kernel.randomize_va_space = 0", V::Unknown),
        ("6.1.0", "kernel.core_pattern = |/bin/x", V::Unknown),
        ("6.1.0", "vm.drop_caches = 3", V::Unknown),
        ("6.1.0", "vm.swappiness = 10", V::Unknown),
        ("6.1.0", "vm.dirty_ratio = 40", V::Unknown),
        ("6.1.0", "vm.dirty_background_ratio = 0", V::Unknown),
        ("6.1.0", "net.ipv4.conf.all.rp_filter = 1", V::Unknown),
        ("6.1.0", "net.ipv4.neigh.default.gc_thresh1 = 1024", V::Unknown),
        ("6.1.0", "net.core.unheard_of = 1", V::Unknown),
        // The kernel sets them while it boots: 0 in the source is no default.
        ("6.1.0", "fs.inotify.max_queued_events = 0", V::Unknown),
        ("6.1.0", "kernel.watchdog_thresh = 0", V::Unknown),
        // What the build decides is no state.
        ("6.1.0", "kernel.nmi_watchdog = 0", V::Unknown),
        ("6.1.0", "net.ipv6.conf.all.disable_ipv6 = 1", V::Depends),
        ("6.1.0", "net.ipv4.ip_unprivileged_port_start = 0", V::Depends),
    ]);
}

/// RPS makes packets pass the backlog.
#[test]
fn a_backlog_is_judged_by_the_host() {
    let (mut facts, host) = host("6.18.1");
    let steers = "1".parse().unwrap();
    facts.nics[0].queues[0].rps_cpus = Reading::Known(steers);
    let document = lint(&facts, host, &files_of(&[("a", "net.core.netdev_max_backlog=300000\n")]));
    assert_eq!(document.lines[0].verdict, V::Harmful);
    assert!(document.lines[0].why.starts_with(&facts.nics[0].name));
}

#[test]
fn commands_are_judged_by_what_they_name() {
    for (text, verdict) in [
        ("setpci -d 8086:1a48 e6.b=2e", V::Dangerous),
        ("setpci -s 02:00.0 68.w=5000", V::Dangerous),
        ("setpci -s 02:00.0 0d.b=40", V::Unknown),
        ("setpci -s 02:00.0 CAP_EXP+8.w=5000", V::Depends),
        ("setpci -s 02:00.0 LATENCY_TIMER=b0", V::Unknown),
        ("service irqbalance stop", V::Depends),
        ("systemctl disable irqbalance.service", V::Depends),
        ("systemctl mask irqbalance", V::Depends),
        ("systemctl start irqbalance", V::Unknown),
        ("service tuned stop", V::Unknown),
        ("taskset -acp 0-3 42", V::Depends),
    ] {
        assert_eq!(verdicts("6.1.0", "x.sh", &format!("{text}\n")), [(1, verdict)], "{text}");
    }
}

#[test]
fn the_place_of_a_line_counts() {
    let of = |name: &str, text: &str| verdicts("6.1.0", name, text);
    assert_eq!(
        of("Dockerfile", "FROM x\nRUN sysctl -w net.core.somaxconn=8192\n"),
        [(2, V::NoEffect)]
    );
    let pod = |key: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nspec:\n  securityContext:\n    sysctls:\n    - name: {key}\n      value: \"9000000\"\n"
        )
    };
    assert_eq!(of("pod.yaml", &pod("net.core.rmem_max")), [(6, V::NoEffect)]);
    assert_eq!(of("pod.yaml", &pod("net.core.somaxconn")), [(6, V::Depends)]);
    assert_eq!(of("pod.yaml", &pod("net.ipv4.tcp_fin_timeout")), [(6, V::Depends)]);
    let port = "net.ipv4.ip_unprivileged_port_start";
    let low = pod(port).replace("9000000", "80");
    assert_eq!(of("pod.yaml", &low), [(6, V::Good)]);
    assert_eq!(of("a.conf", &format!("{port} = 80\n")), [(1, V::Depends)]);
    let why = |name: &str, text: &str| judged("6.1.0", &[(name, text)]).lines[0].why.clone();
    assert!(why("pod.yaml", &pod("net.core.somaxconn")).contains("--allowed-unsafe-sysctls"));
    assert!(!why("pod.yaml", &pod("net.ipv4.tcp_fin_timeout")).contains("unsafe"));
    assert!(!why("pod.yaml", &pod("net.ipv4.tcp_slow_start_after_idle")).contains("unsafe"));
    let conntrack = "net.netfilter.nf_conntrack_max = 9000000";
    assert!(why("a.conf", conntrack).contains("module is loaded"));
    assert!(!why("x.sh", &format!("sysctl -w {}", conntrack.replace(' ', ""))).contains("module"));
    assert_eq!(of("Dockerfile", "FROM x\nRUN service irqbalance stop\n"), [(2, V::Unknown)]);
    assert_eq!(of("tuned.conf", "[sysctl]\nnet.core.somaxconn=>2048\n"), [(2, V::NoEffect)]);
    assert_eq!(of("tuned.conf", "[sysctl]\nnet.core.somaxconn=>9000\n"), [(2, V::Depends)]);
    assert_eq!(of("x.sh", "sysctl -w net.core.somaxconn=$N\n"), [(1, V::Unknown)]);
    // Options that are no setting, and a section that is not for every host.
    let section = "[sysctl]\nnet.ipv4.tcp_sack=1\n[sysctl.arm]\ntype=sysctl\nuname_regex=aarch64\n\
                   net.ipv4.tcp_sack=0\n";
    assert_eq!(of("tuned.conf", section), [(2, V::Good), (6, V::Harmful)]);
    let said = judged("6.1.0", &[("tuned.conf", section)]);
    assert!(said.lines[1].why.starts_with("only on hosts"), "{:?}", said.lines[1]);
}

#[test]
fn the_line_that_wins_at_boot_is_seen() {
    let a = ("/usr/lib/sysctl.d/50-a.conf", "net.ipv4.tcp_sack = 0\nnet.core.somaxconn = 9000\n");
    let b = ("/etc/sysctl.d/60-b.conf", "net.ipv4.tcp_sack = 1\n");
    let by = |texts: &[(&str, &str)]| -> Vec<(String, u32, Option<String>)> {
        let all = judged("6.1.0", texts).lines;
        all.into_iter().map(|l| (l.file, l.line, l.overridden_by.map(|p| p.to_string()))).collect()
    };
    for order in [[a, b], [b, a]] {
        let said = by(&order);
        assert_eq!(said[0].2, None, "{said:?}");
        assert_eq!(said[1].2.as_deref(), Some("/etc/sysctl.d/60-b.conf:1"), "{said:?}");
        assert_eq!(said[2].2, None, "{said:?}");
    }
    // Of one name the foremost folder's counts; sysctl.conf comes as 99-sysctl.conf.
    let hidden = by(&[("/etc/sysctl.d/50-a.conf", "net.core.somaxconn = 8000\n"), a]);
    assert_eq!(hidden[1].2.as_deref(), Some("/etc/sysctl.d/50-a.conf:1"), "{hidden:?}");
    let last = by(&[("/etc/sysctl.conf", "net.ipv4.tcp_sack = 0\n"), b]);
    assert_eq!(last[1].2.as_deref(), Some("/etc/sysctl.conf:1"), "{last:?}");
    // What the kernel refuses replaces nothing.
    for refused in ["yes", "99999999999", "\"0\""] {
        let text = format!("net.core.somaxconn = 9000\nnet.core.somaxconn = {refused}\n");
        let said = judged("6.1.0", &[("a.conf", &text)]).lines;
        assert_eq!((&said[0].overridden_by, said[1].verdict), (&None, V::NoEffect), "{said:?}");
    }
    // tuned comes after the files of /usr/lib, and those of /etc come again after it.
    let tuned = ("/x/p/tuned.conf", "[sysctl]\nnet.ipv4.tcp_sack=1\n");
    let said = by(&[a, tuned]);
    assert_eq!(said[0].2.as_deref(), Some("/x/p/tuned.conf:2"), "{said:?}");
    let said = by(&[("/etc/sysctl.d/70.conf", "net.ipv4.tcp_sack = 0\n"), tuned]);
    assert_eq!(said[1].2.as_deref(), Some("/etc/sysctl.d/70.conf:1"), "{said:?}");
}

/// Work is done between two commands, and of two branches one runs.
#[test]
fn an_earlier_command_of_a_script_keeps_its_verdict() {
    let text = "sysctl -w net.ipv4.tcp_sack=0\n./test\nsysctl -w net.ipv4.tcp_sack=1\n";
    let document = judged("6.1.0", &[("x.sh", text)]);
    assert_eq!(document.lines[0].verdict, V::Harmful);
    assert!(document.lines[0].why.ends_with("x.sh:3 sets it to 1 later, if both run"));
    let boot = judged("6.1.0", &[("a.conf", "net.ipv4.tcp_sack=0\nnet.ipv4.tcp_sack=1\n")]);
    assert_eq!(boot.lines[0].verdict, V::NoEffect);
}

#[test]
fn a_circle_of_profiles_is_one_note() {
    let folder = tempfile::tempdir().unwrap();
    for (name, other) in [("a", "b"), ("b", "a")] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        let text = format!("[main]\ninclude={other}\n[sysctl]\nnet.ipv4.tcp_sack=1\n");
        std::fs::write(folder.path().join(name).join("tuned.conf"), text).unwrap();
    }
    let (_folder, root) = root();
    let read = files::read(&root, &[folder.path().join("a/tuned.conf")]).unwrap();
    assert_eq!(read[0].sets.len(), 2);
    assert!(read[0].notes.iter().any(|n| n.ends_with("a -> b -> a")), "{:?}", read[0].notes);
}

#[test]
fn what_is_no_text_is_one_line() {
    let (_folder, root) = root();
    let error = |name: &str, bytes: &[u8]| {
        files::of_bytes(&root, Path::new(name), bytes.to_vec()).unwrap_err().to_string()
    };
    assert_eq!(error("a.conf", b"x=1\ny\0=2\n"), "a.conf: holds no text: line 2 has a NUL");
    assert_eq!(error("a.conf", b"\xff"), "a.conf: holds no text (UTF-8)");
    assert!(error("a.yml", b"a: [").starts_with("a.yml: is no YAML"));
}

proptest! {
    /// A setting that nobody has heard of is never judged.
    #[test]
    fn random_keys_are_unknown(key in "(net|vm|kernel|fs)\\.[a-z]{3,9}\\.zq[a-z_]{3,12}", value in "[0-9]{1,9}") {
        let said = verdicts("6.18.1", "a.conf", &format!("{key} = {value}\n"));
        prop_assert_eq!(said, [(1, V::Unknown)]);
    }

    #[test]
    fn any_text_is_judged_without_panic(text in "([ -~]{0,40}\\n){0,20}", name in "(a.conf|tuned.conf|x.sh|a.yml|Dockerfile|irqbalance)") {
        let (_folder, root) = root();
        if let Ok(file) = files::of_bytes(&root, Path::new(&name), text.into_bytes()) {
            let (facts, host) = host("6.18.1");
            let document = lint(&facts, host, std::slice::from_ref(&file));
            let _ = fix::diff(&document, &[file]);
        }
    }
}
