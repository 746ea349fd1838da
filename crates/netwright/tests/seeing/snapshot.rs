//! A capture of a real host against the live host and the classic tools. The archive and the
//! unpacked tree have the same facts; a redacted one has nothing that identifies the host.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::support::{NETWRIGHT, Namespace, needs_root, output, run};
use serde_json::Value;

/// Keys of `inspect --json` with values that change between two readings. All others must be equal
/// in a capture and live.
const VOLATILE: [&str; 27] = [
    "clock_read_ns",
    // Counters and gauges.
    "accept_queue",
    "backlog_len",
    "backlog_bytes",
    "backlog_packets",
    "counts",
    "cpu_ticks",
    "current_khz",
    "driver_stats",
    "dropped",
    "drops",
    "flow_limit_count",
    "last_cpu",
    "memory_by_node",
    "memory_free_bytes",
    "migrations",
    "overlimits",
    "processed",
    "received_rps",
    "requeues",
    "sent_bytes",
    "sent_packets",
    "statistics",
    "time_squeeze",
    "uptime_s",
    // Other suites make and remove namespaces and processes meanwhile.
    "namespaces",
    // An archive has no journal of netwright.
    "applied",
];

fn without_volatile(value: &mut Value) {
    // Reasons for unreadable values come and go with them.
    let elsewhere = |v: &Value| v["what"] == "links of other network namespaces";
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !VOLATILE.contains(&key.as_str()));
            map.values_mut().for_each(without_volatile);
        }
        Value::Array(all) => {
            all.retain(|v| !elsewhere(v));
            all.iter_mut().for_each(without_volatile);
        }
        _ => {}
    }
}

fn differences(at: &str, a: &Value, b: &Value, out: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for key in x.keys().chain(y.keys()).collect::<BTreeSet<_>>() {
                let of =
                    |m: &serde_json::Map<String, Value>| m.get(key).cloned().unwrap_or_default();
                differences(&format!("{at}.{key}"), &of(x), &of(y), out);
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            for (i, (x, y)) in x.iter().zip(y).enumerate() {
                differences(&format!("{at}[{i}]"), x, y, out);
            }
        }
        _ if a != b => out.push(format!("{at}: {a} is not {b}")),
        _ => {}
    }
}

fn same(what: &str, mut a: Value, mut b: Value) {
    without_volatile(&mut a);
    without_volatile(&mut b);
    let mut out = Vec::new();
    differences(what, &a, &b, &mut out);
    assert!(out.is_empty(), "{}", out.join("\n"));
}

/// A namespace with devices of several kinds and addresses of both families.
fn busy_namespace() -> Namespace {
    let ns = Namespace::new();
    let ip = |args: &str| ns.run("ip", &args.split(' ').collect::<Vec<_>>());
    ip(
        "link add nwa numrxqueues 2 numtxqueues 2 type veth peer name nwb numrxqueues 2 numtxqueues 2",
    );
    ip("link add nwbr address 02:4e:57:aa:bb:01 type bridge");
    ip("link set nwa master nwbr");
    ip("link add nwd link nwb address 02:4e:57:aa:bb:02 type macvlan mode bridge");
    for up in ["nwa", "nwb", "nwbr", "nwd"] {
        ip(&format!("link set {up} up"));
    }
    ip("addr add 10.77.66.55/24 dev nwb");
    ip("addr add 10.77.66.56/24 dev nwb");
    ip("addr add fd12:3456:789a::77/64 dev nwd nodad");
    settle(&ns);
    ns
}

/// The kernel reports a link's state, and assigns its own address, up to a second late.
fn settle(ns: &Namespace) {
    for _ in 0..100 {
        let links = ns.run("ip", &["-o", "link"]);
        let addresses = ns.run("ip", &["-o", "-6", "addr"]);
        let waiting = links.lines().any(|l| !l.contains(": lo:") && !l.contains("state UP"));
        if !waiting && !addresses.contains("tentative") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the devices do not come up: {}", ns.run("ip", &["link"]));
}

/// A process with a distinctive command line and a listening socket, killed by its id when dropped.
struct Server(Child);

const SECRET: &str = "--customer=acme-industries-4711";
const LISTEN: &str = "import socket,time\ns=socket.create_server(('10.77.66.55', 5433))\nprint('up', flush=True)\ntime.sleep(600)";

impl Server {
    fn start(ns: &Namespace) -> Self {
        let mut child = Command::new("ip")
            .args(["netns", "exec", &ns.name, "/usr/bin/python3", "-c", LISTEN, SECRET])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0u8; 3];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn path(p: &Path) -> &str {
    p.to_str().unwrap()
}

fn unpacked(archive: &Path, folder: &Path) -> PathBuf {
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    run("tar", &["--zstd", "-xf", path(archive), "-C", path(&tree)]);
    tree
}

#[test]
fn a_capture_says_what_the_live_host_says() {
    let ns = busy_namespace();
    let server = Server::start(&ns);
    let pid = server.0.id().to_string();
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("host.tar.zst");
    ns.run(NETWRIGHT, &["snapshot", "-o", path(&archive), "--window", "300ms", "--pid", &pid]);
    let live = ns.netwright_json(&["inspect", "--json", "--pid", &pid]);
    assert!(live["nics"].as_array().unwrap().len() >= 5, "the namespace's own devices");
    assert!(!live["listeners"].as_array().unwrap().is_empty());

    // Read outside of the namespace: no value may come from the reader's host.
    let read = |root: &Path| -> Value {
        let args = ["inspect", "--json", "--root", path(root), "--pid", &pid];
        serde_json::from_str(&run(NETWRIGHT, &args)).unwrap()
    };
    let from_archive = read(&archive);
    same("archive", from_archive.clone(), live);
    let tree = unpacked(&archive, folder.path());
    let from_tree = read(&tree);
    // Volatile values too, as they were recorded once.
    let mut out = Vec::new();
    differences("tree", &from_tree, &from_archive, &mut out);
    assert!(out.is_empty(), "{}", out.join("\n"));

    let doctor = |root: &Path| {
        let out = output(NETWRIGHT, &["doctor", "--json", "--root", path(root)]);
        assert!(out.status.code().is_some_and(|c| c < 2), "{out:?}");
        let mut said: Value = serde_json::from_slice(&out.stdout).unwrap();
        said["source"].as_object_mut().unwrap().remove("path");
        said
    };
    let mut out = Vec::new();
    differences("doctor", &doctor(&archive), &doctor(&tree), &mut out);
    assert!(out.is_empty(), "{}", out.join("\n"));
}

/// The names of this host, as the classic tools show them.
fn names_of(ns: &Namespace, host: &str) -> BTreeSet<String> {
    let links: Value = serde_json::from_str(&ns.run("ip", &["-j", "addr"])).unwrap();
    let mut names = BTreeSet::from([host.to_owned(), SECRET.to_owned(), "acme".to_owned()]);
    for link in links.as_array().unwrap() {
        names.extend(link["address"].as_str().map(str::to_owned));
        for a in link["addr_info"].as_array().unwrap() {
            names.insert(a["local"].as_str().unwrap().to_owned());
        }
    }
    for everybodys in ["127.0.0.1", "::1", "00:00:00:00:00:00"] {
        names.remove(everybodys);
    }
    names
}

fn every_file(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        all.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            every_file(&entry.path(), all);
        }
    }
}

#[test]
fn redaction_leaves_no_name_in_any_byte() {
    const HOST: &str = "quebec-db-07";
    let ns = busy_namespace();
    let server = Server::start(&ns);
    let pid = server.0.id().to_string();
    let folder = tempfile::tempdir().unwrap();
    let capture = |redact: &str, name: &str| {
        let archive = folder.path().join(name);
        // Another host name, in a namespace, so that the test does not rename the machine.
        let script = format!(
            "hostname {HOST}.acme.example && exec {NETWRIGHT} snapshot -o {} --window 200ms --pid {pid} {redact}",
            path(&archive)
        );
        ns.run("unshare", &["--uts", "sh", "-c", &script]);
        archive
    };
    let names = names_of(&ns, HOST);
    assert!(names.len() >= 8, "{names:?}");
    let leaks = |archive: &Path, folder: &Path| -> BTreeSet<String> {
        let tree = unpacked(archive, folder);
        let mut files = Vec::new();
        every_file(&tree, &mut files);
        let mut found = BTreeSet::new();
        for file in files {
            let mut bytes = path(file.strip_prefix(&tree).unwrap()).as_bytes().to_vec();
            if let Ok(target) = fs::read_link(&file) {
                bytes.extend(path(&target).bytes());
            } else if file.is_file() {
                bytes.extend(fs::read(&file).unwrap());
            }
            let text = String::from_utf8_lossy(&bytes).to_lowercase();
            found.extend(names.iter().filter(|n| text.contains(&n.to_lowercase())).cloned());
        }
        found
    };
    let plain = capture("", "plain.tar.zst");
    let of_plain = tempfile::tempdir().unwrap();
    let seen = leaks(&plain, of_plain.path());
    assert_eq!(seen, names, "without --redact everything is there: the search can find");
    let redacted = capture("--redact", "redacted.tar.zst");
    let of_redacted = tempfile::tempdir().unwrap();
    assert_eq!(leaks(&redacted, of_redacted.path()), BTreeSet::new());

    // The machine is the same.
    let read = |root: &Path| -> Value {
        serde_json::from_str(&run(NETWRIGHT, &["inspect", "--json", "--root", path(root)])).unwrap()
    };
    let (old, new) = (read(&plain), read(&redacted));
    for key in ["cpus", "caches", "numa_nodes", "sysctls", "irqs", "idle_states", "storage"] {
        same(key, new[key].clone(), old[key].clone());
    }
    let nics = |v: &Value| -> Vec<Value> {
        let mut nics = v["nics"].as_array().unwrap().clone();
        for nic in &mut nics {
            let nic = nic.as_object_mut().unwrap();
            nic.remove("mac");
            nic.remove("addresses");
        }
        nics
    };
    same("nics", nics(&new).into(), nics(&old).into());
    assert_ne!(old["nics"], new["nics"]);
}

#[test]
fn lstopo_reads_an_unpacked_capture() {
    needs_root();
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("host.tar.zst");
    run(NETWRIGHT, &["snapshot", "-o", path(&archive), "--window", "100ms"]);
    let tree = unpacked(&archive, folder.path());
    let args = ["--of", "console", "--no-io", "--no-collapse"];
    let objects = |text: &str| -> Vec<String> {
        // The first line has the machine and its memory, which lstopo asks the live system for.
        text.lines().skip(1).map(|l| l.trim().to_owned()).collect()
    };
    let live = run("lstopo-no-graphics", &args);
    let captured =
        Command::new("lstopo-no-graphics").args(args).env("HWLOC_FSROOT", &tree).output().unwrap();
    assert!(captured.status.success());
    assert_eq!(objects(&String::from_utf8_lossy(&captured.stdout)), objects(&live));
}

/// A small file system, unmounted when dropped.
struct Tiny(tempfile::TempDir);

impl Tiny {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        run("mount", &["-t", "tmpfs", "-o", "size=16k", "tmpfs", path(folder.path())]);
        Self(folder)
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_disk_is_one_line_and_leaves_nothing() {
    needs_root();
    let tiny = Tiny::new();
    let archive = tiny.0.path().join("host.tar.zst");
    let out = output(NETWRIGHT, &["snapshot", "-q", "-o", path(&archive), "--window", "100ms"]);
    assert_eq!(out.status.code(), Some(4), "{out:?}");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!(fs::read_dir(tiny.0.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn an_unprivileged_capture_reads_back_as_it_was() {
    let ns = busy_namespace();
    // The owner is visible to root only, whatever the host has mounted.
    let _server = Server::start(&ns);
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
    // The build folder may be closed to others; the test's folder is open.
    let binary = folder.path().join("netwright");
    fs::copy(NETWRIGHT, &binary).unwrap();
    let archive = folder.path().join("host.tar.zst");
    let nobody = |args: &[&str]| {
        let mut all = vec!["--reuid=65534", "--regid=65534", "--clear-groups", path(&binary)];
        all.extend(args);
        ns.run("setpriv", &all)
    };
    nobody(&["snapshot", "-o", path(&archive), "--window", "100ms"]);
    let live: Value = serde_json::from_str(&nobody(&["inspect", "--json"])).unwrap();
    // Root reads it; values denied then are denied in it.
    let text = run(NETWRIGHT, &["inspect", "--json", "--root", path(&archive)]);
    let captured: Value = serde_json::from_str(&text).unwrap();
    assert!(captured["listeners"][0]["pids"].get("denied").is_some(), "{}", captured["listeners"]);
    let without_counts = |mut v: Value| {
        // The number of processes that were hidden.
        let no_access = v["no_access"].as_array_mut().unwrap();
        no_access.retain(|u| !u["what"].as_str().unwrap().starts_with("network namespace"));
        v
    };
    same("unprivileged", without_counts(captured), without_counts(live));
}

#[test]
fn without_a_name_the_archive_has_the_host_and_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for (more, begins) in [(&[][..], host.trim()), (&["--redact"], "snapshot")] {
        let mut command = Command::new(NETWRIGHT);
        // A number without a unit is seconds.
        command.args(["snapshot", "--window", "0.1"]).args(more).current_dir(&folder);
        let out = command.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let names = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name());
        let names: Vec<String> = names.map(|n| n.into_string().unwrap()).collect();
        let name =
            names.iter().find(|n| n.starts_with(begins)).unwrap_or_else(|| panic!("{names:?}"));
        let time = &name[begins.len()..];
        let shape: String =
            time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "-00000000-000000.tar.zst", "{name}");
        assert!(String::from_utf8_lossy(&out.stdout).contains(name.as_str()));
    }
}

/// The time of a snapshot's first sample, and a counter in it.
fn first_sample(archive: &Path, folder: &Path, counter: &str) -> (u64, u64) {
    fs::create_dir(folder).unwrap();
    let tree = unpacked(archive, folder);
    let manifest = fs::read_to_string(tree.join("netwright/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let snmp = fs::read_to_string(tree.join("netwright/samples/0/proc/net/snmp")).unwrap();
    let mut rows = snmp.lines().filter(|l| l.starts_with("Udp:")).map(str::split_whitespace);
    let column = rows.next().unwrap().position(|name| name == counter).unwrap();
    let value = rows.next().unwrap().nth(column).unwrap().parse().unwrap();
    (manifest["samples"][0]["start_ns"].as_u64().unwrap(), value)
}

/// The window between two snapshots is that of their counters, and the drops in it are found.
#[test]
fn what_happened_between_two_snapshots_is_judged() {
    let ns = Namespace::new();
    ns.run("ip", &["link", "set", "lo", "up"]);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let snapshot = |name: &str| {
        let file = file(name);
        ns.run(NETWRIGHT, &["snapshot", "--quiet", "--window", "200ms", "-o", path(&file)]);
        file
    };
    let first = snapshot("first.tar.zst");
    // A socket that nothing reads: all but the first datagrams are dropped.
    let fill = "use Socket; \
        socket(my $r, AF_INET, SOCK_DGRAM, 0); setsockopt($r, SOL_SOCKET, SO_RCVBUF, 2048); \
        bind($r, my $at = sockaddr_in(4242, INADDR_LOOPBACK)) or die; \
        socket(my $s, AF_INET, SOCK_DGRAM, 0); send($s, 'x' x 512, 0, $at) for 1..3000";
    ns.run("perl", &["-e", fill]);
    let second = snapshot("second.tar.zst");
    let judged =
        run(NETWRIGHT, &["doctor", "--json", "--since", path(&first), "--root", path(&second)]);
    let judged: Value = serde_json::from_str(&judged).unwrap();
    let (before, dropped_before) = first_sample(&first, &file("a"), "RcvbufErrors");
    let (after, dropped_after) = first_sample(&second, &file("b"), "RcvbufErrors");
    assert_eq!(judged["window_ns"], after - before);
    assert!(dropped_after - dropped_before > 2_500, "{dropped_before} to {dropped_after}");
    let findings = judged["findings"].as_array().unwrap();
    let found = findings.iter().find(|f| f["rule"] == "udp_receive_drops");
    let found = found.unwrap_or_else(|| panic!("{judged:#}")).to_string();
    let dropped = dropped_after - dropped_before;
    assert!(found.contains(&dropped.to_string()) || found.contains(&grouped(dropped)), "{found}");
    let wrong = output(NETWRIGHT, &["doctor", "--since", path(&second), "--root", path(&first)]);
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(4), "{said}");
    assert!(said.contains("not taken before the second"), "{said}");
}

/// A number below a million with its thousands set apart.
fn grouped(n: u64) -> String {
    if n < 1_000 { n.to_string() } else { format!("{},{:03}", n / 1_000, n % 1_000) }
}
