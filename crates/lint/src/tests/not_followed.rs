//! What may set something and is not followed: it is named, and counted.

use model::lint::LineVerdict as V;

use super::{files_of, host, judged, verdicts};
use crate::lint;

fn named(file: &str, text: &str) -> Vec<(u32, String)> {
    let document = judged("6.18.0", &[(file, text)]);
    assert!(document.not_followed.iter().all(|n| n.file == file));
    document.not_followed.into_iter().map(|n| (n.line, n.what)).collect()
}

#[test]
fn commands_of_a_script_that_are_not_followed_are_named() {
    let text = "#!/bin/sh\nsysctl -w net.ipv4.tcp_sack=0\ntuned-adm profile network-latency\n\
        ssh db1 sysctl -w net.ipv4.tcp_sack=0\n\
        for q in /sys/class/net/*/queues/rx-*/rps_cpus; do echo f > $q; done\n";
    let found = named("x.sh", text);
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), [3, 4, 5]);
    assert!(found[0].1.contains("profile of tuned network-latency"), "{found:?}");
    assert_eq!(verdicts("6.18.0", "x.sh", text), [(2, V::Harmful)]);
}

#[test]
fn the_start_of_a_container_and_the_text_of_a_config_map_are_named() {
    let found = named("Dockerfile", "FROM a\nCMD sysctl -w net.core.somaxconn=9\nRUN true\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].0 == 2 && found[0].1.contains("net.core.somaxconn"), "{found:?}");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  tune.sh: |\n    sysctl -w net.core.somaxconn=9\n  readme: text\n";
    let found = named("map.yaml", map);
    assert_eq!(found, [(6, "the text tune.sh of a ConfigMap, whose reader is not known".into())]);
}

/// A patch of a pod names no image; its commands count all the same.
#[test]
fn a_container_without_an_image_is_judged() {
    let patch = "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      initContainers:\n      - name: tune\n        command: [sh, -c, \"sysctl -w net.ipv4.tcp_sack=0\"]\n";
    let found = verdicts("6.18.0", "patch.yaml", patch);
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), [8], "{found:?}");
}

#[test]
fn one_host_has_one_verdict_on_its_governors() {
    let text = "cpupower frequency-set -g performance\n\
        echo performance > /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\n";
    let (mut facts, about) = host("6.18.0");
    let reason = || model::Reading::absent("no cpufreq");
    facts.cpus.iter_mut().for_each(|c| c.frequency.governor = reason());
    assert!(!facts.cpus.is_empty());
    let document = lint(&facts, about, &files_of(&[("x.sh", text)]));
    let found: Vec<V> = document.lines.iter().map(|l| l.verdict).collect();
    assert_eq!(found, [V::NoEffect, V::NoEffect]);
}

#[test]
fn a_kernel_beyond_the_table_is_a_note() {
    let notes = |kernel| judged(kernel, &[("x.conf", "net.ipv4.tcp_sack = 0\n")]).notes;
    for inside in ["4.18.0", "6.18.44"] {
        assert_eq!(notes(inside), Vec::<String>::new(), "{inside}");
    }
    for beyond in ["3.10.0", "7.1.0"] {
        let said = notes(beyond).join("; ");
        assert!(said.contains("Linux 4.18 to 6.18") && said.contains(&beyond[..3]), "{said}");
    }
}
