//! `mesh`: hosts in namespaces on one bridge, with a delay, a loss and a silent peer of known size; its
//! metrics; peers that come and go; and a CPU quota.

mod cost;

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use lab::link::LinkSpec;
use model::Nanos;
use serde_json::Value;

use crate::support::{
    NETWRIGHT, Namespace,
    cpu_cgroup::CpuCgroup,
    exporter::{Exporter, PATIENCE, value},
    output, schema,
    serve::Serve,
};

/// Hosts on one bridge: 10.89.0.1, 10.89.0.2, …, each with `netwright serve`.
struct Hosts {
    hosts: Vec<(Namespace, Option<Serve>)>,
    _bad: Option<Link>,
    _bridge: Namespace,
    folder: tempfile::TempDir,
}

/// What one host's link does to frames, each way. This kernel may have no netem, so a thread carries
/// them.
#[derive(Clone, Copy)]
struct Fault {
    host: usize,
    delay_ms: u64,
    loss: f64,
}

/// A link that delays or loses, carried until dropped.
struct Link {
    stop: &'static AtomicBool,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Makes a tap of this name in both namespaces.
    fn start(
        host: &Namespace,
        bridge: &Namespace,
        name: &str,
        fault: Fault,
        folder: &Path,
    ) -> Self {
        let spec = LinkSpec {
            namespaces: [host.name.clone(), bridge.name.clone()],
            link: name.to_owned(),
            queues: 1,
            delay: Nanos(fault.delay_ms * 1_000_000),
            loss: fault.loss,
            seed: 1,
            spin: Nanos(0),
            stats: folder.join("link.json"),
        };
        let (mut ready, mut write) = io::pipe().unwrap();
        let stop: &'static AtomicBool = Box::leak(Box::default());
        let thread = thread::spawn(move || {
            lab::link::run(&spec, stop, &mut write).unwrap();
        });
        let mut line = [0; 6];
        io::Read::read_exact(&mut ready, &mut line).unwrap();
        assert_eq!(&line, b"ready\n");
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Hosts {
    fn up(count: usize, fault: Option<Fault>) -> Self {
        let (bridge, folder) = (Namespace::new(), tempfile::tempdir().unwrap());
        bridge.run("ip", &["link", "add", "br0", "type", "bridge"]);
        bridge.run("ip", &["link", "set", "br0", "up"]);
        let mut bad = None;
        let mut one = |n: usize| {
            let (ns, port) = (Namespace::new(), format!("p{n}"));
            match fault.filter(|f| f.host == n) {
                Some(fault) => bad = Some(Link::start(&ns, &bridge, &port, fault, folder.path())),
                None => {
                    let end = ["peer", "name", &port, "netns", &ns.name];
                    bridge.run("ip", &[&["link", "add", &port, "type", "veth"][..], &end].concat());
                }
            }
            bridge.run("ip", &["link", "set", &port, "master", "br0", "up"]);
            ns.run("ip", &["address", "add", &format!("10.89.0.{n}/24"), "dev", &port]);
            ns.run("ip", &["link", "set", &port, "up"]);
            let mut serve = Command::new("ip");
            serve.args(["netns", "exec", &ns.name, NETWRIGHT, "serve", "--json", "--open"]);
            serve.args(["--bind", &format!("10.89.0.{n}")]);
            (ns, Some(Serve::of(serve)))
        };
        let hosts: Vec<_> = (1..=count).map(&mut one).collect();
        let list: String = (1..=count).map(|n| format!("10.89.0.{n}\n")).collect();
        fs::write(folder.path().join("peers"), format!("# the hosts of the test\n{list}")).unwrap();
        Self { hosts, _bad: bad, _bridge: bridge, folder }
    }

    /// One round of every host, all at once: exit code and document.
    fn round(&self) -> Vec<(i32, Value)> {
        let peers = self.folder.path().join("peers");
        let one = |ns: &Namespace| {
            let args = ["mesh", "--peers", peers.to_str().unwrap(), "--targets", "2"];
            let out =
                ns.output(NETWRIGHT, &[&args[..], &["--seed", "3", "--once", "--json"]].concat());
            let said = String::from_utf8_lossy(&out.stderr);
            let document = serde_json::from_slice(&out.stdout);
            (out.status.code().unwrap(), document.unwrap_or_else(|e| panic!("{e}: {said}")))
        };
        thread::scope(|s| {
            let all: Vec<_> = self.hosts.iter().map(|(ns, _)| s.spawn(move || one(ns))).collect();
            all.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }
}

/// A measured pair: the last numbers of both addresses, and the probe, where there is one.
struct Pair {
    hosts: [usize; 2],
    probe: Option<Value>,
    why: String,
}

impl Pair {
    fn touches(&self, host: usize) -> bool {
        self.hosts.contains(&host)
    }

    fn figure(&self, pointer: &str) -> f64 {
        let probe = self.probe.as_ref().unwrap_or_else(|| panic!("{:?}: {}", self.hosts, self.why));
        probe
            .pointer(pointer)
            .and_then(Value::as_f64)
            .unwrap_or_else(|| panic!("{pointer}: {probe}"))
    }
}

fn pairs(document: &Value) -> Vec<Pair> {
    let number = |name: &Value| name.as_str().unwrap().rsplit('.').next().unwrap().parse().unwrap();
    let one = |t: &Value| Pair {
        hosts: [number(&document["source"]), number(&t["target"])],
        probe: Some(&t["result"]).filter(|r| r.get("absent").is_none()).cloned(),
        why: t["result"].to_string(),
    };
    document["targets"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn a_slow_host_is_seen_by_exactly_the_pairs_that_reach_it() {
    let hosts = Hosts::up(5, Some(Fault { host: 3, delay_ms: 15, loss: 0.0 }));
    let rounds = hosts.round();
    assert!(rounds.iter().all(|(code, _)| *code == 0), "{rounds:?}");
    let all: Vec<Pair> = rounds.iter().flat_map(|(_, d)| pairs(d)).collect();
    let different: BTreeSet<[usize; 2]> = all.iter().map(|p| p.hosts).collect();
    assert_eq!(different.len(), 10, "each host has two targets");
    let targets: BTreeSet<usize> = all.iter().map(|p| p.hosts[1]).collect();
    assert_eq!(targets.len(), 5, "every host is measured");
    for pair in &all {
        let least = pair.figure("/rtt_ns/min") / 1e6;
        let expected = if pair.touches(3) { 30.0..60.0 } else { 0.0..30.0 };
        assert!(expected.contains(&least), "{:?}: {least} ms", pair.hosts);
    }
}

#[test]
fn a_loss_of_a_tenth_is_within_its_binomial_interval() {
    // One minus the share that survives both ways: a tenth.
    let hosts = Hosts::up(5, Some(Fault { host: 4, delay_ms: 0, loss: 1.0 - 0.9_f64.sqrt() }));
    let (mut lost, mut sent) = (0.0, 0.0);
    for _ in 0..3 {
        for pair in hosts.round().iter().flat_map(|(_, d)| pairs(d)) {
            // The handshake may meet the loss as well; what is not measured is not counted.
            let Some(_) = pair.probe.as_ref().filter(|_| pair.touches(4)) else {
                let other = pair.figure("/lost");
                assert!(other <= 3.0, "{:?} lost {other}", pair.hosts);
                continue;
            };
            lost += pair.figure("/lost");
            sent += pair.figure("/lost") + pair.figure("/answered");
        }
    }
    assert!(sent >= 600.0, "{sent} datagrams");
    // Five standard deviations.
    let (expected, reach) = (0.1 * sent, 5.0 * (0.1 * 0.9 * sent).sqrt());
    assert!((lost - expected).abs() <= reach, "{lost} of {sent}; {expected} ± {reach}");
}

#[test]
fn a_peer_that_is_down_is_named_and_the_others_are_measured() {
    let mut hosts = Hosts::up(4, None);
    hosts.hosts[1].1 = None;
    for (code, document) in hosts.round() {
        let pairs = pairs(&document);
        let down: Vec<&Pair> = pairs.iter().filter(|p| p.hosts[1] == 2).collect();
        assert_eq!(code, i32::from(!down.is_empty()), "{document}");
        for pair in pairs.iter().filter(|p| p.hosts[1] != 2) {
            assert!(pair.figure("/answered") >= 50.0, "{document}");
        }
        assert!(down.iter().all(|p| p.why.contains("10.89.0.2")), "{document}");
    }
}

/// A file of peers.
fn list(folder: &Path, peers: &[&str]) -> PathBuf {
    let file = folder.join("peers");
    let beside = folder.join("new");
    fs::write(&beside, peers.join("\n")).unwrap();
    fs::rename(beside, &file).unwrap();
    file
}

#[test]
fn metrics_follow_peers_that_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let serves = [Serve::start(&["--service-time", "3ms"]), Serve::start(&[])];
    let [first, second] = [serves[0].target(), serves[1].target()];
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed = closed.to_string();
    let file = list(folder.path(), &["me", first, &closed]);
    let args = ["--peers", file.to_str().unwrap(), "--self", "me", "--every", "1s"];
    let mesh = Exporter::of("mesh", &args);
    let of =
        |name: &str, target: &str| format!("netwright_{name}{{source=\"me\",target=\"{target}\"");
    mesh.page_with(&format!("{}}} 0", of("probe_success", &closed)));
    mesh.page_with(&format!("{}}} 1", of("probe_success", first)));
    let least = format!("{},quantile=\"0.0\"}}", of("probe_rtt_seconds", first));
    let answered = format!("{},result=\"answered\"}}", of("probe_datagrams_total", first));
    let until = Instant::now() + PATIENCE;
    // Never below the service time; soon near it, unless the server has no CPU.
    let page = loop {
        let page = mesh.page();
        let least = value(&page, &least).unwrap_or(1.0);
        assert!(least >= 0.003, "{page}");
        if least < 0.1 && value(&page, &answered).unwrap() >= 50.0 {
            break page;
        }
        assert!(Instant::now() < until, "{page}");
        thread::sleep(Duration::from_millis(200));
    };
    assert_eq!(value(&page, "netwright_mesh_peers"), Some(3.0));
    // Garbage leaves the targets as they are; how many peers there are is not known.
    fs::write(&file, b"me\n\xff\xfe\x00 nonsense\n").unwrap();
    let until = Instant::now() + PATIENCE;
    let page = loop {
        let page = mesh.page();
        if value(&page, "netwright_mesh_peers").is_none() {
            break page;
        }
        assert!(Instant::now() < until, "{page}");
        thread::sleep(Duration::from_millis(200));
    };
    assert!(value(&page, &answered).is_some(), "{page}");
    list(folder.path(), &["me", first, second]);
    let page = mesh.page_with(&format!("{}}} 1", of("probe_success", second)));
    assert!(!page.contains(&closed), "{page}");
    assert!(value(&page, &answered).unwrap() >= 50.0, "the sums of a target that stays go on");
    let series = page.lines().filter(|l| !l.starts_with('#')).count();
    assert!(series <= 7 + 2 * 12, "{series} series: {page}");
    // The same host under another name is another source.
    list(folder.path(), &["me:7471", first, second]);
    let renamed = of("probe_success", first).replace("\"me\"", "\"me:7471\"");
    let page = mesh.page_with(&format!("{renamed}}} 1"));
    assert!(!page.contains("source=\"me\""), "{page}");
    assert_eq!(mesh.end(), Some(0));
}

#[test]
fn a_name_is_a_list_too() {
    let serve = Serve::start(&[]);
    let port = serve.target().rsplit(':').next().unwrap();
    let name = format!("dns:localhost:{port}");
    let args = ["mesh", "--peers", &name, "--self", "127.0.0.1", "--once", "--json"];
    let out = output(NETWRIGHT, &args);
    let said = String::from_utf8_lossy(&out.stderr);
    // localhost has one address or two, of which nobody answers at the other.
    if out.status.code() == Some(4) {
        let only = format!("{name}: the list has no peer but 127.0.0.1:{port}");
        assert!(said.contains(&only), "{said}");
        return;
    }
    let document: Value =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert_eq!(document["source"], format!("127.0.0.1:{port}"), "{document}");
    assert_eq!((document["peers"].as_u64(), out.status.code()), (Some(2), Some(1)), "{document}");
}

#[test]
fn wrong_lists_and_flags_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good", b"127.0.0.1\n192.0.2.9\n");
    let garbage = file("garbage", b"db1\n\xff\xfe{}\n");
    let alone = file("alone", b"127.0.0.1 # nobody else yet\n");
    let twice = file("twice", b"127.0.0.1\n127.0.0.2\n");
    let port = file("port", b"127.0.0.1:99999\n");
    let many = file("many", "x\n".repeat(1 << 20).as_bytes());
    for (args, code, said) in [
        (&["--peers", &garbage][..], 2, "line 2: expected HOST or HOST:PORT"),
        (&["--peers", &twice], 2, "choose one by --self"),
        (&["--peers", &port], 2, "a port is a number"),
        (&["--peers", &many, "--once"], 4, "many"),
        (&["--peers", "/nowhere/peers", "--once"], 4, "/nowhere/peers"),
        (&["--peers", "dns:no-such-host.invalid", "--once"], 4, "does not resolve"),
        (&["--peers", "dns:"], 2, "host name"),
        (&["--peers", &good, "--self", "web", "--once"], 4, "--self web"),
        (&["--peers", &alone, "--once"], 4, "no peer but 127.0.0.1"),
        (&["--peers", &good, "--targets", "0"], 2, "--targets"),
        (&["--peers", &good, "--every", "1ms"], 2, "--every"),
        (&["--peers", &good, "--json"], 2, "--once"),
        (&["--peers", &good, "--listen", "0.0.0.0:0", "-q"], 2, "needs a secret"),
        (&[], 2, "--peers"),
    ] {
        let out = output(NETWRIGHT, &[&["mesh"][..], args].concat());
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
}

#[test]
fn a_throttled_mesh_says_so() {
    let cgroup = CpuCgroup::new("mesh");
    cgroup.grant(5);
    let (serve, folder) = (Serve::start(&[]), tempfile::tempdir().unwrap());
    let file = list(folder.path(), &["me", serve.target()]);
    let once = |json: &str| {
        let line = format!(
            "echo $$ > {}/cgroup.procs && exec {NETWRIGHT} mesh --peers {} --self me --once {json}",
            cgroup.folder.display(),
            file.display()
        );
        let out = schema::ended(Command::new("sh").args(["-c", &line]));
        String::from_utf8(out.stdout).unwrap()
    };
    let before = cgroup.throttled_periods();
    let document: Value = serde_json::from_str(&once("--json")).unwrap();
    let by_kernel = cgroup.throttled_periods() - before;
    let said = document["quota"]["throttled_periods"].as_u64().unwrap();
    assert!((1..=by_kernel).contains(&said), "{said}, and the kernel {by_kernel}: {document}");
    assert!(once("").contains("own CPU throttled for"));
    // The same without a limit.
    cgroup.grant(400);
    let document: Value = serde_json::from_str(&once("--json")).unwrap();
    assert_eq!(document["quota"]["throttled_periods"], 0, "{document}");
}
