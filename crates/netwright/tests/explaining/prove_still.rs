//! Tests of `--freeze-host` with the real irqbalance, which may touch nothing, and frequency
//! governors in files, in the test's own namespaces. Both are frozen during an experiment and
//! restored however it ends.

use std::{fs, path::Path, process::Command};

use crate::support::{NETWRIGHT, needs_root};
use serde_json::Value;

/// A world with one irqbalance and two CPUs with governors in files. Their names are as long as
/// `performance`, as a file keeps bytes that are not overwritten. `said` shows whether both are
/// frozen: `1 T performance performance`.
const WORLD: &str = r#"set -e
mount -t sysfs none /sys
mount -t tmpfs none /run
mkdir -p /run/irqbalance state
export NETWRIGHT_STATE=$PWD/state
printf '#!/bin/sh\necho ban=true\n' > ban; chmod +x ban
bans=; for irq in /proc/irq/[0-9]*; do bans="$bans --banirq=${irq##*/}"; done
/usr/sbin/irqbalance --foreground --policyscript=$PWD/ban $bans > /dev/null 2>&1 & balancer=$!
until [ "$(cat /proc/$balancer/comm)" = irqbalance ]; do sleep 0.05; done
until [ -S /run/irqbalance/irqbalance$balancer.sock ]; do sleep 0.05; done
mount -t tmpfs none /sys/devices/system/cpu
cd /sys/devices/system/cpu
for file in online present possible; do echo 0-1 > $file; done
for cpu in 0 1; do
  mkdir -p cpu$cpu/cpufreq cpufreq/policy$cpu
  printf interactive > cpu$cpu/cpufreq/scaling_governor
  for file in cpu$cpu/cpufreq cpufreq/policy$cpu; do echo $cpu > $file/affected_cpus; done
  printf interactive > cpufreq/policy$cpu/scaling_governor
done
cd - > /dev/null
cat > said <<'SAID'
cpu=/sys/devices/system/cpu
governors="$(cat $cpu/cpu0/cpufreq/scaling_governor) $(cat $cpu/cpu1/cpufreq/scaling_governor)"
state=$(sed 's/.*) \(.\).*/\1/' /proc/BALANCER/stat)
echo "$([ "$state $governors" = 'T performance performance' ] && echo 1 || echo 0) $state $governors"
SAID
sed -i s/BALANCER/$balancer/ said
set +e
"#;

/// Runs a script in it; returns its output and its error messages.
fn world(folder: &Path, script: &str) -> (String, String) {
    let out = Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--net"])
        .args(["sh", "-c", &format!("{WORLD}{script}"), "sh", NETWRIGHT])
        .env_remove("SSH_CONNECTION")
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (text(&out.stdout), text(&out.stderr))
}

const EXPERIMENT: &str = "freeze_host = true\ncommand = ': {level}; sh said; sleep SLEEP'\n\
    runs = RUNS\n[[factor]]\nname = \"level\"\nlevels = [1, 2]\n\
    [[metric]]\nname = \"still\"\nregex = '^([01]) '\nbetter = \"higher\"\n";

fn experiment(folder: &Path, sleep: &str, runs: &str) {
    let text = EXPERIMENT.replace("SLEEP", sleep).replace("RUNS", runs);
    fs::write(folder.join("e.toml"), text).unwrap();
}

fn document(text: &str, complaint: &str) -> Value {
    let mut all = serde_json::Deserializer::from_str(text).into_iter();
    all.next().and_then(Result::ok).unwrap_or_else(|| panic!("no document: {text} {complaint}"))
}

#[test]
fn every_run_is_held_still_and_the_host_goes_on_after_it() {
    needs_root();
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), "0.01", "24");
    let script = r#""$1" prove e.toml --record r.jsonl --quiet --json; echo "code $?"
        "$1" prove e.toml --record r.jsonl --status | grep Frozen; sh said"#;
    let (out, complaint) = world(folder.path(), script);
    let found = document(&out, &complaint);
    let runs = found["runs"].as_array().unwrap();
    assert!(runs.len() >= 24 && runs.iter().all(|r| r["figures"]["still"] == 1.0), "{out}");
    let still = &found["frozen_host"];
    assert_eq!(still["not_frozen"], serde_json::json!([]), "{still}");
    let irqbalance = serde_json::json!({
        "knob": "irqbalance.paused", "settings": 1, "old": "off", "new": "on", "until": null
    });
    let governor = serde_json::json!({
        "knob": "cpu.governor", "settings": 2, "old": "interactive", "new": "performance",
        "until": null
    });
    assert_eq!(still["held"], serde_json::json!([irqbalance, governor]));
    // The line that the script keeps, up to where it is wrapped.
    assert!(out.contains("irqbalance.paused on (was off); cpu.governor (2 of"), "{out}");
    assert!(out.ends_with("0 S interactive interactive\n"), "{out} {complaint}");
}

#[test]
fn kill_9_of_both_leaves_it_held_and_the_next_command_puts_it_back() {
    needs_root();
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), "0.05", "2000");
    let script = r#"start() {
          "$1" prove e.toml --record r.jsonl --quiet > /dev/null 2>&1 & experiment=$!
          until [ "$(grep -c '"run"' r.jsonl 2> /dev/null)" -gt 3 ]; do sleep 0.05; done
          kill -9 $(grep -lszx $experiment /proc/[0-9]*/cmdline | cut -d/ -f3) $experiment; wait $experiment 2> /dev/null; sh said; }
        start "$1"
        "$1" schema prove > /dev/null; "$1" tune rollback --unfinished; sh said
        rm r.jsonl; start "$1"
        "$1" prove --command 'sh said' --level 1 --level 2 --metric 'x=/^([01])/:higher' --runs 24 \
          --record other.jsonl > /dev/null; sh said"#;
    // A command without a level in it changes nothing and would be refused.
    let script = script.replace("'sh said' --level", "': {level}; sh said' --level");
    let (out, complaint) = world(folder.path(), &script);
    let lines: Vec<&str> = out.lines().collect();
    let at = |n: usize| lines.get(n).copied().unwrap_or_default();
    assert_eq!(at(0), "1 T performance performance", "{out} {complaint}");
    assert!(
        complaint.contains("the experiment e was interrupted, and changes 1, 2"),
        "{complaint}"
    );
    assert!(at(1).contains("Change 2 is rolled back"), "{out}");
    assert!(at(2).contains("Change 1 is rolled back"), "{out}");
    assert_eq!((at(3), at(4)), ("0 S interactive interactive", "1 T performance performance"));
    // The next experiment restores it before it begins, also one that changes nothing itself.
    assert_eq!(at(5), "0 S interactive interactive", "{out} {complaint}");
    assert!(complaint.contains("the experiment e was interrupted; its change"), "{complaint}");
    let notices = complaint.matches("`netwright tune rollback --unfinished` undoes them all");
    assert!(notices.count() >= 2, "{complaint}");
}

#[test]
fn what_cannot_be_held_is_said_and_what_goes_meanwhile_too() {
    needs_root();
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), "0.01", "24");
    // The second experiment's own workload ends irqbalance; the third has no governors either.
    let script = r#""$1" prove --change cpu.0.governor=cooperative --command 'sh said; sleep 0.01' \
          --metric 'x=/^([01])/:higher' --runs 24 --freeze-host --record r.jsonl --quiet --json
        echo '###'
        sed -i "s/sh said;/kill -9 $balancer 2> \/dev\/null; echo 1 still;/" e.toml
        "$1" prove e.toml --record r2.jsonl --quiet --json; echo '###'
        umount /sys/devices/system/cpu
        "$1" prove e.toml --record r3.jsonl --quiet --json; echo '###'; "$1" tune status"#;
    let (out, complaint) = world(folder.path(), script);
    let parts: Vec<&str> = out.split("###\n").collect();
    let of = |n: usize| document(parts.get(n).copied().unwrap_or_default(), &complaint);
    let why = |d: &Value, n: usize| d["frozen_host"]["not_frozen"][n]["why"].to_string();
    let own = of(0);
    assert_eq!(own["frozen_host"]["held"][0]["knob"], "irqbalance.paused", "{own}");
    assert!(why(&own, 0).contains("sets cpu.0.governor itself"), "{own}");
    let gone = of(1);
    assert!(gone["frozen_host"]["held"][0]["until"].is_string(), "{}", gone["frozen_host"]);
    assert_eq!(gone["frozen_host"]["held"][1]["until"], Value::Null, "{}", gone["frozen_host"]);
    assert!(!complaint.contains("NOT PUT BACK"), "{complaint}");
    let nothing = of(2);
    assert!(why(&nothing, 0).contains("irqbalance does not run here"), "{nothing}");
    assert_eq!(nothing["frozen_host"]["not_frozen"][1]["knob"], "cpu.governor", "{nothing}");
    assert!(parts[3].contains("Nothing") || !parts[3].contains("unfinished"), "{}", parts[3]);
}

#[test]
fn fix_holds_still_over_all_its_experiments() {
    needs_root();
    let folder = tempfile::tempdir().unwrap();
    let script = r#""$1" fix --command 'sh said | tee -a saw; sleep 0.01' --window 200ms --yes \
          --metric 'x=/^([01])/:higher' --runs 24 --freeze-host --json --quiet \
          --try sysctl.net.ipv4.tcp_keepalive_intvl=60 --try cpu.0.governor=cooperative
        sh said; cat saw"#;
    let (out, complaint) = world(folder.path(), script);
    let found = document(&out, &complaint);
    assert_eq!(found["frozen_host"]["held"].as_array().unwrap().len(), 2, "{found}");
    let candidates = found["candidates"].as_array().unwrap();
    let status = |knob: &str| {
        let is = |c: &&Value| c["changes"][0]["knob"] == knob;
        candidates.iter().find(is).map(|c| (c["status"].clone(), c["why"].to_string())).unwrap()
    };
    assert_eq!(status("sysctl.net.ipv4.tcp_keepalive_intvl").0, "undone", "{found}");
    assert!(status("cpu.0.governor").1.contains("--freeze-host"), "{found}");
    let after: Vec<&str> = out.lines().skip_while(|l| !l.starts_with("0 S")).collect();
    assert_eq!(after[0], "0 S interactive interactive", "{out} {complaint}");
    // Frozen and measured from the first run to the last.
    assert!(after.len() > 24 && after[1..].iter().all(|l| l.starts_with("1 T")), "{out}");
}
