#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use super::*;

/// A machine of cores in L3s in nodes; CPU n and its sibling are `cores` apart, as on PCs.
fn machine(nodes: u32, l3s: u32, cores_per_l3: u32, threads: u32) -> LocalPlacement {
    let cores = nodes * l3s * cores_per_l3;
    let places = (0..cores * threads)
        .map(|cpu| {
            let core = cpu % cores;
            CpuLocation {
                cpu: CpuId(cpu),
                core: (0..threads).map(|t| CpuId(core + t * cores)).collect(),
                l3: Some(CpuId(core / cores_per_l3 * cores_per_l3)),
                node: Some(NumaNode(core / (l3s * cores_per_l3))),
            }
        })
        .collect::<Vec<_>>();
    let all: CpuSet = places.iter().map(|p| p.cpu).collect();
    LocalPlacement { allowed: all.clone(), online: all, places }
}

/// The same machine, limited to some CPUs.
fn only(mut here: LocalPlacement, allowed: &str) -> LocalPlacement {
    here.allowed = list(allowed);
    here.places.retain(|p| here.allowed.contains(p.cpu));
    here
}

fn list(text: &str) -> CpuSet {
    text.parse().unwrap()
}

static NONE: CpuSet = CpuSet::new();

fn request(role: Role, same_host: bool, threads: u32) -> PlacementRequest<'static> {
    PlacementRequest { role, same_host, partner: &NONE, nic: None, threads, taken: &NONE }
}

fn ids(choice: &Choice) -> Vec<u32> {
    choice.cpus.iter().map(|c| c.0).collect()
}

/// Choices of client and server on one host, each unaware of the other, and of a server that knows
/// the client's.
fn both(here: &LocalPlacement, threads: u32) -> [Choice; 3] {
    let local = choose(here, &request(Role::LocalEnd, true, threads));
    let peer = choose(here, &request(Role::PeerEnd, true, threads));
    let partner: CpuSet = local.cpus.iter().copied().collect();
    let reported = choose(
        here,
        &PlacementRequest { partner: &partner, ..request(Role::PeerEnd, true, threads) },
    );
    [local, peer, reported]
}

#[test]
fn one_cpu_is_for_both_and_said() {
    let [local, peer, reported] = both(&machine(1, 1, 1, 1), 1);
    assert_eq!((ids(&local), ids(&peer), ids(&reported)), (vec![0], vec![0], vec![0]));
    assert_eq!(local.why, "shared with the server: this process may use no other CPU");
    assert!(reported.why.contains("shared with the client"), "{}", reported.why);
}

#[test]
fn two_threads_of_one_core_are_one_for_each_end() {
    let [local, peer, reported] = both(&machine(1, 1, 1, 2), 1);
    assert_eq!((ids(&local), ids(&peer), ids(&reported)), (vec![0], vec![1], vec![1]));
    assert!(local.why.contains("there is no second core"), "{}", local.why);
    assert!(reported.why.contains("on the same core as the client's CPU 0"), "{}", reported.why);
}

#[test]
fn two_cores_of_two_threads_are_a_core_for_each_end() {
    let here = machine(1, 1, 2, 2);
    let [local, peer, reported] = both(&here, 1);
    assert_eq!((ids(&local), ids(&peer), ids(&reported)), (vec![1], vec![0], vec![0]));
    assert!(reported.why.contains("in the L3 of the client's CPU 1"), "{}", reported.why);
}

/// On two cores, 64 threads pinned to one core got half the CPU time that the scheduler gives them.
#[test]
fn more_threads_than_cores_are_left_to_the_scheduler_and_that_is_said() {
    for (here, threads, cores) in [
        (machine(1, 1, 2, 2), 2, "1 core"),
        (machine(1, 1, 2, 1), 64, "1 core"),
        (machine(1, 1, 9, 1), 5, "4 cores"),
    ] {
        for choice in both(&here, threads) {
            assert!(choice.cpus.is_empty());
            let says = format!("not pinned: {threads} threads, and {cores} for them");
            assert!(choice.why.starts_with(&says), "{}", choice.why);
        }
    }
    let alone = machine(1, 1, 4, 2);
    assert_eq!(ids(&choose(&alone, &request(Role::LocalEnd, false, 4))), [1, 2, 3, 0]);
    assert!(choose(&alone, &request(Role::LocalEnd, false, 5)).cpus.is_empty());
    // An explicit request is followed.
    let asked = decide(&Pin::List(list("1")), &alone, &request(Role::LocalEnd, false, 3)).unwrap();
    assert_eq!(ids(&asked), [1, 1, 1]);
}

#[test]
fn two_nodes_keep_both_ends_on_one() {
    let here = machine(2, 1, 4, 1);
    let [local, peer, reported] = both(&here, 2);
    assert_eq!((ids(&local), ids(&peer), ids(&reported)), (vec![1, 2], vec![3, 0], vec![3, 0]));
    assert!(local.why.contains("housekeeping"), "{}", local.why);
    // A single end with more threads than a node has cores uses both nodes before sharing a core.
    let all = choose(&here, &request(Role::LocalEnd, false, 6));
    assert_eq!(ids(&all), [1, 2, 3, 0, 4, 5]);
    assert!(all.why.contains("on 2 nodes"), "{}", all.why);
}

#[test]
fn a_partner_on_the_other_node_is_followed() {
    let here = machine(2, 2, 4, 2);
    let partner = list("13");
    let peer =
        choose(&here, &PlacementRequest { partner: &partner, ..request(Role::PeerEnd, true, 2) });
    assert_eq!(ids(&peer), [12, 14]);
    assert!(peer.why.contains("in the L3 of the client's CPU 13"), "{}", peer.why);
    let outside = list("77");
    let peer =
        choose(&here, &PlacementRequest { partner: &outside, ..request(Role::PeerEnd, true, 1) });
    assert!(peer.why.contains("which this process may not use"), "{}", peer.why);
}

#[test]
fn a_nic_draws_to_its_node_and_off_its_interrupts() {
    let here = machine(2, 2, 4, 2);
    // Node 1 is CPUs 8-15 and 24-31; the interrupts are in its second L3, CPUs 12-15.
    let nic = NicPlace { name: "eth0".into(), node: Some(NumaNode(1)), irq_cpus: list("12-13") };
    let local = PlacementRequest { nic: Some(&nic), ..request(Role::LocalEnd, false, 2) };
    let choice = choose(&here, &local);
    assert_eq!(ids(&choice), [14, 15]);
    assert_eq!(
        choice.why,
        "a core for each thread; on node 1, where eth0 is; eth0 interrupts CPUs 12-13"
    );
    // The sibling of an interrupted CPU is not separate from it.
    let narrow = only(machine(2, 2, 4, 2), "8,28-31");
    assert_eq!(ids(&choose(&narrow, &local)), [30, 31]);
    // All CPUs of the node take interrupts: the choice stays there and says so.
    let everywhere = NicPlace { irq_cpus: list("0-31"), ..nic.clone() };
    let choice = choose(&here, &PlacementRequest { nic: Some(&everywhere), ..local.clone() });
    assert_eq!(ids(&choice), [8, 9]);
    assert!(choice.why.contains("eth0 interrupts CPUs 8-9, too"), "{}", choice.why);
    // The node's CPUs are not allowed.
    let elsewhere = only(machine(2, 2, 4, 2), "0-7");
    let choice = choose(&elsewhere, &local);
    assert_eq!(ids(&choice), [1, 2]);
    assert!(choice.why.contains("not on node 1, where eth0 is"), "{}", choice.why);
    // The NIC carries no traffic between two ends of one host.
    let same = choose(&here, &PlacementRequest { same_host: true, ..local });
    assert!(!same.why.contains("eth0"), "{}", same.why);
}

#[test]
fn a_nic_of_which_little_is_known_decides_nothing() {
    let here = machine(2, 1, 2, 1);
    let nic = NicPlace { name: "eth0".into(), node: None, irq_cpus: CpuSet::new() };
    let choice =
        choose(&here, &PlacementRequest { nic: Some(&nic), ..request(Role::LocalEnd, false, 1) });
    assert_eq!(ids(&choice), [1]);
    assert!(choice.why.contains("interrupts is not known"), "{}", choice.why);
}

#[test]
fn other_sessions_keep_their_cores() {
    let here = machine(1, 1, 4, 2);
    let taken = list("1");
    let peer = PlacementRequest { taken: &taken, ..request(Role::PeerEnd, false, 1) };
    let choice = choose(&here, &peer);
    assert_eq!(ids(&choice), [2], "neither CPU 1 nor, as long as there are others, its core");
    assert!(choice.why.ends_with("not CPU 1, which other sessions use"), "{}", choice.why);
    let taken = list("0-3");
    assert_eq!(ids(&choose(&here, &PlacementRequest { taken: &taken, ..peer.clone() })), [5]);
    let taken = list("0-7");
    let choice = choose(&here, &PlacementRequest { taken: &taken, ..peer });
    assert_eq!(ids(&choice), [1]);
    assert!(choice.why.contains("other sessions use all CPUs"), "{}", choice.why);
}

#[test]
fn what_other_sessions_use_is_not_what_this_process_may_not_use() {
    let here = machine(1, 1, 2, 1);
    let (taken, partner) = (list("1"), list("0"));
    let peer =
        PlacementRequest { taken: &taken, partner: &partner, ..request(Role::PeerEnd, true, 1) };
    let choice = choose(&here, &peer);
    assert_eq!(ids(&choice), [0]);
    assert_eq!(choice.why, "shared with the client's CPU 0; not CPU 1, which other sessions use");
    let alone = choose(&here, &PlacementRequest { partner: &NONE, ..peer });
    assert_eq!(
        alone.why,
        "the only CPU that other sessions leave; not CPU 1, which other sessions use"
    );
}

#[test]
fn holes_in_numbers_and_unknown_places_do_not_matter() {
    let mut here = only(machine(2, 1, 8, 2), "3,9,11,27");
    let [local, peer, reported] = both(&here, 1);
    // 11 and 27 are one core; node 1 has the most cores.
    assert_eq!((ids(&local), ids(&peer), ids(&reported)), (vec![9], vec![11], vec![11]));
    here.places.clear();
    let [local, peer, reported] = both(&here, 1);
    assert_eq!((ids(&local), ids(&peer), ids(&reported)), (vec![3], vec![9], vec![9]));
    assert!(reported.why.contains("client"), "{}", reported.why);
}

#[test]
fn a_thousand_cpus_are_chosen_from_in_a_moment() {
    let here = machine(8, 8, 8, 2);
    assert_eq!(here.allowed.len(), 1024);
    let [local, peer, reported] = both(&here, 4);
    // The L3 of CPU 0 has one core less without housekeeping, but as many cores.
    assert_eq!((ids(&local), ids(&peer)), (vec![1, 2, 3, 4], vec![5, 6, 7, 0]));
    assert_eq!(ids(&reported), ids(&peer));
    let all = choose(&here, &request(Role::LocalEnd, false, 512));
    assert_eq!(all.cpus.iter().collect::<std::collections::BTreeSet<_>>().len(), 512);
}

#[test]
fn a_list_is_taken_as_it_is_and_checked() {
    let mut here = only(machine(1, 1, 4, 2), "0-3");
    here.online = list("0-6");
    let local = request(Role::LocalEnd, false, 3);
    let chosen = decide(&Pin::List(list("1,3")), &here, &local).unwrap();
    assert_eq!((ids(&chosen), chosen.why.as_str()), (vec![1, 3, 1], "asked for"));
    let says = |l: &str| decide(&Pin::List(list(l)), &here, &local).unwrap_err().to_string();
    assert_eq!(says("2,5"), "CPU 5 is not for this process (cpuset or affinity); it may use 0-3");
    assert_eq!(says("7"), "CPU 7 is offline or not there; it may use 0-3");
    assert!(says("").contains("empty"));
    assert_eq!(decide(&Pin::No, &here, &local).unwrap().cpus, []);
    for tool in [Pin::Auto, Pin::Apart] {
        assert_eq!(ids(&decide(&tool, &here, &local).unwrap()), [1, 2, 3]);
    }
}

#[test]
fn this_host_s_choice_can_be_pinned_to() {
    let here = LocalPlacement::read(&Root::live()).unwrap();
    for choice in both(&here, 2) {
        for cpu in choice.cpus {
            drop(pin::Pinned::to(cpu).unwrap());
        }
    }
}

proptest::proptest! {
    #[test]
    fn both_ends_stay_apart_whatever_they_may_use(
        (nodes, l3s, cores, smt) in (1u32..3, 1u32..3, 1u32..5, 1u32..3),
        allowed in proptest::collection::btree_set(0u32..48, 1..20),
        threads in 1u32..9,
    ) {
        let full = machine(nodes, l3s, cores, smt);
        let want: CpuSet = allowed.into_iter().map(CpuId).collect();
        let may = want.intersection(&full.allowed);
        proptest::prop_assume!(!may.is_empty());
        let here = only(full, &may.to_string());
        let [local, peer, reported] = both(&here, threads);
        for c in [&local, &peer, &reported] {
            proptest::prop_assert!([0, threads as usize].contains(&c.cpus.len()));
            proptest::prop_assert!(threads > 1 || !c.cpus.is_empty());
            proptest::prop_assert!(c.cpus.iter().all(|&cpu| may.contains(cpu)));
        }
        if may.len() > 1 {
            for other in [&peer, &reported] {
                proptest::prop_assert!(!local.cpus.iter().any(|c| other.cpus.contains(c)));
            }
        }
    }
}
