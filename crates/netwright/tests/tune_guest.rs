//! `tune` in a guest with a NIC of four queues: interrupts, rings, channels, threaded NAPI,
//! settings of the whole host, and the guard. One guest serves all, for a boot is dear.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use lab::{server::ServerSpec, testing::TestLab};
use support::{NETWRIGHT, needs_root};

#[test]
fn what_no_namespace_has_is_changed_and_undone_exactly() {
    needs_root();
    let lab = TestLab::server(&ServerSpec::new(NETWRIGHT)).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guest/tune.sh");
    let argv = ["timeout", "280", "bash", script, NETWRIGHT];
    let out = lab.output_within("server", &argv, Duration::from_secs(290)).unwrap();
    let (said, told) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.code, 0, "{said}{told}");
    let lines: Vec<&str> = said.lines().collect();
    let (changes, facts): (Vec<&str>, Vec<&str>) = lines.iter().partition(|l| l.contains('|'));
    assert_eq!(changes.len(), 2, "{said}{told}");
    for line in changes {
        // Applied, rolled back, another host in between, the same afterwards.
        assert!(line.ends_with("|0|0|differs|same"), "{line}\n{told}");
    }
    let seen = [
        "interrupts on CPU 2: 4", // by the policy
        "interrupts on CPU 3: 4",
        "fq: 4", // one at each queue
        "group: 3 1 0::/netwright-N",
    ];
    assert_eq!(facts[..4], seen, "{said}{told}");
    // What irqbalance does is its own business; what it did is told.
    let held = [
        "irqbalance: 0, banned 0, other stays, status 0",
        "irqbalance: 0, banned 0, other moved, status 1, irqbalance",
    ];
    assert!(held.contains(&facts[4]), "{said}{told}");
}
