#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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

fn files_of(texts: &[(&str, &str)]) -> Vec<files::ReadFile> {
    let root = Root::read_archive(&[0; 1024][..], &probe::root::Limits::default()).unwrap();
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

#[test]
fn the_recipe_of_2008_on_a_new_kernel() {
    let said = verdicts("6.18.1", "recipe", RECIPE);
    let expected = [
        (1, V::Harmful),
        (2, V::Harmful),
        (3, V::WrongUnit),
        (4, V::Harmful),
        (5, V::Harmful),
        (6, V::BelowDefault),
        (7, V::BelowDefault),
        (8, V::NoEffect),
        (9, V::NoEffect),
        (10, V::NoEffect),
        (11, V::Harmful),
        (12, V::BelowDefault),
        (13, V::Dangerous),
        (14, V::Depends),
        (14, V::Depends),
        (15, V::Harmful),
    ];
    // No interface eth1 on this host: its queue length is not compared.
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for (said, expected) in said.iter().zip(expected).filter(|(s, _)| s.0 != 14) {
        assert_eq!(*said, expected);
    }
}

#[test]
fn the_kernel_decides() {
    for (kernel, text, verdict) in [
        ("6.18.1", "net.core.rmem_max = 1048576", V::BelowDefault),
        ("6.1.0", "net.core.rmem_max = 1048576", V::Depends),
        ("6.18.1", "net.ipv4.tcp_rmem = 4096 87380 16777216", V::BelowDefault),
        ("6.1.0", "net.ipv4.tcp_rmem = 4096 131072 16777216", V::Depends),
        ("5.3.0", "net.core.somaxconn = 1024", V::Depends),
        ("5.10.0", "net.core.somaxconn = 1024", V::BelowDefault),
        ("6.1.0", "net.ipv4.tcp_tw_recycle = 1", V::Gone),
        ("6.1.0", "kernel.sched_migration_cost_ns = 5000000", V::Gone),
        ("6.1.0", "net.core.somaxconn = 4096", V::Good),
        ("6.1.0", "net.core.somaxconn = 0x1000", V::Good),
        ("6.1.0", "net.core.rmem_max = 16M", V::WrongUnit),
        ("6.1.0", "net.ipv4.tcp_sack = yes", V::NoEffect),
        ("6.1.0", "net.ipv4.tcp_syn_retries = 200", V::NoEffect),
        ("6.1.0", "net.ipv4.tcp_rmem = 16777216", V::Harmful),
        ("6.1.0", "net.ipv4.tcp_rmem = 1 2 3 4", V::Unknown),
        ("6.1.0", "net.ipv4.ip_unprivileged_port_start = 0", V::Dangerous),
        ("6.1.0", "kernel.randomize_va_space = 2", V::Unknown),
        ("6.1.0", "vm.swappiness = 10", V::Unknown),
        ("6.1.0", "net.ipv6.conf.all.disable_ipv6 = 1", V::Depends),
        ("6.1.0", "net.core.unheard_of = 1", V::Unknown),
    ] {
        let said = verdicts(kernel, "a.conf", &format!("{text}\n"));
        assert_eq!(said, [(1, verdict)], "{kernel}: {text}");
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
    assert_eq!(of("tuned.conf", "[sysctl]\nnet.core.somaxconn=>2048\n"), [(2, V::NoEffect)]);
    assert_eq!(of("tuned.conf", "[sysctl]\nnet.core.somaxconn=>9000\n"), [(2, V::Depends)]);
    assert_eq!(of("x.sh", "sysctl -w net.core.somaxconn=$N\n"), [(1, V::Unknown)]);
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
    // tuned comes after the files of /usr/lib, and those of /etc come again after it.
    let tuned = ("/x/p/tuned.conf", "[sysctl]\nnet.ipv4.tcp_sack=1\n");
    let said = by(&[a, tuned]);
    assert_eq!(said[0].2.as_deref(), Some("/x/p/tuned.conf:2"), "{said:?}");
    let said = by(&[("/etc/sysctl.d/70.conf", "net.ipv4.tcp_sack = 0\n"), tuned]);
    assert_eq!(said[1].2.as_deref(), Some("/etc/sysctl.d/70.conf:1"), "{said:?}");
}

#[test]
fn a_circle_of_profiles_is_one_note() {
    let folder = tempfile::tempdir().unwrap();
    for (name, other) in [("a", "b"), ("b", "a")] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        let text = format!("[main]\ninclude={other}\n[sysctl]\nnet.ipv4.tcp_sack=1\n");
        std::fs::write(folder.path().join(name).join("tuned.conf"), text).unwrap();
    }
    let root = Root::read_archive(&[0; 1024][..], &probe::root::Limits::default()).unwrap();
    let read = files::read(&root, &[folder.path().join("a/tuned.conf")]).unwrap();
    assert_eq!(read[0].sets.len(), 2);
    assert!(read[0].notes.iter().any(|n| n.ends_with("a -> b -> a")), "{:?}", read[0].notes);
}

#[test]
fn what_is_no_text_is_one_line() {
    let root = Root::read_archive(&[0; 1024][..], &probe::root::Limits::default()).unwrap();
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
        let root = Root::read_archive(&[0; 1024][..], &probe::root::Limits::default()).unwrap();
        if let Ok(file) = files::of_bytes(&root, Path::new(&name), text.into_bytes()) {
            let (facts, host) = host("6.18.1");
            let document = lint(&facts, host, std::slice::from_ref(&file));
            let _ = fix::diff(&document, &[file]);
        }
    }
}
