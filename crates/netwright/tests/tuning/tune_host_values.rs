//! Tests of segment sizes (BIG TCP), CPU quotas, huge pages and parameters of the boot, compared with
//! `ip -d link` and the kernel's files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use crate::support::{NETWRIGHT, Namespace, needs_root, run, traced, tuned::on_a_host};

fn tune(state: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(NETWRIGHT);
    command.arg("tune").args(args).env("NETWRIGHT_STATE", state).env_remove("SSH_CONNECTION");
    let out = command.output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (out.status.code().unwrap_or(-1), text(&out.stdout), text(&out.stderr))
}

/// `NAME VALUE` of `ip -d link show`, or of its JSON where the text has none.
fn sizes(ns: &Namespace, nic: &str) -> Vec<(String, u64)> {
    let text = ns.run("ip", &["-d", "-j", "link", "show", "dev", nic]);
    let link: serde_json::Value = serde_json::from_str(&text).unwrap();
    let one = |n: &str| link[0][n].as_u64().map(|v| (n.to_owned(), v));
    ["gso_max_size", "gro_max_size"].into_iter().filter_map(one).collect()
}

#[test]
fn segment_sizes_are_those_of_ip_link_and_come_back() {
    let (ns, state) = (Namespace::new(), tempfile::tempdir().unwrap());
    ns.run("ip", &["link", "add", "d0", "type", "veth", "peer", "d1"]);
    // Of one's own, so that they are no default.
    ns.run("ip", &["link", "set", "d0", "gso_max_size", "60000", "gro_max_size", "61000"]);
    let before = sizes(&ns, "d0");
    assert_eq!(before, [("gso_max_size".into(), 60_000), ("gro_max_size".into(), 61_000)]);
    let sets = ["nic.d0.gso_max_size=200000", "nic.d0.gro_max_size=180000"];
    let (code, out, err) =
        tune(state.path(), &[&["apply", "--netns", &ns.name], &sets[..]].concat());
    assert_eq!(code, 0, "{out}{err}");
    let now = sizes(&ns, "d0");
    assert_eq!(now, [("gso_max_size".into(), 200_000), ("gro_max_size".into(), 180_000)]);
    assert_eq!(tune(state.path(), &["status"]).0, 0);
    let (code, out, err) = tune(state.path(), &["rollback"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(sizes(&ns, "d0"), before);
    for (ask, code, why) in [
        ("nic.d0.gso_max_size=600000", 2, "out of range: 1500 to 524288 bytes"),
        ("nic.d0.gro_max_size=524281", 2, "out of range: 1500 to 524280 bytes"),
        ("nic.d9.gso_max_size=65536", 4, "no such interface"),
        ("nic.d0.gso_max_size=64k", 2, "plain number of bytes"),
    ] {
        let (is, out, err) = tune(state.path(), &["apply", "--netns", &ns.name, ask]);
        assert!(is == code && (out.clone() + &err).contains(why), "{ask}: {is} {out}{err}");
        assert_eq!(sizes(&ns, "d0"), before, "{ask}");
    }
}

/// A size of at most 65,536 bytes moves that of IPv4, which comes back as it was.
#[test]
fn the_size_of_ipv4_that_the_kernel_moves_along_is_put_back() {
    on_a_host(|host| {
        let names = ["gso_max_size", "gso_ipv4_max_size", "gro_max_size", "gro_ipv4_max_size"];
        let all = || {
            let asks = names.map(|n| format!("nic.v0.{n}=1500"));
            let mut args = vec!["plan", "--json"];
            args.extend(asks.iter().map(String::as_str));
            let (code, out, err) = host.tune(&args);
            assert_eq!(code, 0, "{out}{err}");
            let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
            names.map(|n| {
                let all = plan["changes"].as_array().unwrap();
                let change = all.iter().find(|c| c["knob"] == format!("nic.v0.{n}")).unwrap();
                change["old"].as_str().unwrap().to_owned()
            })
        };
        for set in ["nic.v0.gso_ipv4_max_size=50000", "nic.v0.gro_ipv4_max_size=51000"] {
            assert_eq!(host.tune(&["apply", set]).0, 0);
        }
        let before = all();
        assert_eq!((before[1].as_str(), before[3].as_str()), ("50000", "51000"));
        assert_eq!(host.tune(&["apply", "nic.v0.gro_max_size=40000"]).0, 0);
        assert_eq!(all()[3], "40000");
        assert_eq!(host.tune(&["rollback"]).0, 0);
        assert_eq!(all(), before);
        let (mut points, mut disturbed) = (0, 0);
        loop {
            let state = tempfile::tempdir().unwrap();
            let at = points + 1;
            let args = ["apply", "--no-confirm", "nic.v0.gso_max_size=40000"];
            let end = traced::tune(state.path(), &args, &mut |n| {
                if n == at { traced::Then::Kill } else { traced::Then::GoOn }
            });
            disturbed += usize::from(all()[1] == "40000");
            let (code, out, err) = host.tune_in(state.path(), &["rollback"]);
            assert_eq!(code, 0, "killed at write {at}: {out}{err}");
            assert_eq!(all(), before, "killed at write {at}");
            if let traced::End::Exited(code) = end {
                assert_eq!(code, 0, "apply itself failed");
                break;
            }
            points = at;
        }
        assert!(points >= 4 && disturbed >= 2, "{points} points, {disturbed} disturbed");
    });
}

/// A cgroup of the cpu controller with a process, both removed on drop.
struct Group {
    folder: PathBuf,
    v2: bool,
    process: Child,
}

impl Group {
    fn new(name: &str) -> Self {
        needs_root();
        let v1 = Path::new("/sys/fs/cgroup/cpu");
        let v2 = !v1.join("cpu.cfs_quota_us").exists();
        let top = if v2 { Path::new("/sys/fs/cgroup") } else { v1 };
        if v2 {
            fs::write(top.join("cgroup.subtree_control"), "+cpu").unwrap();
        }
        let folder = top.join(format!("nwtest-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let process = Command::new("true").spawn().unwrap();
        let mut group = Self { folder, v2, process };
        group.start();
        group
    }

    /// A process in the group.
    fn start(&mut self) {
        let _ = self.process.wait();
        self.process = Command::new("sleep").arg("1000").spawn().unwrap();
        fs::write(self.folder.join("cgroup.procs"), self.process.id().to_string()).unwrap();
    }

    /// Its quota as the kernel's files have it: `QUOTA PERIOD`.
    fn quota(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap();
        if self.v2 {
            return read("cpu.max").trim().to_owned();
        }
        let quota = read("cpu.cfs_quota_us");
        let quota = if quota.trim() == "-1" { "max" } else { quota.trim() };
        format!("{quota} {}", read("cpu.cfs_period_us").trim())
    }

    fn ask(&self, value: &str) -> String {
        format!("process.{}.cpu_max={value}", self.process.id())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir(&self.folder);
    }
}

#[test]
fn a_quota_is_set_for_the_group_and_put_back_also_when_its_process_has_ended() {
    let (mut group, state) = (Group::new("max"), tempfile::tempdir().unwrap());
    let state = state.path();
    assert_eq!(group.quota(), "max 100000");
    for (value, is) in [("1.5cpus", "150000 100000"), ("20000 50000", "20000 50000")] {
        let (code, out, err) = tune(state, &["apply", "--no-confirm", &group.ask(value)]);
        assert_eq!(code, 0, "{value}: {out}{err}");
        assert_eq!(group.quota(), is);
        assert_eq!(tune(state, &["status"]).0, 0);
    }
    let (code, out, err) = tune(state, &["rollback"]);
    assert_eq!((code, group.quota().as_str()), (0, "150000 100000"), "{out}{err}");
    // The group and its quota outlive the process.
    group.process.kill().unwrap();
    group.process.wait().unwrap();
    let (code, out, err) = tune(state, &["rollback"]);
    assert_eq!((code, group.quota().as_str()), (0, "max 100000"), "{out}{err}");
}

/// The group that was limited gets its quota back, though its process has moved to another one.
#[test]
fn a_quota_is_put_back_where_its_process_has_left_the_group() {
    // Dropped last: the process of the group is in it by then.
    let other = Group::new("other");
    let group = Group::new("left");
    let state = tempfile::tempdir().unwrap();
    let apply = ["apply", "--no-confirm", &group.ask("20000 50000")];
    assert_eq!(tune(state.path(), &apply).0, 0);
    fs::write(other.folder.join("cgroup.procs"), group.process.id().to_string()).unwrap();
    let (code, out, err) = tune(state.path(), &["status"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = tune(state.path(), &["rollback"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!((group.quota().as_str(), other.quota().as_str()), ("max 100000", "max 100000"));
}

#[test]
fn a_quota_that_makes_no_sense_is_refused() {
    let (group, state) = (Group::new("bad"), tempfile::tempdir().unwrap());
    for (value, code, why) in [
        ("2", 2, "neither max, nor 'QUOTA PERIOD' in microseconds, nor CPUs as 1.5cpus"),
        ("10 100000", 2, "out of range"),
        ("0.001cpus", 1, "the kernel refuses it"),
    ] {
        let (is, out, err) = tune(state.path(), &["apply", &group.ask(value)]);
        assert!(is == code && (out.clone() + &err).contains(why), "{value}: {is} {out}{err}");
        assert_eq!(group.quota(), "max 100000");
    }
    let (code, out, err) = tune(state.path(), &["apply", "process.1.cpu_max=1cpus"]);
    assert!(code == 4 && (out.clone() + &err).contains("root group"), "{code} {out}{err}");
}

#[test]
fn killed_at_every_write_a_quota_is_put_back() {
    killed_at_every_write(false);
}

/// The process ends before the rollback: what an apply left in its group goes all the same.
#[test]
fn killed_at_every_write_a_quota_is_put_back_without_its_process() {
    killed_at_every_write(true);
}

fn killed_at_every_write(process_ends: bool) {
    let mut group = Group::new(if process_ends { "killed" } else { "kill" });
    let (mut points, mut disturbed) = (0, 0);
    loop {
        let state = tempfile::tempdir().unwrap();
        let at = points + 1;
        let ask = group.ask("20000 50000");
        let args = ["apply", "--no-confirm", &ask];
        let end = traced::tune(state.path(), &args, &mut |n| {
            if n == at { traced::Then::Kill } else { traced::Then::GoOn }
        });
        disturbed += usize::from(group.quota() != "max 100000");
        if process_ends {
            group.process.kill().unwrap();
            group.process.wait().unwrap();
        }
        let (code, out, err) = tune(state.path(), &["rollback"]);
        assert_eq!(code, 0, "killed at write {at}: {out}{err}");
        assert_eq!(group.quota(), "max 100000", "killed at write {at}");
        if let traced::End::Exited(code) = end {
            assert_eq!(code, 0, "apply itself failed");
            break;
        }
        points = at;
        if process_ends {
            group.start();
        }
    }
    assert!(points >= 4 && disturbed >= 2, "{points} points, {disturbed} disturbed");
}

/// A folder laid out like a host: the file comes back byte for byte, and the cmdline is only read.
#[test]
fn huge_pages_are_set_on_a_folder_and_the_boot_is_advice() {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = tree.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    let thp = "sys/kernel/mm/transparent_hugepage/enabled";
    write(thp, "always [madvise] never\n");
    write("proc/cmdline", "root=/dev/vda nohz_full=2-3 iommu=pt quiet\n");
    write("etc/default/grub", "GRUB_CMDLINE_LINUX=\"nohz_full=2-3 iommu=pt\"\n");
    write("usr/sbin/update-grub", "");
    for file in ["online", "present", "possible"] {
        write(&format!("sys/devices/system/cpu/{file}"), "0-3\n");
    }
    (0..4).for_each(|n| write(&format!("sys/devices/system/cpu/cpu{n}/online"), "1\n"));
    let root = tree.path().to_str().unwrap();
    let state = tree.path().join("state");
    let tune = |args: &[&str]| tune(&state, &[args, &["--root", root]].concat());
    let read = |path: &str| fs::read_to_string(tree.path().join(path)).unwrap();
    let (code, out, err) = tune(&["apply", "memory.thp=never"]);
    assert_eq!((code, read(thp).as_str()), (0, "never"), "{out}{err}");
    assert_eq!(tune(&["rollback"]).0, 0);
    assert_eq!(read(thp), "always [madvise] never\n");
    let (code, out, err) = tune(&["apply", "memory.thp=sometimes"]);
    assert!(code == 2 && (out + &err).contains("none of always, madvise, never"), "{code}");

    let grub = read("etc/default/grub");
    for (ask, code, says) in [
        (
            "boot.iommu.strict=0",
            4,
            "put iommu.strict=… into GRUB_CMDLINE_LINUX of /etc/default/grub, run `update-grub`",
        ),
        ("boot.isolcpus=managed_irq,2-3", 4, "netwright never writes it"),
        ("boot.isolcpus=2-9", 4, "no CPU 4-9"),
        ("boot.isolcpus=0-3", 4, "a CPU must be left"),
        ("boot.nohz_full=0,2", 4, "CPU 0 boots the host"),
        ("boot.rcu_nocbs=x", 2, "no list of CPUs"),
        ("boot.quiet=1", 2, "boot.quiet"),
    ] {
        let (is, out, err) = tune(&["apply", ask]);
        assert!(is == code && (out.clone() + &err).contains(says), "{ask}: {is} {out}{err}");
    }
    let (code, out, err) = tune(&["plan", "boot.nohz_full=2-3", "boot.iommu=pt"]);
    assert!(code == 0, "as the boot has it: {code} {out}{err}");
    assert_eq!(read("etc/default/grub"), grub);
    assert_eq!(read("proc/cmdline"), "root=/dev/vda nohz_full=2-3 iommu=pt quiet\n");
}

/// The kernel's own file of this host is read and judged, and not written.
#[test]
fn the_hosts_own_huge_pages_are_read() {
    let state = tempfile::tempdir().unwrap();
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Ok(text) = fs::read_to_string(file) else { return };
    let now = text.split(['[', ']']).nth(1).unwrap();
    let other = if now == "never" { "madvise" } else { "never" };
    let plan = run(
        NETWRIGHT,
        &[
            "tune",
            "plan",
            "--json",
            "--state-dir",
            state.path().to_str().unwrap(),
            &format!("memory.thp={other}"),
        ],
    );
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["changes"][0]["old"], now);
    assert_eq!(plan["changes"][0]["command"], format!("echo {other} > {file}"));
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}
