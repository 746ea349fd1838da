use std::path::Path;

use probe::{Root, facts};

use super::*;
use crate::spec::parse;

/// A server of 96 CPUs and 8 nodes, without a NIC.
fn epyc() -> Facts {
    let path = format!("{}/../probe/tests/fixtures/epyc-7451.tar.zst", env!("CARGO_MANIFEST_DIR"));
    facts::collect(&Root::open(Path::new(&path)).unwrap(), &facts::Request::default())
}

fn resolved(text: &str) -> Result<Spec, String> {
    let facts = epyc();
    let all: CpuSet = facts.cpus.iter().map(|c| c.id).collect();
    let mut spec = parse(text)?;
    resolve(&mut spec, &facts, &all).map_err(|e| e.to_string())?;
    Ok(spec)
}

const OURS: &str = "workload = \"measure rtt 127.0.0.1 --duration 300ms\"\n";

#[test]
fn classes_become_the_cpus_of_this_host_and_a_matrix_of_what_is_there() {
    let text =
        format!("{OURS}budget = \"10m\"\n[placement]\ncpus = \"classes\"\npeer_cpus = \"1,7\"\n");
    let spec = resolved(&text).unwrap();
    let e = Experiment::check(spec.clone(), "x").unwrap();
    assert_eq!(e.cells.len(), 10, "five classes beside each of two");
    let names: Vec<String> = e.cells.iter().map(|c| c.name(&e.factors)).collect();
    assert!(names.contains(&"cpu 49 (sibling), peer_cpu 1".to_owned()), "{names:?}");
    assert!(names.contains(&"cpu 55 (sibling), peer_cpu 7".to_owned()), "{names:?}");
    let at = names.iter().position(|n| n == "cpu 55 (sibling), peer_cpu 7").unwrap();
    let crate::workload::Workload::Ours(words) = e.cells[at].fill(&e.factors, &e.workload) else {
        panic!()
    };
    let words = words.join(" ");
    assert!(words.ends_with("--cpu 55 --peer-cpu 7"), "{words}");
    let settings = e.cells[at].settings(&e.factors);
    assert_eq!((settings["cpu"].as_str(), settings["class"].as_str()), ("55", "sibling"));
    // A record names all CPUs: resuming chooses nothing anew.
    let kept: Spec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
    assert_eq!(kept, spec);
    assert_eq!(Experiment::check(kept, "x").unwrap().cells, e.cells);
}

#[test]
fn a_cpu_that_is_not_there_or_offline_is_refused_by_its_key() {
    let mut facts = epyc();
    let last = facts.cpus.iter_mut().max_by_key(|c| c.id).unwrap();
    last.online = model::Reading::Known(false);
    let placed = |text: &str| {
        let spec = parse(&format!("{OURS}[placement]\n{text}")).unwrap().placement.unwrap();
        there(&spec, &facts).map_err(|e| e.to_string())
    };
    assert_eq!(placed("cpus = \"0-94\"\npeer_cpus = \"500\""), Ok(()));
    assert_eq!(placed("cpus = \"classes\"\nnic = \"eth0\""), Ok(()));
    let why = placed("cpus = \"0,95\"").unwrap_err();
    assert_eq!(why, "placement.cpus: CPU 95 is offline; online are 0-94");
    let why = placed("cpus = \"0\"\nirq_cpus = \"3,99\"\nnic = \"eth0\"").unwrap_err();
    assert_eq!(why, "placement.irq_cpus: this host has no CPU 99; online are 0-94");
}

#[test]
fn a_command_has_its_cpu_filled_in() {
    let text = "command = \"taskset -c {cpu} w {peer_cpu}\"\nruns = 10000\n\
                [[metric]]\nname = \"t\"\ntime = true\nbetter = \"lower\"\n\
                [placement]\ncpus = \"classes\"\npeer_cpus = \"classes\"\n";
    let e = Experiment::check(resolved(text).unwrap(), "x").unwrap();
    let lines: Vec<_> = e.cells.iter().map(|c| c.fill(&e.factors, &e.workload)).collect();
    assert!(lines.len() >= 10, "{lines:?}");
    for line in lines {
        let crate::workload::Workload::Shell(line) = line else { panic!() };
        assert!(!line.contains('{') && !line.contains('\''), "{line}");
    }
    let unnamed = text.replace("{cpu}", "0");
    let why = Experiment::check(resolved(&unnamed).unwrap(), "x").unwrap_err().to_string();
    assert!(why.contains("must name {cpu}"), "{why}");
}

#[test]
fn the_budget_holds_fewer_and_says_which_and_what_would_hold_all() {
    let text = |budget: &str| {
        format!("{OURS}{budget}\n[placement]\ncpus = \"classes\"\npeer_cpus = \"1,7\"\n")
    };
    // 12 runs of 0.5 s each: 30 s hold five placements.
    let p = resolved(&text("budget = \"30s\"")).unwrap().placement.unwrap();
    assert_eq!(p.assignments.len(), 5);
    assert_eq!(p.peer_cpus.as_deref(), Some("1"), "the farther column goes first");
    let classes: Vec<&str> = p.assignments.iter().map(|s| s.class.as_str()).collect();
    assert_eq!(classes, ["same CPU", "sibling", "same L3", "other L3", "other node"]);
    let said = p.left_out.unwrap().to_string();
    assert!(said.contains("holds 5 of 10 placements, --budget 60s holds all"), "{said}");
    assert!(said.contains("other node (CPU 1) beside 7"), "{said}");
    let p = resolved(&text("runs = 36")).unwrap().placement.unwrap();
    let classes: Vec<&str> = p.assignments.iter().map(|s| s.class.as_str()).collect();
    assert_eq!(classes, ["same CPU", "same L3", "other node"]);
    assert!(p.left_out.unwrap().to_string().contains("--runs 120 holds all"));
    // Two are kept where the budget holds fewer; it is refused later, as for any experiment.
    assert_eq!(resolved(&text("runs = 12")).unwrap().placement.unwrap().assignments.len(), 2);
    assert_eq!(resolved(&text("budget = \"61s\"")).unwrap().placement.unwrap().left_out, None);
}

#[test]
fn each_l3_cache_of_the_node_is_a_row_and_the_later_ones_are_given_up_first() {
    let mut facts = epyc();
    let cpus: CpuSet = facts.cpus.iter().map(|c| c.id).collect();
    // Four of eight caches for the nodes of the first socket, and likewise for the second.
    for cpu in &mut facts.cpus {
        let node = cpu.numa_node.get().map(|n| model::NumaNode(n.0 % 2));
        cpu.numa_node = node.map_or(cpu.numa_node.clone(), model::Reading::Known);
    }
    let assignments = |budget: &str| {
        let text =
            format!("{OURS}{budget}\n[placement]\ncpus = \"classes\"\npeer_cpus = \"1,7\"\n");
        let mut spec = parse(&text).unwrap();
        resolve(&mut spec, &facts, &cpus).unwrap();
        spec.placement.unwrap().assignments
    };
    let all = assignments("runs = 10000");
    let classes: Vec<&str> =
        all.iter().filter(|s| s.beside == "1").map(|s| s.class.as_str()).collect();
    assert_eq!(classes[..5], ["same CPU", "sibling", "same L3", "other L3", "other L3 no. 2"]);
    assert_eq!(classes.len(), 3 + 7 + 1, "{classes:?}");
    let l3 = |cpu: u32| facts.cpus.iter().find(|c| c.id.0 == cpu).unwrap().l3_id.get();
    let caches: std::collections::BTreeSet<_> = all
        .iter()
        .filter(|s| s.beside == "1" && s.class.contains("L3"))
        .map(|s| l3(s.cpu))
        .collect();
    assert_eq!(caches.len(), 8, "each its own");
    // Ten placements: five classes beside each of two columns, without the later caches.
    let few = assignments("runs = 120");
    assert!(few.len() == 10 && few.iter().all(|s| !s.class.contains("no.")), "{few:?}");
    let text =
        format!("{OURS}runs = 10000\n[placement]\ncpus = \"classes\"\npeer_cpus = \"1,7\"\n");
    let mut spec = parse(&text).unwrap();
    resolve(&mut spec, &facts, &cpus).unwrap();
    assert_eq!(Experiment::check(spec, "x").unwrap().cells.len(), all.len());
}

#[test]
fn what_cannot_be_placed_is_refused_by_its_key() {
    for (placement, why) in [
        ("cpus = \"classes\"", "placement.cpus = \"classes\": to what?"),
        ("cpus = \"classes\"\nnic = \"eth7\"", "placement.nic: no such interface: eth7"),
        ("cpus = \"classes\"\npeer_cpus = \"4000\"", "this host has no CPU 4000"),
        ("cpus = \"classes\"\npeer_cpus = \"x\"", "placement.peer_cpus"),
    ] {
        let said = resolved(&format!("{OURS}[placement]\n{placement}\n")).unwrap_err();
        assert!(said.contains(why), "{placement} says: {said}");
        assert_eq!(said.lines().count(), 1);
    }
    for (placement, why) in [
        ("cpus = \"0-1\"\nirq_cpus = \"0\"", "nic = \"eth0\" is missing"),
        ("cpus = \"0\"\nirq_cpus = \"0\"\npeer_cpus = \"1\"", "peer_cpus and irq_cpus"),
        ("cpus = \"0\"\nnic = \"e\"\npeer_cpus = \"1\"", "peer_cpus and nic"),
        ("cpus = \"classes\"\npeer_cpus = \"1\"", "chosen on the host"),
        ("cpus = \"3\"", "cannot be compared with itself"),
    ] {
        let spec = parse(&format!("{OURS}[placement]\n{placement}\n")).unwrap();
        let said = Experiment::check(spec, "x").unwrap_err().to_string();
        assert!(said.contains(why), "{placement} says: {said}");
    }
}

#[test]
fn interrupts_are_placed_by_the_knob_that_tune_has() {
    let text = format!("{OURS}[placement]\ncpus = \"0-1\"\nirq_cpus = \"0-1\"\nnic = \"eth0\"\n");
    let e = Experiment::check(parse(&text).unwrap(), "x").unwrap();
    let change_requests = e.change_requests();
    assert_eq!(change_requests.len(), 4);
    let one: Vec<String> =
        change_requests[1].iter().map(|w| format!("{}={}", w.knob, w.value)).collect();
    assert_eq!(one, ["irq.affinity=1:eth0"]);
    assert_eq!(e.cells[1].name(&e.factors), "cpu 0, irq_cpu 1");
}

/// A guest of 64 CPUs and 4 nodes, its NIC of 8 queues on node 2.
#[test]
fn the_interrupts_of_a_nic_have_a_column_for_its_node_and_one_for_another() {
    let path = format!("{}/../netwright/tests/captured/large.tar.zst", env!("CARGO_MANIFEST_DIR"));
    let facts = facts::collect(&Root::open(Path::new(&path)).unwrap(), &Default::default());
    let all: CpuSet = facts.cpus.iter().map(|c| c.id).collect();
    let resolved = |irq_cpus: &str| {
        let text = format!(
            "{OURS}runs = 10000\n[placement]\ncpus = \"classes\"\nnic = \"eth0\"\n{irq_cpus}\n"
        );
        let mut spec = parse(&text).unwrap();
        resolve(&mut spec, &facts, &all).unwrap();
        spec
    };
    let spec = resolved("irq_cpus = \"classes\"");
    let p = spec.placement.clone().unwrap();
    let node = |cpu: &str| {
        let cpu: u32 = cpu.parse().unwrap();
        facts.cpus.iter().find(|c| c.id.0 == cpu).unwrap().numa_node.get().unwrap().0
    };
    let columns: Vec<u32> = p.irq_cpus.unwrap().split(',').map(node).collect();
    assert_eq!(columns[0], 2, "the NIC's node first");
    assert!(columns.len() > 1 && !columns[1..].contains(&2), "{columns:?}");
    assert!(p.beside[0].contains("on the NIC's node"), "{:?}", p.beside);
    let e = Experiment::check(spec, "x").unwrap();
    let assignments = e.cells.iter().zip(e.change_requests());
    for (cell, change_requests) in assignments {
        let settings = cell.settings(&e.factors);
        assert_eq!(change_requests[0].value, format!("{}:eth0", settings["irq_cpu"]));
        let same = node(&settings["cpu"]) == node(&settings["irq_cpu"]);
        assert_eq!(same, !settings["class"].ends_with("node") || settings["class"] == "same node");
    }
    // Interrupts stay where they are: one column, and classes are relative to all their CPUs.
    let e = Experiment::check(resolved(""), "x").unwrap();
    assert!(
        e.change_requests().iter().all(Vec::is_empty) && e.factors.len() == 1,
        "{:?}",
        e.factors
    );
}
