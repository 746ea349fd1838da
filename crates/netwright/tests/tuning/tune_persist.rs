//! Tests of `tune persist`: its files are accepted by the programs that read them. It never leaves
//! a partial result, nor changes foreign files.

mod interrupts;
mod killed;

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs,
    path::{Path, PathBuf},
};

use crate::support::{
    output, run,
    tuned::{Practice, on_a_host, same},
};
use serde_json::Value;

const CHANGES: &[&str] = &[
    "sysctl.net.core.somaxconn=8192",
    "sysctl.net.ipv4.tcp_rmem=4096 131072 64M",
    "sysctl.net.ipv4.conf.v0.forwarding=1",
    "nic.v0.channels=rx 2 tx 2",
    "nic.v0.mtu=1400",
    "nic.v0.txqueuelen=500",
    "nic.v0.features.tx-tcp-segmentation=off",
    "nic.v0.gro_flush_timeout=20us",
    "nic.v1.queue.rx-0.rps_cpus=2",
];

fn apply(host: &Practice) {
    let mut args = vec!["apply", "--no-confirm"];
    args.extend(CHANGES);
    let (code, out, err) = host.tune(&args);
    assert_eq!(code, 0, "{out}{err}");
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                left.push(path);
            } else {
                all.insert(path.clone(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    all
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

/// The values of [`CHANGES`], as the classic tools see them.
fn all_is_set() {
    let sysctl =
        |key: &str| run("sysctl", &["-n", key]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(sysctl("net.core.somaxconn"), "8192");
    assert_eq!(sysctl("net.ipv4.tcp_rmem"), "4096 131072 67108864");
    assert_eq!(sysctl("net.ipv4.conf.v0.forwarding"), "1");
    let link = run("ip", &["link", "show", "v0"]);
    assert!(link.contains("mtu 1400") && link.contains("qlen 500"), "{link}");
    let channels = run("ethtool", &["-l", "v0"]);
    let now = channels.split("Current").nth(1).unwrap();
    assert!(now.contains("RX:\t\t2") && now.contains("TX:\t\t2"), "{channels}");
    let features = run("ethtool", &["-k", "v0"]);
    assert!(features.contains("tx-tcp-segmentation: off"), "{features}");
    assert_eq!(read("/sys/class/net/v0/gro_flush_timeout"), "20000");
    let rps = read("/sys/class/net/v1/queues/rx-0/rps_cpus");
    assert_eq!(u32::from_str_radix(&rps, 16).unwrap(), 2);
}

/// An empty folder, in this thread's view, in place of the machine's.
fn cover(folder: &str) {
    let text = |s: &str| CString::new(s).unwrap();
    fs::create_dir_all(folder).unwrap();
    let (folder, tmpfs) = (text(folder), text("tmpfs"));
    // SAFETY: the texts end with NUL and outlive the call; the mount namespace is our own.
    let done = unsafe {
        libc::mount(tmpfs.as_ptr(), folder.as_ptr(), tmpfs.as_ptr(), 0, std::ptr::null())
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn sysctl_and_udev_themselves_set_the_values_from_the_files() {
    on_a_host(|host| {
        let before = host.print();
        let into = tempfile::tempdir().unwrap();
        let folder = into.path().to_str().unwrap();
        apply(host);
        all_is_set();
        let (code, out, err) = host.tune(&["persist", "--into", folder]);
        assert_eq!(code, 0, "{out}{err}");
        let (code, out, err) = host.tune(&["rollback"]);
        assert_eq!(code, 0, "{out}{err}");
        same(&before, &host.print(), "after the rollback");

        run("sysctl", &["-q", "-p", &format!("{folder}/etc/sysctl.d/99-zz-netwright.conf")]);
        for folder in ["/run/udev", "/etc/systemd/network", "/etc/udev/rules.d"] {
            cover(folder);
        }
        for (path, text) in files(&into.path().join("etc")) {
            let real = Path::new("/").join(path.strip_prefix(into.path()).unwrap());
            if real.starts_with("/etc/systemd/network") || real.starts_with("/etc/udev") {
                fs::write(real, text).unwrap();
            }
        }
        for nic in ["v0", "v1"] {
            let device = format!("/sys/class/net/{nic}");
            let link = output("udevadm", &["test-builtin", "net_setup_link", &device]);
            let rules = output("udevadm", &["test", "-a", "add", &device]);
            for out in [link, rules] {
                let said = String::from_utf8_lossy(&out.stderr).into_owned();
                for line in said.lines().filter(|l| l.contains("netwright")) {
                    let bad = ["Unknown", "Invalid", "Failed", "ignoring"];
                    assert!(!bad.iter().any(|b| line.contains(b)), "{line}");
                }
            }
        }
        all_is_set();
    });
}

#[test]
fn other_formats_are_taken_by_their_own_programs() {
    on_a_host(|host| {
        apply(host);
        let print = |form: &str| {
            let (code, out, err) = host.tune(&["persist", "--format", form]);
            // Settings that tuned cannot express are in no profile, and reported.
            let left_out = ["nic.v0.channels=rx 2 tx 2", "nic.v0.features.tx-tcp-segmentation=off"];
            assert_eq!(code, i32::from(form == "tuned"), "{form}: {out}{err}");
            for knob in left_out {
                let reported = err.contains(knob) && out.contains(&format!("# not here: {knob}"));
                assert_eq!(reported, form == "tuned", "{form}, {knob}: {out}{err}");
            }
            out
        };
        let (shell, ansible, tuned) = (print("shell"), print("ansible"), print("tuned"));
        let (_, json, said) = host.tune(&["persist", "--dry-run", "--json"]);
        assert!(said.contains("without --dry-run it is refused"), "{said}");
        let wanted: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(host.tune(&["rollback"]).0, 0);

        let file = host.state.path().join("set.sh");
        fs::write(&file, shell).unwrap();
        run("sh", &["-n", file.to_str().unwrap()]);
        run("sh", &[file.to_str().unwrap()]);
        all_is_set();

        let parse = "import sys, json, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
        let file = host.state.path().join("play.yml");
        fs::write(&file, ansible).unwrap();
        let play: Value =
            serde_json::from_str(&run("python3", &["-c", parse, file.to_str().unwrap()])).unwrap();
        let tasks = play[0]["tasks"].as_array().unwrap();
        for file in wanted["files"].as_array().unwrap() {
            let copy = |t: &&Value| t["ansible.builtin.copy"]["dest"] == file["path"];
            let task = tasks.iter().find(copy).unwrap_or_else(|| panic!("{file}"));
            assert_eq!(task["ansible.builtin.copy"]["content"], file["content"]);
        }

        let parse = "import sys, json, configparser as c; p = c.RawConfigParser(delimiters='='); \
                     p.optionxform = str; p.read(sys.argv[1]); \
                     print(json.dumps({s: dict(p[s]) for s in p.sections()}))";
        let file = host.state.path().join("tuned.conf");
        fs::write(&file, tuned).unwrap();
        let profile: Value =
            serde_json::from_str(&run("python3", &["-c", parse, file.to_str().unwrap()])).unwrap();
        assert_eq!(profile["sysctl"]["net.ipv4.tcp_rmem"], "4096 131072 67108864");
        // tuned's net plugin would not change an interface without hardware.
        assert_eq!(profile["net_v0"], Value::Null);
        assert_eq!(profile["sysfs"]["/sys/class/net/v0/mtu"], "1400");
        assert_eq!(profile["sysfs"]["/sys/class/net/v0/gro_flush_timeout"], "20000");
    });
}

#[test]
fn what_is_not_ours_or_was_changed_is_never_touched() {
    on_a_host(|host| {
        let into = tempfile::tempdir().unwrap();
        let folder = into.path().to_str().unwrap();
        apply(host);
        let persist = |more: &[&str]| {
            let mut args = vec!["persist", "--into", folder];
            args.extend(more);
            host.tune(&args)
        };
        // /etc is not for a namespace's settings.
        let (code, out, err) = host.tune(&["persist"]);
        assert!(code == 4 && err.contains("own network namespace"), "{code} {out}{err}");

        let conf = into.path().join("etc/sysctl.d/99-zz-netwright.conf");
        fs::create_dir_all(conf.parent().unwrap()).unwrap();
        fs::write(&conf, "net.core.somaxconn = 1\n").unwrap();
        let before = files(into.path());
        let (code, _, err) = persist(&[]);
        assert!(code == 4 && err.contains("is there and not ours"), "{err}");
        assert_eq!(files(into.path()), before, "nothing was written");

        fs::remove_file(&conf).unwrap();
        let (code, out, _) = persist(&["--dry-run"]);
        assert!(code == 0 && out.contains("would be written"), "{out}");
        assert_eq!(files(into.path()).len(), 0);
        assert_eq!(persist(&[]).0, 0);
        let all = files(into.path());
        let (code, out, _) = persist(&[]);
        assert!(code == 0 && out.contains("  unchanged") && !out.contains("  written"), "{out}");
        assert_eq!(files(into.path()), all);

        let ours = fs::read_to_string(&conf).unwrap();
        fs::write(&conf, ours.replace("8192", "4096")).unwrap();
        let changed = files(into.path());
        let (code, _, err) = persist(&[]);
        assert!(code == 4 && err.contains("was changed since it was written"), "{err}");
        assert_eq!(files(into.path()), changed);
        let (code, out, _) = persist(&["--remove"]);
        assert!(code == 1 && out.contains("changed since it was written"), "{code} {out}");
        let left: Vec<_> = files(&into.path().join("etc")).into_keys().collect();
        assert_eq!(left.as_slice(), std::slice::from_ref(&conf), "all but the changed one");
        fs::remove_file(&conf).unwrap();
        assert_eq!(persist(&["--remove"]).0, 0);
        assert_eq!(files(into.path()).len(), 0);
    });
}

#[test]
fn what_is_kept_for_a_folder_is_judged_by_the_files_in_it() {
    on_a_host(|host| {
        let into = tempfile::tempdir().unwrap();
        let folder = into.path().to_str().unwrap();
        let put = |path: &str, text: &str| {
            let file = into.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let asks =
            ["apply", "--no-confirm", "sysctl.net.ipv4.tcp_fin_timeout=30", "nic.v0.mtu=1400"];
        assert_eq!(host.tune(&asks).0, 0);
        // Files that this host reads later do not matter to the folder.
        cover("/etc/sysctl.d");
        fs::write("/etc/sysctl.d/99-zzz.conf", "net.ipv4.tcp_fin_timeout = 20\n").unwrap();
        let (code, out, err) = host.tune(&["persist", "--dry-run", "--into", folder]);
        assert!(code == 0 && out.contains("holds no system"), "{code} {out}{err}");
        // Files that it reads later itself do.
        put("etc/sysctl.d/99-zzz.conf", "net.ipv4.tcp_fin_timeout = 20\n");
        let (code, out, _) = host.tune(&["persist", "--dry-run", "--into", folder]);
        let reported = "/etc/sysctl.d/99-zzz.conf:1 sets it too and is read later";
        let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code == 1 && flat.contains(reported), "{code} {out}");
        fs::remove_file(into.path().join("etc/sysctl.d/99-zzz.conf")).unwrap();
        // A system of its own: whether `.link` files are read there is its systemd's matter.
        put("usr/bin/true", "");
        let (code, out, _) = host.tune(&["persist", "--dry-run", "--into", folder]);
        assert!(code == 1 && out.contains("no systemd here"), "{code} {out}");
        put("usr/lib/systemd/libsystemd-shared-252.so", "");
        put("usr/lib/systemd/network/99-default.link", "[Link]\nNamePolicy=of-the-folder\n");
        let (code, out, err) = host.tune(&["persist", "--into", folder]);
        assert_eq!(code, 0, "{out}{err}");
        let link = into.path().join("etc/systemd/network/00-netwright-v0.link");
        let text = fs::read_to_string(&link).unwrap();
        assert!(text.contains("NamePolicy=of-the-folder"), "{text}");
    });
}

#[test]
fn one_change_of_two_is_removed_and_a_line_read_later_is_reported() {
    on_a_host(|host| {
        let into = tempfile::tempdir().unwrap();
        let folder = into.path().to_str().unwrap();
        for change in ["nic.v0.mtu=1400", "nic.v0.txqueuelen=500"] {
            assert_eq!(host.tune(&["apply", "--no-confirm", change]).0, 0);
        }
        assert_eq!(host.tune(&["persist", "--into", folder]).0, 0);
        let link = into.path().join("etc/systemd/network/00-netwright-v0.link");
        let text = fs::read_to_string(&link).unwrap();
        assert!(
            text.contains("MTUBytes=1400") && text.contains("TransmitQueueLength=500"),
            "{text}"
        );
        assert_eq!(host.tune(&["persist", "--into", folder, "--remove", "1"]).0, 0);
        let text = fs::read_to_string(&link).unwrap();
        assert!(!text.contains("MTUBytes") && text.contains("TransmitQueueLength=500"), "{text}");
        let (code, _, err) = host.tune(&["persist", "--into", folder, "--remove", "1"]);
        assert!(code == 2 && err.contains("nothing of change 1 is kept"), "{err}");
        let (code, out, _) = host.tune(&["persist", "3"]);
        assert!(code == 2, "{out}");
        // A rolled-back change stays persisted, and is not reported as in force.
        assert_eq!(host.tune(&["rollback", "2"]).0, 0);
        let (code, out, err) = host.tune(&["persist", "--into", folder]);
        assert_eq!(code, 0, "{out}{err}");
        let reported = "change 2 was rolled back and is kept all the same";
        assert!(out.contains(reported) && !out.contains("in force already"), "{out}");
        assert_eq!(host.tune(&["persist", "--into", folder, "--remove"]).0, 0);
        assert_eq!(files(into.path()).len(), 0);
    });
}

/// A folder with an interrupt, an irqbalance and a service of one process.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let unit = "[Service]\nEnvironmentFile=-/etc/default/irqbalance\n\
                ExecStart=/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS\n";
    for (path, text) in [
        (
            "proc/interrupts",
            "           CPU0       CPU1\n 38:        100          0   PCI-MSI 1-edge      eth0-rx-0\n",
        ),
        ("proc/irq/38/smp_affinity_list", "0-1\n"),
        ("proc/irq/38/effective_affinity_list", "0\n"),
        ("proc/irq/38/eth0-rx-0/.keep", ""),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/present", "0-1\n"),
        ("sys/devices/system/cpu/possible", "0-1\n"),
        ("proc/sys/net/core/somaxconn", "4096\n"),
        ("etc/sysctl.conf", "# old\nnet.core.busy_poll = 0\n"),
        ("proc/sys/net/core/busy_poll", "0\n"),
        ("usr/lib/systemd/libsystemd-shared-252.so", ""),
        ("usr/sbin/irqbalance", ""),
        ("usr/lib/systemd/system/irqbalance.service", unit),
        ("etc/default/irqbalance", "IRQBALANCE_ARGS=\"--banmod=nvme\"\n"),
    ] {
        let file = tree.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    tree
}
