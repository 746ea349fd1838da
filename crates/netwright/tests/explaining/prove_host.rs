//! Tests of `netwright prove` and the host around its runs. Counters that a change is known to
//! affect are named. A disturbed run is detected, reported and repeated.

use std::{fs, path::Path, process::Command};

use crate::support::{NETWRIGHT, looks::in_most_looks};
use serde_json::Value;

/// An A/B experiment over a command that prints `x = …`.
fn experiment(folder: &Path, command: &str, levels: &str, runs: usize) {
    fs::write(
        folder.join("e.toml"),
        format!(
            "command = '''{command}'''\nruns = {runs}\n[[factor]]\nname = \"level\"\n\
             levels = [{levels}]\n[[metric]]\nname = \"x\"\nregex = 'x = ([0-9.]+)'\n\
             better = \"lower\"\n"
        ),
    )
    .unwrap();
}

fn proved(folder: &Path, through: &[&str]) -> Value {
    let ours = [NETWRIGHT, "prove", "e.toml", "--record", "r.jsonl", "--json"];
    let words: Vec<&str> = through.iter().copied().chain(ours).collect();
    let out = Command::new(words[0]).args(&words[1..]).current_dir(folder).output().unwrap();
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)))
}

fn discarded(found: &Value) -> Vec<&str> {
    found["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|r| r["discarded"]["message"].as_str())
        .collect()
}

/// Moves itself between CPU 0 and another one, 16 times.
const WANDER: &str = "for i in 1 2 3 4 5 6 7 8; do taskset -pc 0 $$ > pinned; \
     taskset -pc $(({level} - 1)) $$ > pinned; done; echo x = 1";

#[test]
fn a_command_that_wanders_is_known_by_its_moves_and_one_that_does_not_by_none() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), WANDER, "1, 2", 28);
    let found = proved(folder.path(), &[]);
    let evidence = &found["evidence"];
    let moved = evidence["moved"].as_array().unwrap();
    let moves = moved.iter().find(|m| m["counter"] == "workload.migrations");
    let moves = moves.unwrap_or_else(|| panic!("moves are not named: {evidence}"));
    assert!(moves["second"].as_f64().unwrap() >= 15.0, "{moves}");
    assert!(moves["first"].as_f64().unwrap() <= 5.0, "{moves}");
    assert!(moves["low"].as_f64().unwrap() > 0.0 && moves["p"].as_f64().unwrap() <= 0.05);
    assert_eq!((&evidence["per"], &evidence["second"]), (&"run".into(), &"2".into()));
    assert!(evidence["judged"].as_u64().unwrap() > 5, "{evidence}");
    // The same without an effect: one in twenty names a counter anyway, most do not.
    experiment(folder.path(), WANDER, "1, '01'", 28);
    let mut looks = vec![];
    let none_moved = in_most_looks(|| {
        let evidence = proved(folder.path(), &[])["evidence"].take();
        looks.push(evidence["moved"].clone());
        evidence["moved"] == Value::Array(vec![])
    });
    assert!(none_moved, "{looks:?}");
}

/// Does something in its twentieth run only.
fn in_the_twentieth(what: &str) -> String {
    format!(
        ": {{level}}; n=$(cat n); echo $((n + 1)) > n; if [ $n = 20 ]; then {what}; fi; sleep 0.05; echo x = 1"
    )
}

#[test]
fn a_link_that_goes_and_comes_back_in_a_run_spoils_that_run_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("n"), "1\n").unwrap();
    let flip = in_the_twentieth("ip link set v0 down; ip link set v0 up");
    experiment(folder.path(), &flip, "1, 2", 32);
    let world = "mount -t sysfs none /sys && ip link add v0 type veth peer name v1 && \
                 ip link set v0 up && ip link set v1 up && sleep 0.2 && exec \"$@\"";
    let found = proved(folder.path(), &["unshare", "-nm", "sh", "-c", world, "sh"]);
    // Other load on this host may disturb runs too.
    let all = discarded(&found);
    assert_eq!(found["discarded_runs"], all.len());
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 32 + all.len(), "each was repeated");
    let changes = |r: &&Value| r["host"]["link_changes"].as_u64().unwrap() > 0;
    let flipped: Vec<&Value> = runs.iter().filter(changes).collect();
    assert_eq!(flipped.len(), 1);
    // A run has one reason, and a hypervisor may have given an earlier one.
    let why = flipped[0]["discarded"]["message"].as_str().unwrap();
    assert!(why.starts_with("links: v") || why.starts_with("steal time"), "{why}");
    assert!(found["notes"].to_string().contains("were disturbed and repeated"), "{found}");
}

#[test]
fn whoever_burns_the_cpus_beside_a_run_spoils_it() {
    const BURN: &str = "for i in 1 2; do timeout 3 sh -c 'while :; do :; done' > burnt 2>&1 & done";
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), &in_the_twentieth(BURN).replace('\'', "\""), "1, 2", 44);
    let seen = in_most_looks(|| {
        fs::write(folder.path().join("n"), "1\n").unwrap();
        let found = proved(folder.path(), &[]);
        discarded(&found).iter().any(|w| w.starts_with("others used"))
    });
    assert!(seen, "nobody saw the burners");
}
