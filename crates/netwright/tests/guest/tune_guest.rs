//! Tests of `tune` in a guest with NICs of three drivers: interrupts, rings, channels, threaded
//! NAPI, receive hashing, coalescing, pause, PCI Express, host settings, the watchdog, the real
//! irqbalance, and bond members. All share one guest, as booting is slow.

use std::time::Duration;

use crate::support::{NETWRIGHT, needs_root};
use lab::{
    server::{NicModel, ServerSpec},
    testing::TestLab,
};

#[test]
fn what_no_namespace_has_is_changed_and_undone_exactly() {
    needs_root();
    let models = vec![NicModel::VirtioRss, NicModel::Vmxnet3, NicModel::E1000e];
    let spec = ServerSpec { nics: 4, models, ..ServerSpec::new(NETWRIGHT) };
    let lab = TestLab::server(&spec).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guest/tune.sh");
    let argv = ["timeout", "600", "bash", script, NETWRIGHT];
    let out = lab.output_within("server", &argv, Duration::from_secs(610)).unwrap();
    let (said, reported) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.code, 0, "{said}{reported}");
    let lines: Vec<&str> = said.lines().collect();
    let (changes, facts): (Vec<&str>, Vec<&str>) = lines.iter().partition(|l| l.contains('|'));
    assert_eq!(changes.len(), 4, "{said}{reported}");
    for line in changes {
        // Applied, rolled back, and as before; in between the host has changed.
        assert!(line.ends_with("|0|0|differs|same"), "{line}\n{reported}");
    }
    let key = format!("key: {}", ["6d:5a"; 20].join(":"));
    let seen = [
        "interrupts on CPU 2: 4", // by the policy
        "interrupts on CPU 3: 4",
        "fq: 4", // one at each queue
        "group: 3 1 0::/netwright-N",
        "one value: vm/dirty_bytes:268435456 vm/dirty_ratio:0 fs/inotify/max_user_watches:70000 \
         user/max_inotify_watches:70000",
        "huge pages: [never], reserve moved",
        "table: 0: 0 1 0 1 0 1 0 1 120: 0 1 0 1 0 1 0 1",
        &key,
        "fields: TCP over IPV4 flows use these fields for computing Hash flow key: IP SA IP DA",
        "hashing: receive-hashing: on receive-hashing: off",
        "vmxnet3: 8: 2 0 1 2 0 1 2 0 RX: 512 large-receive-offload: off",
        "e1000e: Autonegotiate: off RX: off TX: on rx-usecs: 50 TX: 512",
        "read request: read_request  128  512 bytes  drops connections  field, setpci 0000",
        "clamped: 4, 512 was written and the kernel made 128 of it",
    ];
    assert_eq!(facts[..seen.len()], seen, "{said}{reported}");
    let facts = &facts[seen.len()..];
    // irqbalance's decisions are its own; they are reported.
    let held = [
        "irqbalance: 0, banned 0, other stays, status 0",
        "irqbalance: 0, banned 0, other moved, status 1, irqbalance",
    ];
    assert!(held.contains(&facts[0]), "{said}{reported}");
    let later = [
        "banned CPUs: 0, 0-1, 0, none",
        "paused: 0, 0, S", // a question that nobody waited for would have ended it
        "no service manager runs this irqbalance",
        "kept: 0, 8192 1400 500 20000 TX: 512 rx-usecs: 50",
        "no longer kept: 0, as before",
    ];
    assert_eq!(facts[1..], later, "{said}{reported}");
    members_of_a_bond(&lab);
}

/// Two e1000e, with links that stay down for seconds.
fn members_of_a_bond(lab: &TestLab) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guest/bond.sh");
    let argv = ["timeout", "240", "bash", script, NETWRIGHT];
    let out = lab.output_within("server", &argv, Duration::from_secs(250)).unwrap();
    let (said, reported) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let seen = [
        // The one in use is the last.
        "bond: 0, 1024 1024, turns eth3 eth2, resets 1 1, left 0",
        "bond back: 0, as before, left 0",
        "no way back: 4, its link did not come back into bond9: eth2 has no link after 5 s, \
         as before, left 0",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), seen, "{reported}");
}
