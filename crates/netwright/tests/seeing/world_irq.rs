//! Interrupts and backlogs against other readers of the same files (`awk`, `cat`, `ethtool`, the
//! shell), on this host and on a copy of its files as a tree.

use std::{collections::BTreeMap, fs, path::Path};

use crate::support::{NETWRIGHT, needs_root, run};
use serde_json::Value;

/// Counts by interrupt and CPU, those above zero.
type Counts = BTreeMap<u32, BTreeMap<u32, u64>>;

fn inspect(args: &[&str]) -> Value {
    let mut all = vec!["inspect", "--json"];
    all.extend(args);
    serde_json::from_str(&run(NETWRIGHT, &all)).unwrap()
}

fn sh(script: &str) -> String {
    run("sh", &["-c", script])
}

fn number(v: &Value) -> u32 {
    v.as_u64().unwrap().try_into().unwrap()
}

fn numbers(v: &Value) -> Vec<u32> {
    v.as_array().unwrap().iter().map(number).collect()
}

fn irqs(facts: &Value) -> &Vec<Value> {
    facts["irqs"].as_array().expect("interrupts are known")
}

fn counts(facts: &Value) -> Counts {
    irqs(facts)
        .iter()
        .map(|irq| {
            let cells = irq["counts"].as_array().unwrap();
            let by_cpu = cells.iter().map(|c| (number(&c["cpu"]), c["count"].as_u64().unwrap()));
            (number(&irq["irq"]), by_cpu.collect())
        })
        .collect()
}

/// The same by `awk`: the header's CPUs, then the numbered rows.
fn counts_by_awk(file: &str) -> Counts {
    let script = r#"NR == 1 { for (i = 1; i <= NF; i++) cpu[i] = substr($i, 4); n = NF; next }
        $1 ~ /^[0-9]+:$/ { sub(":", "", $1); print $1, "-", "-";
            for (i = 1; i <= n; i++) if ($(i + 1) > 0) print $1, cpu[i], $(i + 1) }"#;
    let mut all = Counts::new();
    for line in run("awk", &[script, file]).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let row = all.entry(words[0].parse().unwrap()).or_default();
        if words[1] != "-" {
            row.insert(words[1].parse().unwrap(), words[2].parse().unwrap());
        }
    }
    all
}

#[test]
fn counts_lie_between_two_readings_of_awk() {
    let before = counts_by_awk("/proc/interrupts");
    let ours = counts(&inspect(&[]));
    let after = counts_by_awk("/proc/interrupts");
    assert!(!before.is_empty());
    assert_eq!(ours.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    let at = |all: &Counts, irq, cpu| all[&irq].get(&cpu).copied().unwrap_or(0);
    for (&irq, row) in &after {
        for &cpu in row.keys() {
            let (low, is, high) = (at(&before, irq, cpu), at(&ours, irq, cpu), row[&cpu]);
            assert!(low <= is && is <= high, "IRQ {irq} CPU {cpu}: {low} <= {is} <= {high}");
        }
    }
    for (irq, row) in &ours {
        assert!(row.keys().all(|cpu| after[irq].contains_key(cpu)), "IRQ {irq}: {row:?}");
    }
}

#[test]
fn names_and_chips_are_the_words_of_the_row() {
    let facts = inspect(&[]);
    for irq in irqs(&facts) {
        let n = number(&irq["irq"]);
        let row = sh(&format!(r"sed -n 's/^ *{n}: *[0-9 ]* //p' /proc/interrupts"));
        let words = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let reported = [words(&irq["chip"]), words(&irq["hwirq"]), words(&irq["name"])].join(" ");
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed(&reported), squeezed(&row), "IRQ {n}");
    }
}

#[test]
fn affinities_are_those_of_proc() {
    let facts = inspect(&[]);
    for irq in irqs(&facts) {
        let n = number(&irq["irq"]);
        for (key, file) in
            [("affinity", "smp_affinity_list"), ("effective_affinity", "effective_affinity_list")]
        {
            let word = sh(&format!("cat /proc/irq/{n}/{file}"));
            assert_eq!(irq[key].as_str(), Some(word.trim()), "IRQ {n} {file}");
        }
        // The device's node where it has one, else the interrupt's.
        let device = irq["device"].as_str().unwrap_or("none");
        let node = sh(&format!(
            "n=$(cat /sys/bus/pci/devices/{device}/numa_node 2>/dev/null || echo -1); \
             if [ $n -ge 0 ]; then echo $n; else cat /proc/irq/{n}/node; fi"
        ));
        assert_eq!(irq["numa_node"].as_i64().unwrap_or(-1).to_string(), node.trim(), "IRQ {n}");
    }
}

#[test]
fn a_nics_interrupts_are_those_of_its_pci_function() {
    let facts = inspect(&[]);
    let mut with_device = 0;
    for nic in facts["nics"].as_array().unwrap() {
        let name = nic["name"].as_str().unwrap();
        // The last part of the device's path that is a PCI address.
        let script = format!(
            "readlink -f /sys/class/net/{name}/device | tr / '\\n' \
             | grep -E '^[0-9a-f]+:[0-9a-f]{{2}}:[0-9a-f]{{2}}\\.[0-9a-f]$' | tail -1 || true"
        );
        let address = sh(&script).trim().to_owned();
        if address.is_empty() {
            assert_eq!(numbers(&nic["irqs"]), [0u32; 0], "{name} has no device");
            continue;
        }
        with_device += 1;
        let bus = sh(&format!("ethtool -i {name} | sed -n 's/^bus-info: //p'"));
        assert_eq!(bus.trim(), address, "ethtool and the path of {name}");
        let msi = sh(&format!("ls /sys/bus/pci/devices/{address}/msi_irqs | sort -n"));
        let msi: Vec<u32> = msi.lines().map(|n| n.parse().unwrap()).collect();
        let taken: Vec<u32> = msi
            .into_iter()
            .filter(|n| irqs(&facts).iter().any(|i| number(&i["irq"]) == *n))
            .collect();
        assert_eq!(numbers(&nic["irqs"]), taken, "{name}");
        for irq in irqs(&facts).iter().filter(|i| taken.contains(&number(&i["irq"]))) {
            assert_eq!(irq["nic"], name);
            assert_eq!(irq["device"], address.as_str());
        }
    }
    let there = sh("ls -d /sys/class/net/*/device 2>/dev/null | wc -l");
    assert_eq!(with_device.to_string(), there.trim());
}

#[test]
fn virtio_queues_have_the_interrupt_that_is_named_after_them() {
    let facts = inspect(&[]);
    let virtio = |nic: &&Value| nic["driver"] == "virtio_net";
    for nic in facts["nics"].as_array().unwrap().iter().filter(virtio) {
        let name = nic["name"].as_str().unwrap();
        let device = sh(&format!("basename $(readlink -f /sys/class/net/{name}/device)"));
        let mut mapped = 0;
        for queue in nic["queues"].as_array().unwrap() {
            let (way, index) =
                (queue["id"]["direction"].as_str().unwrap(), number(&queue["id"]["index"]));
            let word = if way == "rx" { "input" } else { "output" };
            let script = format!(
                "sed -n 's/^ *\\([0-9]*\\):.* {}-{word}\\.{index}$/\\1/p' /proc/interrupts",
                device.trim()
            );
            let irq = sh(&script);
            if irq.trim().is_empty() {
                assert!(
                    queue["irq"]["absent"].is_string(),
                    "{name} {way}-{index}: {}",
                    queue["irq"]
                );
                continue;
            }
            mapped += 1;
            assert_eq!(queue["irq"].to_string(), irq.trim(), "{name} {way}-{index}");
            let irq = irqs(&facts).iter().find(|i| i["irq"] == queue["irq"]).unwrap();
            assert_eq!(irq["queue"], format!("{way}-{index}"));
        }
        // As many channels as ethtool counts, each with both directions.
        let combined =
            sh(&format!("ethtool -l {name} | awk '/^Combined/ {{n = $2}} END {{print n}}'"));
        assert_eq!((mapped / 2).to_string(), combined.trim(), "{name}");
    }
}

#[test]
fn backlogs_lie_between_two_readings_of_awk() {
    // Every kernel that this suite runs on names the CPU in the 13th column.
    let read = || -> BTreeMap<u32, [u64; 3]> {
        let hex = |w: &str| u64::from_str_radix(w, 16).unwrap();
        run("awk", &["{ print $13, $1, $2, $3 }", "/proc/net/softnet_stat"])
            .lines()
            .map(|line| {
                let words: Vec<u64> = line.split(' ').map(hex).collect();
                (words[0] as u32, [words[1], words[2], words[3]])
            })
            .collect()
    };
    let before = read();
    let facts = inspect(&[]);
    let after = read();
    let rows = facts["softnet"].as_array().unwrap();
    assert_eq!(
        rows.iter().map(|r| number(&r["cpu"])).collect::<Vec<_>>(),
        before.keys().copied().collect::<Vec<_>>()
    );
    for row in rows {
        let cpu = number(&row["cpu"]);
        let ours = ["processed", "dropped", "time_squeeze"].map(|k| row[k].as_u64().unwrap());
        for (i, is) in ours.into_iter().enumerate() {
            assert!(before[&cpu][i] <= is && is <= after[&cpu][i], "CPU {cpu} column {}", i + 1);
        }
    }
}

/// Copies the files that interrupt facts are read from.
fn copy_of_this_host(to: &Path) {
    let script = format!(
        "cd {} && mkdir -p proc/net proc/irq sys/devices/system/cpu \
         && cat /proc/interrupts > proc/interrupts && cat /proc/net/softnet_stat > proc/net/softnet_stat \
         && cat /sys/devices/system/cpu/online > sys/devices/system/cpu/online \
         && for d in /proc/irq/[0-9]*; do n=${{d##*/}}; mkdir proc/irq/$n; \
            for f in smp_affinity_list effective_affinity_list node; do cat $d/$f > proc/irq/$n/$f; done; done",
        to.display()
    );
    sh(&script);
}

#[test]
fn a_copy_of_the_files_tells_the_same() {
    let tree = tempfile::tempdir().unwrap();
    copy_of_this_host(tree.path());
    let root = tree.path().to_str().unwrap();
    let (copy, live) = (inspect(&["--root", root]), inspect(&[]));
    assert_eq!(counts(&copy), counts_by_awk(&format!("{root}/proc/interrupts")));
    for (a, b) in irqs(&copy).iter().zip(irqs(&live)) {
        for key in ["irq", "name", "chip", "hwirq", "affinity", "effective_affinity"] {
            assert_eq!(a[key], b[key], "IRQ {} {key}", a["irq"]);
        }
    }
    // A terminated last line is a row; a cut one is not read as a smaller number.
    let text = fs::read(format!("{root}/proc/interrupts")).unwrap();
    fs::write(format!("{root}/proc/interrupts"), &text[..text.len() / 2]).unwrap();
    let cut = inspect(&["--root", root]);
    let whole = irqs(&copy);
    for (a, b) in irqs(&cut).iter().zip(whole) {
        assert_eq!(a["counts"], b["counts"], "IRQ {}", a["irq"]);
    }
}

#[test]
fn a_device_or_a_pipe_in_a_tree_is_not_opened() {
    needs_root();
    let tree = tempfile::tempdir().unwrap();
    copy_of_this_host(tree.path());
    let irq = number(&irqs(&inspect(&[]))[0]["irq"]);
    let dir = tree.path().join(format!("proc/irq/{irq}"));
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    fs::remove_dir_all(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    // 1:5 returns zeros without end; the pipe has no writer.
    run("mknod", &[&at("smp_affinity_list"), "c", "1", "5"]);
    run("mkfifo", &[&at("effective_affinity_list")]);
    std::os::unix::fs::symlink("smp_affinity_list", at("node")).unwrap();
    let facts = inspect(&["--root", tree.path().to_str().unwrap()]);
    let found = irqs(&facts).iter().find(|i| number(&i["irq"]) == irq).unwrap();
    for (key, file) in [
        ("affinity", "smp_affinity_list"),
        ("effective_affinity", "effective_affinity_list"),
        ("numa_node", "node"),
    ] {
        assert_eq!(found[key]["absent"], format!("/proc/irq/{irq}/{file}: EINVAL"), "{key}");
    }
}
