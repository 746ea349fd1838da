//! A container that Podman really runs, by runc: found by name and by id, its quota and its veth.
//!
//! Each run has a store, a state folder and a veth of its own, with `--network none`, so that Podman writes
//! neither an interface nor a rule of the host.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{
    NETWRIGHT, needs_root, output,
    planted::{figure, finding, silent},
    run,
};

/// Folders of runs, which end in the PID of the test.
const PREFIX: &str = "nwtest-podman-";

/// Podman with a folder of its own; what it made goes away on drop.
struct Podman {
    folder: PathBuf,
}

/// One test at a time, of all processes: each removes what it takes for a dead one's.
fn alone() -> fs::File {
    needs_root();
    // The folder of the folders: no file is left.
    let lock = fs::File::open("/run").unwrap();
    lock.lock().unwrap();
    lock
}

impl Podman {
    /// Removes what runs that crashed have left, and makes a root file system of busybox.
    fn new() -> Self {
        for entry in fs::read_dir("/run").unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let pid = name.strip_prefix(PREFIX).and_then(|p| p.parse::<u32>().ok());
            if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
                drop(Self { folder: entry.path() });
            }
        }
        Self::in_folder(format!("/run/{PREFIX}{}", std::process::id()).into())
    }

    fn in_folder(folder: PathBuf) -> Self {
        let bin = folder.join("root/bin");
        fs::create_dir_all(&bin).unwrap();
        for empty in ["proc", "sys", "dev", "etc", "run", "tmp"] {
            fs::create_dir_all(folder.join("root").join(empty)).unwrap();
        }
        let busybox =
            ["/usr/bin/busybox", "/bin/busybox"].into_iter().find(|p| Path::new(p).exists());
        fs::copy(busybox.expect("busybox-static is not installed"), bin.join("busybox")).unwrap();
        Self { folder }
    }

    fn output(&self, args: &[&str]) -> Output {
        let at = |name: &str| self.folder.join(name).display().to_string();
        Command::new("podman")
            .args(["--root", &at("store"), "--runroot", &at("run"), "--tmpdir", &at("tmp")])
            .args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"])
            .args(["--events-backend", "none", "--runtime", "runc"])
            .args(args)
            .output()
            .expect("podman is not installed: make test-deps")
    }

    fn run(&self, args: &[&str]) -> String {
        let out = self.output(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "podman {args:?}: {}\n{said}", out.status);
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    /// Starts a container that computes all the time, by its name; its id.
    fn spin(&self, name: &str, options: &[&str]) -> String {
        // Limits that every host allows.
        const LIMITS: [&str; 4] = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
        let start = ["run", "-d", "--name", name, "--network", "none", "--log-driver", "none"];
        let root = self.folder.join("root").display().to_string();
        let spins = ["--rootfs", &root, "/bin/busybox", "sh", "-c", "while :; do :; done"];
        self.run(&[&start[..], &LIMITS, options, &spins].concat())
    }

    fn pid(&self, name: &str) -> u32 {
        self.run(&["inspect", "-f", "{{.State.Pid}}", name]).parse().unwrap()
    }

    /// The name of the host's end of the veth.
    fn veth(&self) -> String {
        let pid = self.folder.to_str().unwrap().rsplit('-').next().unwrap();
        format!("nwtc{pid}")
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = self.output(&["rm", "-f", "-t", "0", "-a"]);
        let _ = output("ip", &["link", "delete", &self.veth()]);
        // conmon cleans up behind a container, which takes it a moment.
        let started = Instant::now();
        while !processes(&self.folder).is_empty() && started.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(50));
        }
        for mount in mounts(&self.folder) {
            let _ = output("umount", &["-l", &mount]);
        }
        let _ = fs::remove_dir_all(&self.folder);
        // Podman leaves the group of all containers, and that of conmon where conmon has not ended yet.
        // Another container of Podman's may be in them; then the kernel does not remove them.
        for folder in parents() {
            let _ = fs::remove_dir(folder.join("conmon"));
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The cgroup of all of Podman's containers, in each hierarchy that has it.
fn parents() -> Vec<PathBuf> {
    let top = Path::new("/sys/fs/cgroup");
    let trees = fs::read_dir(top).into_iter().flatten().flatten().map(|e| e.path());
    let mut all: Vec<PathBuf> =
        trees.chain([top.into()]).map(|t| t.join("libpod_parent")).collect();
    all.retain(|folder| folder.is_dir());
    all
}

/// Cgroups of this container.
fn cgroups(id: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        parents().into_iter().map(|folder| folder.join(format!("libpod-{id}"))).collect();
    all.retain(|folder| folder.is_dir());
    all
}

/// Processes whose arguments name the folder.
fn processes(folder: &Path) -> Vec<u32> {
    let folder = folder.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let names = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').any(|word| word.starts_with(folder))
    };
    pids.filter(names).collect()
}

fn mounts(folder: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    let at = table.lines().filter_map(|line| line.split(' ').nth(1).map(str::to_owned));
    at.filter(|at| Path::new(at).starts_with(folder)).collect()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&run(NETWRIGHT, args)).unwrap()
}

fn doctor(container: &str) -> Value {
    let args = ["doctor", "--window", "2s", "--no-bpf", "--json", "--container", container];
    json(&args)
}

/// Periods in which the container was stopped, by the kernel.
fn throttled(pid: u32) -> u64 {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let of = |wanted: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            controllers.split(',').any(|c| c == wanted).then(|| parts.next())?
        })
    };
    // Of cgroup v2 the line has no controller.
    let path = match of("cpu") {
        Some(path) => format!("/sys/fs/cgroup/cpu{path}/cpu.stat"),
        None => format!("/sys/fs/cgroup{}/cpu.stat", of("").unwrap()),
    };
    let text = fs::read_to_string(path).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled ")).unwrap();
    line.parse().unwrap()
}

#[test]
fn a_container_of_podman_is_found_by_name_and_id_with_its_quota_and_its_veth() {
    let _lock = alone();
    let groups_before = parents();
    let forwards = || fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
    let forwarded = forwards();
    let podman = Podman::new();
    let name = format!("web{}", std::process::id());
    // A twentieth of a CPU, which a process that computes uses up on a busy machine, too.
    let id = podman.spin(&name, &["--cpus", "0.05", "--cpuset-cpus", "0"]);
    let pid = podman.pid(&name);
    let veth = podman.veth();
    run(
        "ip",
        &["link", "add", &veth, "type", "veth", "peer", "name", "eth0", "netns", &pid.to_string()],
    );

    for wanted in [name.as_str(), &id, &id[..12]] {
        let facts = json(&["inspect", "--json", "--container", wanted]);
        let all = facts["processes"].as_array().unwrap();
        assert_eq!(all.len(), 1, "{wanted}: {all:#?}");
        let p = &all[0];
        assert_eq!(p["pid"], pid, "{wanted}: {p:#}");
        assert_eq!(p["container"], id.as_str(), "{p:#}");
        assert_eq!(p["cpuset_cpus"], "0", "{p:#}");
        assert!(p["cgroup"].as_str().unwrap().ends_with(&format!("libpod-{id}")), "{p:#}");
        let inode = fs::metadata(format!("/proc/{pid}/ns/net")).unwrap().ino();
        assert_eq!(p["net_namespace"], inode, "{p:#}");
        let nics = facts["nics"].as_array().unwrap();
        let pair = nics.iter().find(|n| n["name"] == veth.as_str()).unwrap();
        assert_eq!(pair["details"]["peer_container"], id.as_str(), "{pair:#}");
        assert_eq!(pair["details"]["peer"], "eth0", "{pair:#}");
    }
    let other = output(NETWRIGHT, &["doctor", "--container", "web-of-nobody", "--window", "200ms"]);
    assert!(!other.status.success(), "a container that is not there");

    let before = throttled(pid);
    let d = doctor(&name);
    let around = throttled(pid) - before;
    let f = finding(&d, "cpu_quota").unwrap_or_else(|| panic!("no cpu_quota: {d:#}"));
    assert_eq!((&f["severity"], &f["confidence"]), (&"warning".into(), &"high".into()), "{f:#}");
    assert!(f["title"].as_str().unwrap().contains("0.05 CPUs"), "{f:#}");
    // The kernel counted a little longer than `doctor` watched: at least half of its periods are in both.
    let seen = figure(f, "throttled periods");
    assert!(seen > around / 4 && seen <= around && seen > 5, "{seen} of {around}: {f:#}");
    let remedy = f["changes"][0]["command"].as_str().unwrap();
    assert!(remedy.starts_with(&format!("podman update --cpus N {}", &id[..12])), "{remedy}");

    // Its remedy, with a number that the container cannot use up.
    podman.run(&["update", "--cpus", "64", &name]);
    silent(&doctor(&id), "cpu_quota");

    let folder = podman.folder.clone();
    drop(podman);
    assert!(!folder.exists(), "{}", folder.display());
    assert_eq!(processes(&folder), [0; 0]);
    assert_eq!((mounts(&folder), cgroups(&id)), (vec![], vec![]));
    assert!(!Path::new("/sys/class/net").join(&veth).exists(), "{veth} is still there");
    let groups = parents();
    assert!(groups.iter().all(|g| groups_before.contains(g)), "a cgroup is left: {groups:?}");
    assert_eq!(forwards(), forwarded);
}

/// A test that was killed leaves its container: the next run removes it.
#[test]
fn what_a_killed_run_left_is_removed() {
    let _lock = alone();
    // A PID that was another process's and is free.
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let dead = Podman::in_folder(format!("/run/{PREFIX}{}", gone.id()).into());
    let id = dead.spin("left", &[]);
    run(
        "ip",
        &[
            "link",
            "add",
            &dead.veth(),
            "type",
            "veth",
            "peer",
            "name",
            &format!("{}p", dead.veth()),
        ],
    );
    let (folder, veth) = (dead.folder.clone(), dead.veth());
    std::mem::forget(dead);
    assert!(!processes(&folder).is_empty() && !cgroups(&id).is_empty());

    drop(Podman::new());
    assert!(!folder.exists() && processes(&folder).is_empty() && cgroups(&id).is_empty());
    assert!(!Path::new("/sys/class/net").join(&veth).exists());
}
