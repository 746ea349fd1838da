//! Tests in a guest with a clock that counts instructions: measurements inside match known truths
//! closely, however busy this machine is.

use std::time::Duration;

use crate::support::{NETWRIGHT, needs_root};
use lab::{server::ServerSpec, testing::TestLab};
use serde_json::Value;

/// The requests, and both ends of a link of 270 µs each way inside. (With 250 µs, six round trips
/// last as long as a tick of the guest's kernel, which then hits every sixth service, or none.) The
/// program is in the guest's memory, as waiting for this machine's disk takes no instructions.
const SCRIPT: &str = r#"
set -e
export NETWRIGHT_SECRET="the test's own secret"
cp "$1" /run/netwright-here; n=/run/netwright-here
busybox modprobe veth; busybox modprobe sch_netem
$n lab up pair --queues 1 --delay 270us --quiet
(exec $n lab exec pair/right -- $n serve --bind 10.99.0.2 --quiet --service-time 100us) >/dev/null 2>&1 &
tries=0
until $n lab exec pair/left -- $n measure rtt 10.99.0.2 --duration 10ms --quiet >/dev/null; do
    tries=$((tries + 1)); [ $tries -lt 50 ]; sleep 0.1
done
$n lab exec pair/left -- $n measure rtt 10.99.0.2 --duration 500ms --json --quiet
echo
$n lab exec pair/left -- $n explain rtt://10.99.0.2 --flows 1 --duration 1500ms --round 400ms --json --quiet || [ $? = 1 ]
"#;

#[test]
fn what_is_injected_is_found_whatever_else_this_machine_does() {
    needs_root();
    let spec = ServerSpec {
        cpus: 1,
        nodes: 1,
        nic_node: 0,
        queues: 1,
        virtual_time: true,
        patience: Duration::from_secs(240),
        ..ServerSpec::new(NETWRIGHT)
    };
    let lab = TestLab::server(&spec).unwrap();
    let argv = ["sh", "-c", SCRIPT, "sh", NETWRIGHT];
    let out = lab.output_within("server", &argv, Duration::from_secs(400)).unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.code, 0, "{said}\n{}", String::from_utf8_lossy(&out.stderr));
    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&said).into_iter().map(Result::unwrap).collect();
    let [rtt, explain] = &documents[..] else { panic!("{said}") };

    // Two ways of 270 µs and 100 µs of service; the rest is the two hosts' stacks.
    let p50 = rtt.pointer("/runs/0/rtt_ns/p50").and_then(Value::as_f64).unwrap();
    assert!((640e3..740e3).contains(&p50), "{p50} ns of 640 µs and the stack");

    // The goal for a service time: 3% or 2 µs. Most spins take exactly 100 µs. The mean includes
    // the kernel's ticks, which fall into every sixth spin or into none.
    let number = |path: &str| explain.pointer(path).and_then(Value::as_f64).unwrap();
    let (spun, found) = (number("/injected_service_ns"), number("/typical/service_ns"));
    assert!((100e3..110e3).contains(&spun), "the server spun {spun} ns of 100 µs");
    let truth: f64 = 100e3;
    let off = (found - truth).abs();
    assert!(
        off <= 2e3 || off <= truth * 0.03,
        "service {found} ns, {truth} ns is the truth: {explain:#}"
    );
}
