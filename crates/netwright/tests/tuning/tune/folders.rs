//! Tests on a folder laid out like a host, for settings that no namespace has.

use std::{fs, path::Path};

use super::json;
use crate::support::run;

/// A folder laid out like a host, with settings that no namespace has.
#[test]
fn an_interrupt_is_moved_and_moved_back_on_a_folder() {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = tree.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        "proc/interrupts",
        "           CPU0       CPU1\n 38:        100          0   PCI-MSI 1-edge      eth0-rx-0\n",
    );
    write("proc/irq/38/smp_affinity_list", "0-1\n");
    write("proc/irq/38/effective_affinity_list", "0\n");
    write("sys/devices/system/cpu/online", "0-1\n");
    write("sys/devices/system/cpu/present", "0-1\n");
    write("sys/devices/system/cpu/possible", "0-1\n");
    let tune = |args: &[&str]| tune_folder(tree.path(), args);
    let file = tree.path().join("proc/irq/38/smp_affinity_list");
    let (code, err) = tune(&["apply", "irq.38.affinity=7"]);
    assert!(code == 4 && err.contains("CPU 7 is not online"), "{err}");
    let (code, err) = tune(&["apply", "irq.38.affinity=1"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "1");
    assert_eq!(tune(&["status"]).0, 0);
    assert_eq!(tune(&["rollback"]).0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "0-1\n", "byte for byte");
    assert!(tree.path().join("var/lib/netwright/journal/000001.jsonl").exists());
}

/// A `.link` file's match is not evaluated: the file is named for what it sets, on any interface.
#[test]
fn the_file_that_sets_a_knob_at_boot_is_named_as_its_owner() {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = tree.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    let nic = "sys/class/net/eth0";
    write(&format!("{nic}/tx_queue_len"), "1000\n");
    write(&format!("{nic}/threaded"), "0\n");
    write(&format!("{nic}/address"), "52:54:00:00:00:01\n");
    write(&format!("{nic}/ifindex"), "2\n");
    let link = "/etc/systemd/network/10-fast.link";
    let text = "[Match]\nOriginalName=eth*\n[Link]\nTransmitQueueLength=2000\n";
    write(link.trim_start_matches('/'), text);
    let change_requests = ["nic.eth0.txqueuelen=4000", "nic.eth0.threaded=on"];
    let root = tree.path().to_str().unwrap();
    let args = [&["tune", "plan", "--json", "--root", root], &change_requests[..]].concat();
    let plan = json(&run(crate::support::NETWRIGHT, &args));
    let owner = |knob: &str| {
        let changes = plan["changes"].as_array().unwrap();
        let change = changes.iter().find(|c| c["knob"] == knob).unwrap();
        change["owner"].as_str().unwrap().to_owned()
    };
    assert_eq!(owner("nic.eth0.txqueuelen"), link, "{plan}");
    assert_eq!(owner("nic.eth0.threaded"), "", "the file says nothing of it: {plan}");
}

/// Exit code and standard error of `netwright tune ARGS` on a folder.
fn tune_folder(tree: &Path, args: &[&str]) -> (i32, String) {
    let out = std::process::Command::new(crate::support::NETWRIGHT)
        .arg("tune")
        .args(args)
        .arg("--root")
        .arg(tree)
        .output()
        .unwrap();
    (out.status.code().unwrap(), String::from_utf8_lossy(&out.stderr).into_owned())
}

/// Governors and idle states, which guests do not have.
#[test]
fn governors_and_idle_limits_are_set_and_put_back_on_a_folder() {
    let tree = tempfile::tempdir().unwrap();
    let cpu = tree.path().join("sys/devices/system/cpu");
    let write = |path: &str, text: &str| {
        let file = cpu.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    for file in ["online", "present", "possible"] {
        write(file, "0-3\n");
    }
    for id in 0..4 {
        write(&format!("cpu{id}/online"), "1\n");
        write(&format!("cpu{id}/power/pm_qos_resume_latency_us"), "0\n");
        write(&format!("cpu{id}/cpufreq/scaling_governor"), "powersave\n");
        write(&format!("cpu{id}/cpufreq/affected_cpus"), &format!("{id}\n"));
        write(&format!("cpu{id}/cpufreq/energy_performance_preference"), "balance_power\n");
        let policy = format!("cpufreq/policy{id}");
        write(&format!("{policy}/affected_cpus"), &format!("{id}\n"));
        write(&format!("{policy}/scaling_governor"), "powersave\n");
    }
    let read = |path: &str| fs::read_to_string(cpu.join(path)).unwrap();
    let ask = ["apply", "cpu.governor=performance", "cpu.idle_limit=10us", "cpu.2.idle_limit=poll"];
    let (code, err) = tune_folder(tree.path(), &ask);
    assert!(code == 2 && err.contains("asks for it too"), "{err}");
    let (code, err) = tune_folder(tree.path(), &ask[..3]);
    assert_eq!(code, 0, "{err}");
    for id in 0..4 {
        assert_eq!(read(&format!("cpu{id}/cpufreq/scaling_governor")), "performance");
        assert_eq!(read(&format!("cpu{id}/power/pm_qos_resume_latency_us")), "10");
    }
    assert_eq!(tune_folder(tree.path(), &["status"]).0, 0);
    // intel_pstate resets the value in the write itself; later it is an external change, and
    // reported.
    write("cpu1/cpufreq/energy_performance_preference", "performance\n");
    assert_eq!(tune_folder(tree.path(), &["status"]).0, 1);
    let (code, err) = tune_folder(tree.path(), &["rollback", "--force"]);
    assert_eq!(code, 0, "{err}");
    for id in 0..4 {
        assert_eq!(read(&format!("cpu{id}/cpufreq/scaling_governor")), "powersave\n");
        assert_eq!(read(&format!("cpu{id}/power/pm_qos_resume_latency_us")), "0\n");
        let leans = read(&format!("cpu{id}/cpufreq/energy_performance_preference"));
        assert_eq!(leans.trim(), "balance_power", "what the governor took along");
    }
}

/// A register is written only after a double request, and restored.
#[test]
fn a_pci_request_size_is_guarded_and_put_back_on_a_folder() {
    let tree = tempfile::tempdir().unwrap();
    let folder = tree.path().join("sys/bus/pci/devices/0000:02:00.0");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(tree.path().join("proc")).unwrap();
    let mut space = vec![0x5au8; 256];
    space[..4].copy_from_slice(&[0x86, 0x80, 0x72, 0x15]);
    (space[6], space[0x0e], space[0x34]) = (0x10, 0, 0x80);
    space[0x80..0x82].copy_from_slice(&[0x10, 0]);
    space[0x88..0x8a].copy_from_slice(&0x2810u16.to_le_bytes());
    let file = folder.join("config");
    fs::write(&file, &space).unwrap();
    let ask = "pci.0000:02:00.0.read_request=2048";
    let (code, err) = tune_folder(tree.path(), &["apply", ask]);
    assert!(code == 1 && err.contains("--i-understand"), "{code}: {err}");
    assert_eq!(fs::read(&file).unwrap(), space);
    let (code, err) = tune_folder(tree.path(), &["apply", ask, "--i-understand", "--no-confirm"]);
    assert_eq!(code, 0, "{err}");
    let mut expected = space.clone();
    expected[0x88..0x8a].copy_from_slice(&0x4810u16.to_le_bytes());
    assert_eq!(fs::read(&file).unwrap(), expected);
    let (code, err) = tune_folder(tree.path(), &["rollback"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::read(&file).unwrap(), space);
}
