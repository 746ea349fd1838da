//! Tests in an aarch64 guest with a Kunpeng's topology: the program of the package runs there, and its
//! facts match the guest kernel's. Runs as root; `make test` builds the guest's program first.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use crate::support::{NETWRIGHT, needs_root, output, run};
use lab::{server::ServerSpec, testing::TestLab};
use serde_json::Value;

fn stdout(lab: &TestLab, host: &str, argv: &[&str]) -> String {
    let out = lab.output(host, argv).unwrap();
    let complained = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.code, 0, "{argv:?} on {host}: {complained}");
    String::from_utf8(out.stdout).unwrap()
}

/// A file of the guest, by busybox.
fn read(lab: &TestLab, path: &str) -> String {
    stdout(lab, "server", &["cat", path]).trim().to_owned()
}

fn array<'a>(facts: &'a Value, key: &str) -> &'a Vec<Value> {
    facts[key].as_array().unwrap_or_else(|| panic!("no {key}"))
}

/// Unpacks the packages for aarch64 as their own tools do, and returns the program of the .deb.
fn packed(folder: &Path) -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = repository.join("target/aarch64-unknown-linux-gnu/debug/netwright");
    assert!(built.exists(), "the guest's program is missing; `scripts/cross` builds it");
    let (program, into) = (folder.join("netwright"), folder.to_str().unwrap());
    run("aarch64-linux-gnu-strip", &["-o", program.to_str().unwrap(), built.to_str().unwrap()]);
    let pack = |kind: &str| {
        let mut command = Command::new(repository.join("scripts/package"));
        command.arg(kind).arg(&program).env("OUT", folder).env("PACK", "fast");
        command.env("DEBFULLNAME", "Netwright").env("DEBEMAIL", "packages@example.org");
        let out = command.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    let rpm = pack("rpm");
    assert_eq!(run("rpm", &["-qp", "--queryformat", "%{ARCH}", &rpm]), "aarch64");
    assert!(run("rpm", &["-K", &rpm]).ends_with("digests OK\n"));
    let deb = pack("deb");
    assert_eq!(run("dpkg-deb", &["--field", &deb, "Architecture"]), "arm64\n");
    assert_eq!(run("lintian", &["--allow-root", &deb]), "");
    run("dpkg-deb", &["-x", &deb, into]);
    folder.join("usr/bin/netwright")
}

/// All of these share one guest, as booting is slow.
#[test]
fn an_aarch64_guest_is_read_as_its_kernel_describes_it() {
    needs_root();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = packed(folder.path());
    let begun = Instant::now();
    let lab = TestLab::server(&ServerSpec::kunpeng(&program)).unwrap();
    println!("the guest took commands after {:?}", begun.elapsed());

    let text = stdout(&lab, "server", &["netwright", "inspect", "--json"]);
    let facts: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(facts["host"]["arch"], "aarch64");
    let cpus = array(&facts, "cpus");
    assert_eq!(cpus.len(), 16);
    let topology = "/sys/devices/system/cpu/cpu*/topology";
    let script = |file: &str| format!("for n in {topology}/{file}; do echo $n $(cat $n); done");
    for (file, key) in [
        ("cluster_cpus_list", "cluster_cpus"),
        ("cluster_id", "cluster_id"),
        ("physical_package_id", "package_id"),
        ("core_id", "core_id"),
        ("thread_siblings_list", "smt_siblings"),
    ] {
        let said = stdout(&lab, "server", &["sh", "-c", &script(file)]);
        assert_eq!(said.lines().count(), 16, "{said}");
        for line in said.lines() {
            let (path, value) = line.split_once(' ').unwrap();
            let id: u64 = path.split('/').nth(5).unwrap()[3..].parse().unwrap();
            let cpu = cpus.iter().find(|c| c["id"] == id).unwrap();
            let reported = cpu[key].to_string().trim_matches('"').to_owned();
            assert_eq!(reported, value, "{key} of CPU {id}");
            assert_eq!(cpu["numa_node"], id / 4, "node of CPU {id}");
        }
    }
    for node in array(&facts, "numa_nodes") {
        let folder = format!("/sys/devices/system/node/node{}", node["id"]);
        assert_eq!(node["cpus"], read(&lab, &format!("{folder}/cpulist")));
    }
    queues_are_mapped(&lab, &facts);

    // Complete, whatever its length, and not mixed with the next command's output.
    let long = "head -c 3000000 /dev/zero | tr '\\0' x";
    assert_eq!(stdout(&lab, "server", &["sh", "-c", long]).len(), 3_000_000);
    assert_eq!(stdout(&lab, "server", &["echo", "next"]), "next\n");
    let left_behind = stdout(&lab, "server", &["sh", "-c", "sleep 60 & echo begun"]);
    assert_eq!(left_behind, "begun\n");
}

/// Each queue's interrupt is the ITS message that the kernel names.
fn queues_are_mapped(lab: &TestLab, facts: &Value) {
    let interrupts = read(lab, "/proc/interrupts");
    for queue in 0..4 {
        for (name, key) in [("input", format!("rx-{queue}")), ("output", format!("tx-{queue}"))] {
            let line = interrupts.lines().find(|l| l.ends_with(&format!("-{name}.{queue}")));
            let line = line.unwrap_or_else(|| panic!("no {name}.{queue} in\n{interrupts}"));
            let number: u64 = line.trim().split(':').next().unwrap().parse().unwrap();
            let irq = array(facts, "irqs").iter().find(|i| i["irq"] == number).unwrap();
            assert_eq!((&irq["nic"], &irq["queue"]), (&"eth0".into(), &key.into()), "{irq}");
            assert_eq!(irq["chip"], "ITS-MSI");
            assert!(irq["numa_node"]["absent"].is_string(), "{irq}");
            let affinity = read(lab, &format!("/proc/irq/{number}/smp_affinity_list"));
            assert_eq!(irq["affinity"], affinity);
        }
    }
    let nic = array(facts, "nics").iter().find(|n| n["name"] == "eth0").unwrap();
    assert_eq!((&nic["driver"], &nic["channels"]["combined"]), (&"virtio_net".into(), &4.into()));
    assert!(nic["numa_node"]["absent"].is_string(), "this board tells no node: {nic}");
}

#[test]
fn what_an_aarch64_guest_cannot_be_asked_for_is_refused_in_one_line() {
    needs_root();
    let refuse = |args: &[&str], code: i32, word: &str| {
        let out = output(NETWRIGHT, &[&["lab", "up", "server", "--name", "t0-x"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        // The lab of a killed test is removed and named by the next test.
        let own = said.lines().filter(|l| !l.ends_with("left unfinished by a killed run"));
        assert_eq!(own.count(), 1, "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    };
    refuse(&["--arch", "aarch64", "--nic-node", "0"], 2, "--nic-node");
    refuse(&["--topology", "kunpeng", "--cpus", "20"], 2, "clusters of 4");
    refuse(&["--topology", "kunpeng", "--preset", "queues"], 2, "ethtool");
    refuse(&["--arch", "x86_64", "--cluster", "2"], 2, "--cluster");
    refuse(&["--arch", "aarch64", "--binary", "/nowhere"], 4, "make aarch64");
    refuse(&["--arch", "aarch64", "--binary", NETWRIGHT], 4, "no aarch64 program");
}

/// A snapshot of such a guest, read elsewhere, against the guest's busybox.
#[test]
fn a_captured_aarch64_host_is_read_as_it_described_itself() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured");
    let archive = folder.join("aarch64-16cpu-4node.tar.zst").display().to_string();
    let truth = fs::read_to_string(folder.join("aarch64-16cpu-4node.truth.txt")).unwrap();
    let truth = format!("\n{truth}");
    let said: BTreeMap<&str, &str> =
        truth.split("\n$ ").filter_map(|p| p.split_once('\n')).collect();
    let facts: Value =
        serde_json::from_str(&run(NETWRIGHT, &["inspect", "--json", "--root", &archive])).unwrap();

    let cpu = |id: u64| array(&facts, "cpus").iter().find(|c| c["id"] == id).unwrap();
    for (file, key) in
        [("cluster_cpus_list", "cluster_cpus"), ("physical_package_id", "package_id")]
    {
        let lines = said[format!("grep . /sys/devices/system/cpu/cpu*/topology/{file}").as_str()];
        assert_eq!(lines.lines().count(), 16);
        for line in lines.lines() {
            let (path, value) = line.split_once(':').unwrap();
            let id = path.split('/').nth(5).unwrap()[3..].parse().unwrap();
            assert_eq!(cpu(id)[key].to_string().trim_matches('"'), value, "{key} of CPU {id}");
        }
    }
    let lines = said["grep . /sys/devices/system/node/node*/cpulist"].lines();
    let nodes: Vec<&str> = lines.map(|l| l.split_once(':').unwrap().1).collect();
    assert_eq!(nodes, ["0-3", "4-7", "8-11", "12-15"]);
    let reported: Vec<&Value> = array(&facts, "numa_nodes").iter().map(|n| &n["cpus"]).collect();
    assert_eq!(reported, nodes);

    let affinities = said["grep . /proc/irq/*/smp_affinity_list"];
    let mut queues = 0;
    for line in said["cat /proc/interrupts"].lines() {
        let Some((name, queue)) = line.rsplit_once("virtio1-").and_then(|(_, n)| n.split_once('.'))
        else {
            continue;
        };
        let number: u64 = line.trim().split(':').next().unwrap().parse().unwrap();
        let irq = array(&facts, "irqs").iter().find(|i| i["irq"] == number).unwrap();
        let direction = if name == "input" { "rx" } else { "tx" };
        assert_eq!(irq["queue"], format!("{direction}-{queue}"), "{line}");
        let affinity = affinities
            .lines()
            .find_map(|l| l.strip_prefix(&format!("/proc/irq/{number}/smp_affinity_list:")));
        assert_eq!(irq["affinity"], affinity.unwrap(), "{line}");
        queues += 1;
    }
    assert_eq!(queues, 8);
}
