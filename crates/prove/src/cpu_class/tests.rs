use std::collections::BTreeSet;

use model::{Facts, Reading, cpu::CpuFrequency};
use probe::{Root, facts};

use super::*;

/// The class of a CPU, by the rule that generated the host.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Truth {
    node: u32,
    l3: u32,
    core: u32,
}

fn cpu(id: u32, t: Truth, siblings: CpuSet, first_of_l3: u32) -> Cpu {
    fn no<T>() -> Reading<T> {
        Reading::Absent("made up".into())
    }
    Cpu {
        id: CpuId(id),
        online: Reading::Known(true),
        isolated: Reading::Known(false),
        nohz_full: Reading::Known(false),
        core_id: no(),
        cluster_id: no(),
        die_id: no(),
        package_id: no(),
        numa_node: Reading::Known(NumaNode(t.node)),
        l3_id: Reading::Known(CpuId(first_of_l3)),
        smt_siblings: Reading::Known(siblings),
        cluster_cpus: no(),
        capacity: no(),
        frequency: CpuFrequency {
            governor: no(),
            driver: no(),
            current_khz: no(),
            min_khz: no(),
            max_khz: no(),
            hardware_max_khz: no(),
            energy_preference: no(),
        },
        core_throttle_count: no(),
        package_throttle_count: no(),
    }
}

/// A host of nodes, L3s, cores and threads (siblings numbered last), without some of its CPUs.
fn host(
    [nodes, l3s, cores, threads]: [u32; 4],
    hole: impl Fn(u32) -> bool,
) -> (Vec<Cpu>, Vec<Truth>) {
    let all = nodes * l3s * cores;
    let truth = |id: u32| {
        let core = id % all;
        Truth { core, l3: core / cores, node: core / (cores * l3s) }
    };
    let there: Vec<u32> = (0..all * threads).filter(|id| !hole(*id)).collect();
    let make = |&id: &u32| {
        let t = truth(id);
        let same =
            |of: fn(&Truth) -> u32| there.iter().copied().filter(move |o| of(&truth(*o)) == of(&t));
        let siblings = same(|t| t.core).map(CpuId).collect();
        cpu(id, t, siblings, same(|t| t.l3).next().unwrap())
    };
    (there.iter().map(make).collect(), there.iter().map(|id| truth(*id)).collect())
}

fn expected(of: (u32, Truth), to: (u32, Truth)) -> CpuClass {
    match () {
        () if of.0 == to.0 => CpuClass::SameCpu,
        () if of.1.core == to.1.core => CpuClass::Sibling,
        () if of.1.l3 == to.1.l3 => CpuClass::SameL3,
        () if of.1.node == to.1.node => CpuClass::OtherL3,
        () => CpuClass::OtherNode,
    }
}

fn every(cpus: &[Cpu]) -> CpuSet {
    cpus.iter().map(|c| c.id).collect()
}

#[test]
fn each_class_that_a_host_has_is_stood_for_and_no_other() {
    let none = |_| false;
    let odd = |id: u32| id % 7 == 3 || (40..60).contains(&id);
    type MachineCase = ([u32; 4], fn(u32) -> bool, usize);
    let shapes: [MachineCase; 8] = [
        ([1, 1, 1, 1], none, 1),
        ([1, 1, 2, 1], none, 2),
        ([1, 1, 4, 2], none, 3),
        ([1, 2, 4, 2], none, 4),
        ([2, 2, 4, 2], none, 5),
        ([4, 2, 8, 2], odd, 5),
        ([4, 8, 16, 2], none, 5),
        ([4, 8, 16, 2], odd, 5),
    ];
    for (shape, hole, most) in shapes {
        let (cpus, truth) = host(shape, hole);
        let classifier = CpuClassifier::new(&cpus, &[], &every(&cpus));
        for at in [0, cpus.len() / 3, cpus.len() - 1] {
            let to = (cpus[at].id.0, truth[at]);
            let each = || cpus.iter().zip(&truth).map(|(c, t)| expected((c.id.0, *t), to));
            let wanted: BTreeSet<CpuClass> = each().collect();
            let found = classifier.classes(&CpuSet::from_iter([cpus[at].id]));
            let classes: BTreeSet<CpuClass> = found.iter().map(|f| f.0).collect();
            assert_eq!(classes, wanted, "{shape:?} beside {}", to.0);
            let caches = |of: &dyn Fn(&CpuId) -> bool| -> BTreeSet<u32> {
                let there = cpus.iter().zip(&truth).filter(|(c, _)| of(&c.id));
                let away = there.filter(|(c, t)| expected((c.id.0, **t), to) == CpuClass::OtherL3);
                away.map(|(_, t)| t.l3).collect()
            };
            let stood_for = caches(&|id| found.iter().any(|(_, c)| c == id));
            assert_eq!(stood_for, caches(&|_| true), "each L3 of the node: {found:?}");
            let more = stood_for.len().saturating_sub(1);
            assert_eq!(found.len(), classes.len() + more, "one for each: {found:?}");
            assert!(classes.len() <= most, "{shape:?}");
            assert!(found.is_sorted(), "closest first: {found:?}");
            for (class, cpu) in found {
                let it = cpus.iter().position(|c| c.id == cpu).unwrap();
                assert_eq!(expected((cpu.0, truth[it]), to), class, "{shape:?}: {cpu} to {}", to.0);
            }
        }
    }
}

#[test]
fn nobody_is_placed_where_the_house_is_kept_or_nobody_may_run() {
    let (mut cpus, _) = host([2, 1, 4, 2], |_| false);
    let classifier = |cpus: &[Cpu]| {
        CpuClassifier::new(cpus, &[], &every(cpus)).classes(&CpuSet::from_iter([CpuId(1)]))
    };
    let as_said = |of: Vec<(CpuClass, CpuId)>| of.into_iter().map(|(_, c)| c.0).collect::<Vec<_>>();
    // Cores 0-3 with siblings 8-11 on node 0, 4-7 with 12-15 on node 1.
    assert_eq!(as_said(classifier(&cpus)), [1, 9, 2, 4], "not CPU 0 under the same L3");
    cpus[2].online = Reading::Known(false);
    cpus[3].isolated = Reading::Known(true);
    cpus[4].nohz_full = Reading::Known(true);
    assert_eq!(as_said(classifier(&cpus)), [1, 9, 10, 5]);
    let only = CpuSet::from_iter([CpuId(0), CpuId(1)]);
    let few = CpuClassifier::new(&cpus, &[], &only).classes(&CpuSet::from_iter([CpuId(1)]));
    assert_eq!(as_said(few), [1, 0], "CPU 0 where there is no other");
    // An interrupt on several CPUs counts as on the closest.
    let two = CpuClassifier::new(&cpus, &[], &every(&cpus)).classes(&"1,5".parse().unwrap());
    assert_eq!(as_said(two), [1, 9, 6], "both nodes are home");
}

fn real(name: &str) -> Facts {
    let path = format!("{}/../probe/tests/fixtures/{name}.tar.zst", env!("CARGO_MANIFEST_DIR"));
    let root = Root::open(path.as_ref()).unwrap_or_else(|e| panic!("{e}"));
    facts::collect(&root, &facts::Request::default())
}

/// The classes on real machines, each relative to one of their CPUs.
#[test]
fn classes_of_real_machines() {
    use CpuClass::{FarthestNode, OtherL3, OtherNode, SameCpu, SameL3, SameNode, Sibling};
    let cases: [(&str, u32, &[CpuClass]); 9] = [
        // 4 nodes at 16, 25, 32 and 33.
        ("kunpeng-920-128", 40, &[SameCpu, SameL3, OtherNode, FarthestNode]),
        ("xeon-silver-4108", 3, &[SameCpu, Sibling, SameL3, OtherNode]),
        ("xeon-e7-4870", 7, &[SameCpu, SameL3, OtherNode]),
        ("opteron-48-sparse", 5, &[SameCpu, SameL3, OtherNode, FarthestNode]),
        // Two L3s on each of 8 nodes, without reported distances.
        ("epyc-7451", 1, &[SameCpu, Sibling, SameL3, OtherL3, OtherNode]),
        // The CPUs of one package belong to no node; those of the other do.
        ("xeon-e5v3-cpu0-offline", 9, &[SameCpu, SameL3, OtherNode]),
        // Neither L3 nor node: only another core is known.
        ("s390x-20", 4, &[SameCpu, SameNode]),
        ("xeon-e5345-uneven-caches", 2, &[SameCpu, SameNode]),
        ("powermac-qemu-1", 0, &[SameCpu]),
    ];
    for (name, beside, classes) in cases {
        let facts = real(name);
        let all = every(&facts.cpus);
        let classifier = CpuClassifier::new(&facts.cpus, &facts.numa_nodes, &all);
        let found = classifier.classes(&CpuSet::from_iter([CpuId(beside)]));
        let reported: Vec<CpuClass> = found.iter().map(|f| f.0).collect();
        assert_eq!(reported, classes, "{name} beside {beside}: {found:?}");
    }
}

#[test]
fn the_other_dimension_is_by_node() {
    let facts = real("kunpeng-920-128");
    let classifier = CpuClassifier::new(&facts.cpus, &facts.numa_nodes, &every(&facts.cpus));
    let homes = |node, now: &str| {
        let found = classifier.homes(node, &now.parse().unwrap_or_default());
        found.into_iter().map(|(_, c)| c.0 / 32).collect::<Vec<_>>()
    };
    assert_eq!(homes(Some(NumaNode(2)), ""), [2, 3, 0], "a NIC's, the nearest, the farthest");
    assert_eq!(homes(None, "97"), [3, 2, 0], "where its interrupts are");
    assert_eq!(homes(Some(NumaNode(9)), "")[0], 0, "a node without CPUs is nobody's");
    let stays = classifier.homes(Some(NumaNode(1)), &"33,40".parse().unwrap());
    assert_eq!(stays[0].1, CpuId(33), "an interrupt that is there stays there");
}
