//! A host to change: a namespace of the test, seen from a thread that lives in it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use super::{NETWRIGHT, Namespace, run, watchdogs::watchdogs_at};

/// A namespace with a pair of interfaces of four queues, some configured, and a process to place.
/// The calling thread moves into it for good: use one thread per host.
pub struct Practice {
    pub ns: Namespace,
    pub state: tempfile::TempDir,
    sleeper: std::process::Child,
}

/// Works on a practice host in a new thread, which moves into the namespace. Afterwards every change
/// must be settled: a watchdog that leaves would not find its journals any more, and stay.
pub fn on_a_host(work: impl FnOnce(&Practice) + Send) {
    std::thread::scope(|s| {
        let worker = s.spawn(|| {
            let host = Practice::enter();
            work(&host);
            within(Duration::from_secs(30), "its watchdogs leave", || {
                watchdogs_at(host.state.path()).is_empty()
            });
        });
        if let Err(panic) = worker.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Waits for a condition, on a machine of any speed.
pub fn within(most: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < most, "{what}: not within {most:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Where cpusets appear in the mount namespace of a practice host.
pub const CPUSETS: &str = "/sys/fs/cgroup";

/// The new `/sys` hides the machine's cgroups: mounts v1 where it has the controller, else v2.
fn mount_cpusets() {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let v1 = |l: &str| {
        let words: Vec<&str> = l.split(' ').collect();
        words[2] == "cgroup" && words[3].split(',').any(|o| o == "cpuset")
    };
    if mounts.lines().any(v1) {
        mount("cgroup", Path::new(CPUSETS), "cgroup", 0, "cpuset");
    } else {
        mount("cgroup2", Path::new(CPUSETS), "cgroup2", 0, "");
    }
}

fn mount(source: &str, target: &Path, kind: &str, flags: libc::c_ulong, data: &str) {
    let text = |s: &str| CString::new(s).unwrap();
    let (source, kind, data) = (text(source), text(kind), text(data));
    let target_text = text(target.to_str().unwrap());
    // SAFETY: every text ends with NUL and outlives the call; the mount namespace is our own.
    let done = unsafe {
        libc::mount(
            source.as_ptr(),
            target_text.as_ptr(),
            kind.as_ptr(),
            flags,
            data.as_ptr().cast(),
        )
    };
    assert_eq!(done, 0, "mount {}: {}", target.display(), std::io::Error::last_os_error());
}

impl Practice {
    /// Makes it, and moves the calling thread in.
    pub fn enter() -> Self {
        let ns = Namespace::new();
        // A new namespace forwards where the host does, as one with containers.
        ns.run("sysctl", &["-qw", "net.ipv4.ip_forward=0"]);
        ns.run(
            "ip",
            &[
                "link",
                "add",
                "v0",
                "numrxqueues",
                "4",
                "numtxqueues",
                "4",
                "type",
                "veth",
                "peer",
                "name",
                "v1",
                "numrxqueues",
                "4",
                "numtxqueues",
                "4",
            ],
        );
        // Two of its four queues configured by hand, under a root with a handle.
        for words in [
            "root handle 10: mq",
            "parent 10:1 handle 11: bfifo limit 30000",
            "parent 10:4 handle 14: pfifo limit 44",
        ] {
            let mut args = vec!["qdisc", "replace", "dev", "v0"];
            args.extend(words.split(' '));
            ns.run("tc", &args);
        }
        for args in [
            ["link", "set", "v0", "up"],
            ["link", "set", "v1", "up"],
            ["addr", "add", "10.9.0.1/24", "dev"],
        ] {
            let mut args = args.to_vec();
            if args[0] == "addr" {
                args.push("v0");
            }
            ns.run("ip", &args);
        }
        let file = fs::File::open(format!("/run/netns/{}", ns.name)).unwrap();
        // SAFETY: takes numbers only; moves this thread alone.
        unsafe {
            assert_eq!(libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET), 0);
            assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0);
        }
        mount("none", Path::new("/"), "", libc::MS_REC | libc::MS_PRIVATE, "");
        mount("sysfs", Path::new("/sys"), "sysfs", 0, "");
        mount_cpusets();
        let sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
        let host = Self { ns, state: tempfile::tempdir().unwrap(), sleeper };
        // Settings that a change of channels would reset.
        for (file, value) in [
            ("v0/queues/rx-3/rps_cpus", "1"),
            ("v0/queues/rx-2/rps_flow_cnt", "256"),
            ("v0/queues/tx-3/xps_cpus", "1"),
            ("v0/queues/tx-0/xps_cpus", "1"),
        ] {
            fs::write(Path::new("/sys/class/net").join(file), value).unwrap();
        }
        host
    }

    /// The pid of the process to place.
    pub fn pid(&self) -> u32 {
        self.sleeper.id()
    }

    /// Its folder in the cgroup hierarchy that limits CPUs.
    pub fn cgroup(&self) -> String {
        let all = fs::read_to_string(format!("/proc/{}/cgroup", self.pid())).unwrap();
        let cpuset = |l: &&str| l.contains(":cpuset:") || l.starts_with("0::");
        all.lines().find(cpuset).unwrap().to_owned()
    }

    /// More than twenty changes, of every kind that a namespace can hold.
    pub fn changes(&self) -> Vec<String> {
        let mut all: Vec<String> = [
            "sysctl.net.core.somaxconn=8192",
            "sysctl.net.ipv4.tcp_max_syn_backlog=16384",
            "sysctl.net.ipv4.tcp_fin_timeout=30",
            "sysctl.net.ipv4.tcp_keepalive_time=10m",
            "sysctl.net.ipv4.tcp_keepalive_intvl=30",
            "sysctl.net.ipv4.ip_local_port_range=20000 60000",
            "sysctl.net.ipv4.tcp_rmem=4096 131072 64M",
            "sysctl.net.ipv4.tcp_notsent_lowat=128k",
            "sysctl.net.ipv4.tcp_mtu_probing=1",
            "sysctl.net.ipv4.ip_forward=1",
            "nic.v0.channels=rx 2 tx 2",
            "nic.v0.mtu=1400",
            "nic.v1.mtu=1450",
            "nic.v0.txqueuelen=500",
            "nic.v0.gro_flush_timeout=20us",
            "nic.v0.napi_defer_hard_irqs=2",
            "nic.v0.queue.rx-0.rps_cpus=cpus:0-1",
            "nic.v1.queue.rx-0.rps_cpus=2",
            "nic.v1.queue.rx-3.rfs_flows=1024",
            "nic.v1.queue.tx-1.xps_cpus=2",
            "nic.v1.features.tx-tcp-segmentation=off",
            "nic.v0.qdisc=pfifo limit 500",
            "nic.v1.qdisc=mq bfifo limit 200k",
        ]
        .map(str::to_owned)
        .to_vec();
        all.push(format!("process.{}.affinity=1", self.pid()));
        all.push(format!("process.{}.cpuset=1 mems 0", self.pid()));
        all
    }

    /// All its values that a change could affect, by path.
    pub fn print(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for folder in ["/proc/sys/net/ipv4", "/proc/sys/net/ipv6", "/proc/sys/net/core"] {
            walk(Path::new(folder), 5, &mut all);
        }
        for nic in ["v0", "v1"] {
            walk(&Path::new("/sys/class/net").join(nic).join("queues"), 4, &mut all);
            for file in [
                "mtu",
                "tx_queue_len",
                "gro_flush_timeout",
                "napi_defer_hard_irqs",
                "threaded",
                "flags",
            ] {
                let path = Path::new("/sys/class/net").join(nic).join(file);
                all.insert(
                    path.display().to_string(),
                    fs::read_to_string(&path).unwrap_or_default(),
                );
            }
        }
        for nic in ["v0", "v1"] {
            all.insert(format!("ethtool -k {nic}"), run("ethtool", &["-k", nic]));
            all.insert(format!("tc {nic}"), run("tc", &["-d", "qdisc", "show", "dev", nic]));
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let allowed = status.lines().find(|l| l.starts_with("Cpus_allowed_list")).unwrap();
        all.insert("affinity".into(), allowed.to_owned());
        all.insert("cgroup".into(), self.cgroup());
        let own = format!("{CPUSETS}/netwright-{}", self.pid());
        all.insert("cgroup of its own".into(), Path::new(&own).exists().to_string());
        all
    }

    /// Runs `netwright tune ARGS` here; returns exit code, standard output, standard error.
    pub fn tune(&self, args: &[&str]) -> (i32, String, String) {
        self.tune_in(self.state.path(), args)
    }

    /// The same with another folder for journals.
    pub fn tune_in(&self, state: &Path, args: &[&str]) -> (i32, String, String) {
        let out = super::schema::ended(&mut self.command(state, args));
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        (out.status.code().unwrap_or(-1), text(&out.stdout), text(&out.stderr))
    }

    pub fn command(&self, state: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(NETWRIGHT);
        command.arg("tune").args(args).env("NETWRIGHT_STATE", state);
        // The tests may themselves run over SSH.
        command.env_remove("SSH_CONNECTION");
        command
    }

    /// Runs `netwright ARGS` here, with journals in this host's folder.
    pub fn netwright(&self, args: &[&str]) -> Command {
        let mut command = Command::new(NETWRIGHT);
        command.args(args).env("NETWRIGHT_STATE", self.state.path()).current_dir(&self.state);
        command.env_remove("SSH_CONNECTION");
        command
    }

    /// A file system of this many bytes, for journals.
    pub fn small_disk(&self, bytes: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        mount("tmpfs", folder.path(), "tmpfs", 0, &format!("size={bytes},mode=700"));
        folder
    }

    /// Makes a folder of `/proc/sys` read-only, in this thread's view.
    pub fn read_only(&self, folder: &str) {
        let path = PathBuf::from(folder);
        mount(folder, &path, "", libc::MS_BIND, "");
        mount("none", &path, "", libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY, "");
    }

    /// Makes `/proc/sys` writable only for the network namespace's own settings, in the view of
    /// this thread and its children.
    pub fn only_net_can_be_written(&self) {
        self.read_only("/proc/sys");
        let net = Path::new("/proc/sys/net");
        mount("/proc/sys/net", net, "", libc::MS_BIND, "");
        mount("none", net, "", libc::MS_REMOUNT | libc::MS_BIND, "");
    }

    /// An empty folder in place of the machine's, in the same view.
    pub fn hide(&self, folder: &str) {
        fs::create_dir_all(folder).unwrap();
        mount("tmpfs", Path::new(folder), "tmpfs", 0, "mode=755");
    }

    pub fn pull_out(&self) {
        run("ip", &["link", "del", "v0"]);
    }
}

impl Drop for Practice {
    fn drop(&mut self) {
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
    }
}

fn walk(folder: &Path, depth: u32, all: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|e| e.unwrap().path()) {
        if path.is_dir() && !path.is_symlink() {
            if depth > 0 {
                walk(&path, depth - 1, all);
            }
        } else if let Ok(text) = fs::read(&path) {
            let moves = ["inflight", "traffic", "limit", "_stat", "random", "flush"];
            let name = path.display().to_string();
            if !moves.iter().any(|m| name.contains(m)) {
                all.insert(name, String::from_utf8_lossy(&text).into_owned());
            }
        }
    }
}

/// Fails with the differences.
pub fn same(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>, when: &str) {
    let differs: Vec<String> = before
        .keys()
        .chain(now.keys())
        .filter(|k| before.get(*k) != now.get(*k))
        .map(|k| format!("{k}: {:?} -> {:?}", before.get(k), now.get(k)))
        .collect();
    assert!(differs.is_empty(), "{when}: not as before: {differs:#?}");
}
