//! A real process with pinned threads and open sockets, against `ps`, `taskset`, `ss` and the
//! kernel's files.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use crate::support::{NETWRIGHT, Namespace, needs_root, output, run};
use serde_json::Value;

/// Four threads (one spins), a listening and a connected TCP socket, a UDP socket.
const PROGRAM: &str = r#"
import socket, threading, time, sys
def spin():
    while True:
        for _ in range(20000): pass
        time.sleep(0.001)
for f in (spin, lambda: time.sleep(600), lambda: time.sleep(600)):
    threading.Thread(target=f, daemon=True).start()
ballast = bytearray(32 << 20)
for i in range(0, len(ballast), 4096): ballast[i] = 1
l = socket.create_server(("127.0.0.1", 0))
port = l.getsockname()[1]
a = socket.create_connection(("127.0.0.1", port))
b, _ = l.accept()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("127.0.0.1", 0))
print(port, u.getsockname()[1], flush=True)
time.sleep(600)
"#;

/// The process, killed by its id when dropped.
struct Server {
    child: Child,
    port: u16,
    udp_port: u16,
}

impl Server {
    fn start(ns: Option<&Namespace>) -> Self {
        let mut command = match ns {
            None => Command::new("/usr/bin/python3"),
            Some(ns) => {
                let mut c = Command::new("ip");
                c.args(["netns", "exec", &ns.name, "/usr/bin/python3"]);
                c
            }
        };
        let mut child = command
            .args(["-c", PROGRAM])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is needed; `make test-deps` installs it");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut ports = line.split_whitespace().map(|p| p.parse().unwrap());
        Self { port: ports.next().unwrap(), udp_port: ports.next().unwrap(), child }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn tids(&self) -> Vec<u32> {
        let mut tids: Vec<u32> = fs::read_dir(format!("/proc/{}/task", self.pid()))
            .unwrap()
            .map(|e| e.unwrap().file_name().to_str().unwrap().parse().unwrap())
            .collect();
        tids.sort_unstable();
        tids
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn inspect(args: &[&str]) -> Value {
    let mut all = vec!["inspect", "--json"];
    all.extend(args);
    serde_json::from_str(&run(NETWRIGHT, &all)).expect("no JSON")
}

fn pids(facts: &Value) -> Vec<u32> {
    let all = facts["processes"].as_array().unwrap();
    all.iter().map(|p| p["pid"].as_u64().unwrap() as u32).collect()
}

#[test]
fn threads_and_affinities_are_what_ps_and_taskset_say() {
    let server = Server::start(None);
    let pid = server.pid().to_string();
    let tids = server.tids();
    assert_eq!(tids.len(), 4);
    run("taskset", &["-pc", "0", &tids[1].to_string()]);
    let facts = inspect(&["--pid", &pid]);
    assert_eq!(pids(&facts), [server.pid()]);
    let process = &facts["processes"][0];
    let threads = process["threads"].as_array().unwrap();
    assert_eq!(threads.iter().map(|t| t["tid"].as_u64().unwrap() as u32).collect::<Vec<_>>(), tids);

    // `pid 12's current affinity list: 0,1`
    let theirs = run("taskset", &["-acp", &pid]);
    for (line, ours) in theirs.lines().zip(threads) {
        let (_, list) = line.rsplit_once(": ").unwrap();
        let list: model::CpuSet = list.parse().unwrap();
        assert_eq!(ours["affinity"], list.to_string(), "{line}");
    }
    assert_eq!(threads[1]["affinity"], "0");

    let ps = run("ps", &["-L", "-p", &pid, "-o", "tid=,comm=,psr="]);
    for (line, ours) in ps.lines().zip(threads) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            (words[0], words[1]),
            (&*ours["tid"].to_string(), ours["name"].as_str().unwrap())
        );
        // A sleeping thread stays on its CPU; the pinned one cannot leave.
        if ours["tid"].as_u64() != threads[0]["tid"].as_u64() {
            assert_eq!(words[2], ours["last_cpu"].to_string(), "{line}");
        }
    }
    assert_eq!(process["container"], "none");
    assert_eq!(process["arguments"][0], "/usr/bin/python3");
    assert_eq!(process["chosen_by"], format!("pid {pid}"));
}

#[test]
fn migrations_grow_as_the_kernel_counts_them() {
    let server = Server::start(None);
    let tid = server.tids()[1];
    let counted = || -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/task/{tid}/sched", server.pid())).ok()?;
        let line = text.lines().find(|l| l.starts_with("se.nr_migrations"))?;
        line.split_whitespace().last()?.parse().ok()
    };
    let ours = || {
        let facts = inspect(&["--pid", &server.pid().to_string()]);
        facts["processes"][0]["threads"][1]["migrations"].clone()
    };
    let Some(before) = counted() else {
        let why = ours()["absent"].as_str().unwrap().to_owned();
        assert!(why.contains("CONFIG_SCHED_DEBUG"), "{why}");
        return;
    };
    for cpu in ["0", "1", "0", "1", "0"] {
        run("taskset", &["-pc", cpu, &tid.to_string()]);
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    // Pinned: no migration can happen between our reading and the kernel's.
    let after = counted().unwrap();
    assert!(after >= before + 4, "{before} to {after}");
    assert_eq!(ours().as_u64(), Some(after));
}

#[test]
fn sockets_are_what_ss_says() {
    let server = Server::start(None);
    let facts = inspect(&["--port", &server.port.to_string()]);
    assert_eq!(pids(&facts), [server.pid()]);
    let s = &facts["processes"][0]["sockets"];
    assert_eq!(s["listening_ports"], serde_json::json!([server.port]));
    assert_eq!((s["established"].as_u64(), s["udp"].as_u64()), (Some(2), Some(1)));
    assert_eq!(s["count"], 4);
    let ss = run("ss", &["-Hltnp"]);
    let mine = format!("pid={},", server.pid());
    let theirs: Vec<&str> = ss.lines().filter(|l| l.contains(&mine)).collect();
    assert_eq!(theirs.len(), 1, "{ss}");
    assert!(theirs[0].contains(&format!("127.0.0.1:{} ", server.port)), "{}", theirs[0]);

    let by_udp = inspect(&["--port", &server.udp_port.to_string()]);
    assert_eq!(pids(&by_udp), [server.pid()]);
    let by_name = inspect(&["--name", "python3"]);
    assert!(pids(&by_name).contains(&server.pid()));
}

#[test]
fn a_process_is_found_by_its_port_in_another_namespace() {
    let ns = Namespace::new();
    let server = Server::start(Some(&ns));
    let facts = inspect(&["--port", &server.port.to_string()]);
    assert_eq!(pids(&facts), [server.pid()]);
    let process = &facts["processes"][0];
    let inode = run("stat", &["-L", "-c", "%i", &format!("/run/netns/{}", ns.name)]);
    assert_eq!(process["net_namespace"].to_string(), inode.trim());
    assert_eq!(process["sockets"]["listening_ports"], serde_json::json!([server.port]));
}

#[test]
fn memory_by_node_adds_up_to_what_is_resident() {
    let server = Server::start(None);
    let facts = inspect(&["--pid", &server.pid().to_string()]);
    let nodes = facts["processes"][0]["memory_by_node"].as_object().expect("no numa_maps");
    let sum: u64 = nodes.values().map(|v| v.as_u64().unwrap()).sum();
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
    let resident = line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024;
    assert!(sum > 32 << 20 && sum.abs_diff(resident) < resident / 10, "{sum} against {resident}");
}

/// A cgroup of the cpuset controller, removed on drop.
struct Cpuset(PathBuf);

impl Cpuset {
    fn new() -> Self {
        needs_root();
        let name = format!("nwtest-{}", std::process::id());
        let v1 = PathBuf::from("/sys/fs/cgroup/cpuset");
        let top = if v1.join("cpuset.cpus").exists() {
            v1
        } else {
            let v2 = PathBuf::from("/sys/fs/cgroup");
            fs::write(v2.join("cgroup.subtree_control"), "+cpuset")
                .expect("this suite needs the cpuset controller under /sys/fs/cgroup");
            v2
        };
        let folder = top.join(name);
        fs::create_dir(&folder).unwrap();
        let this = Self(folder);
        fs::write(this.0.join("cpuset.cpus"), "0").unwrap();
        fs::write(this.0.join("cpuset.mems"), "0").unwrap();
        this
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        // It is empty once its process is reaped.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_cpuset_shows_and_narrows_every_thread() {
    let cpuset = Cpuset::new();
    let server = Server::start(None);
    fs::write(cpuset.0.join("cgroup.procs"), server.pid().to_string()).unwrap();
    let facts = inspect(&["--pid", &server.pid().to_string()]);
    let process = &facts["processes"][0];
    assert_eq!(process["cpuset_cpus"], "0");
    assert_eq!(process["cpuset_mems"], "0");
    assert!(process["cgroup"].as_str().unwrap().contains("nwtest-"), "{}", process["cgroup"]);
    for thread in process["threads"].as_array().unwrap() {
        assert_eq!(thread["affinity"], "0");
    }
    drop(server);
    drop(cpuset);
}

#[test]
fn what_is_not_there_is_said_in_one_line() {
    for (flag, value, says) in [
        ("--pid", "4194304", "no process has the id 4194304"),
        ("--name", "no-such-program", "no process is named no-such-program"),
        ("--port", "1", "no process listens on port 1"),
        ("--unit", "no-such", "no process is in the unit no-such"),
        ("--container", "no-such", "no process is in the container no-such"),
    ] {
        let out = output(NETWRIGHT, &["inspect", "--json", flag, value]);
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(4), "{flag}: {text}");
        assert!(text.contains(says), "{flag}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

/// The recorded process, read from files alone, has the same facts.
#[test]
fn a_recording_has_the_same_processes_settings_and_tuners() {
    use probe::{Root, facts, facts::Selector};
    let server = Server::start(None);
    let selectors = [Selector::Port(server.port), Selector::Name("no-such-program".into())];
    let read = |root: &Root| {
        let host = facts::host::read(root, &mut vec![]);
        let sysctls = facts::sysctl::read(root, &host, &host.page_size_bytes, &mut vec![]);
        (facts::process::read(root, &selectors), sysctls, facts::tuner::read(root))
    };
    let recorder = std::sync::Arc::new(probe::root::record::Recorder::default());
    let live = read(&Root::recording(recorder.clone()));
    let recording = recorder.take();

    let tree = tempfile::tempdir().unwrap();
    let at = |path: &str| {
        let path = tree.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    for (path, bytes) in &recording.files {
        fs::write(at(path), bytes).unwrap();
    }
    for (path, target) in &recording.links {
        std::os::unix::fs::symlink(target, at(path)).unwrap();
    }
    for path in &recording.dirs {
        let _ = fs::create_dir_all(at(path));
    }
    let manifest = model::snapshot::Manifest {
        schema_version: model::SCHEMA_VERSION,
        tool_version: String::new(),
        taken_at_unix_s: 0,
        redacted: false,
        errors: recording.errors,
        listings: recording.listings,
        samples: vec![],
    };
    fs::write(at("/netwright/manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();

    let ((processes, warnings), sysctls, tuners) = read(&Root::open(tree.path()).unwrap());
    assert_eq!(live.0.0.len(), 1);
    assert_eq!((&processes, &warnings), (&live.0.0, &live.0.1));
    assert_eq!(tuners, live.2);
    for (key, ours) in &live.1 {
        assert_eq!(Some(ours), sysctls.get(key), "{key}");
    }
}
