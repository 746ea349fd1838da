//! Tests of practice hosts with the classic tools: each claim holds, and nothing remains
//! afterwards. Runs as root; `make deps-test` installs QEMU and Debian's kernel.

mod cases;

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, await_listener, needs_root, output};
use lab::{
    Registry,
    containers::ContainersSpec,
    pair::PairSpec,
    preset::{BLOCKED, Preset},
    server::{self, DiskModel, ServerSpec},
    testing::TestLab,
};
use model::{BitsPerSec, Nanos};

fn stdout(lab: &TestLab, host: &str, argv: &[&str]) -> String {
    let out = lab.output(host, argv).unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.code, 0, "{argv:?} on {host}: {complained}");
    said.into_owned()
}

fn pair(spec: PairSpec) -> TestLab {
    needs_root();
    TestLab::pair(&PairSpec { program: Some(NETWRIGHT.into()), ..spec }).unwrap()
}

/// What is left of a lab on this machine: its namespaces, folder, links and cgroups, and its processes.
fn left_of(name: &str) -> Vec<String> {
    let list = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|e| Some(e.ok()?.path().display().to_string())).collect::<Vec<_>>()
    };
    let folders = ["/run/netns", "/run/netwright/lab", "/sys/class/net", "/sys/fs/cgroup"];
    let mut all: Vec<String> = folders.iter().flat_map(|f| list(f)).collect();
    all.extend(list("/sys/fs/cgroup").iter().flat_map(|tree| list(tree)));
    // A name may begin another: `t7-1` and `t7-10`.
    let own = |path: &String| {
        let end = path.find(name).map(|at| at + name.len());
        end.is_some_and(|end| !path[end..].starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    all.retain(own);
    let processes = output("pgrep", &["-a", "-f", &format!("nw-{name}-|lab/{name}/")]);
    all.extend(String::from_utf8_lossy(&processes.stdout).lines().map(str::to_owned));
    all
}

/// It may take a moment until a process that was killed is gone.
fn is_gone(name: &str, when: &str) {
    let asked = Instant::now();
    loop {
        let left = left_of(name);
        if left.is_empty() {
            return;
        }
        assert!(asked.elapsed() < Duration::from_secs(10), "{when}: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ping_ms(lab: &TestLab, from: &str, to: &str, count: u32) -> (f64, u32) {
    let count = count.to_string();
    let out = lab.output(from, &["ping", "-q", "-i", "0.005", "-c", &count, to]).unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let received = said
        .split(", ")
        .find_map(|p| p.strip_suffix(" received")?.parse().ok())
        .unwrap_or_else(|| panic!("ping said: {said}"));
    let min = said
        .lines()
        .find_map(|l| l.strip_prefix("rtt min/avg/max/mdev = ")?.split('/').next()?.parse().ok())
        .unwrap_or(f64::NAN);
    (min, received)
}

#[test]
fn a_pair_has_the_queues_mtu_masks_and_addresses_asked_for() {
    let lab = pair(PairSpec {
        queues: 3,
        links: 2,
        mtu: Some(9000),
        rps: Some("1".into()),
        ..PairSpec::default()
    });
    for host in ["left", "right"] {
        let channels = stdout(&lab, host, &["ethtool", "-l", "eth0"]);
        assert_eq!(channels.matches("RX:\t\t3").count(), 2, "{channels}");
        for wire in ["eth0", "eth1"] {
            let link = stdout(&lab, host, &["ip", "link", "show", wire]);
            assert!(link.contains("mtu 9000") && link.contains("state UP"), "{link}");
        }
        let masks =
            stdout(&lab, host, &["sh", "-c", "cat /sys/class/net/eth?/queues/rx-*/rps_cpus"]);
        assert_eq!(masks.lines().count(), 6);
        assert!(masks.lines().all(|l| l.trim_start_matches(['0', ',']) == "1"), "{masks}");
    }
    for to in ["10.99.0.2", "10.99.1.2", "fd99:0:0:1::2"] {
        assert_eq!(ping_ms(&lab, "left", to, 3).1, 3, "{to}");
    }
    // A server that runs on a host ends with it.
    stdout(&lab, "left", &["sh", "-c", "iperf3 -s -D"]);
    let inside = || output("ip", &["netns", "pids", &format!("nw-{}-left", lab.state.name)]).stdout;
    let pid = String::from_utf8_lossy(&inside()).trim().to_owned();
    assert!(std::path::Path::new("/proc").join(&pid).exists(), "iperf3 does not run");
    let folder = lab.folder();
    drop(lab);
    assert!(!folder.exists());
    // It has ended; a zombie may remain until init reaps it.
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "still there: {state}");
}

#[test]
fn a_rate_limit_limits() {
    let lab = pair(PairSpec { rate: Some(BitsPerSec(100_000_000)), ..PairSpec::default() });
    let mut server = lab.command("right", &["iperf3", "-s", "-1"]).unwrap();
    let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    await_listener(5201, |args| stdout(&lab, "right", &[&["ss"], args].concat()));
    let text = stdout(&lab, "left", &["iperf3", "-c", "10.99.0.2", "-t", "3", "-O", "1", "-J"]);
    let _ = server.wait();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rate = json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    // TBF counts Ethernet frames; TCP's payload is 1448 of every 1514 bytes: 95.6 Mbit/s.
    assert!((90e6..97e6).contains(&rate), "{rate} bit/s through 100 Mbit/s");
}

#[test]
fn added_delay_and_loss_are_what_was_asked_for_and_the_wire_says_its_own_error() {
    let plain = pair(PairSpec { queues: 1, ..PairSpec::default() });
    let (base, _) = ping_ms(&plain, "left", "10.99.0.2", 100);
    drop(plain);
    let lab = pair(PairSpec {
        queues: 1,
        delay: Some(Nanos(2_000_000)),
        loss: 0.1,
        ..PairSpec::default()
    });
    let (min, received) = ping_ms(&lab, "left", "10.99.0.2", 400);
    let added = min - base;
    assert!((3.98..4.4).contains(&added), "2 ms each way added {added} ms to {base} ms");
    // Lost either way: 1 - 0.9² = 19% of 400 = 76, standard deviation 7.8; five of them.
    assert!((285..=363).contains(&received), "{received} of 400 came back at 10% loss each way");
    std::thread::sleep(Duration::from_millis(1500));
    match fs::read(lab.folder().join("link-eth0.json")) {
        Ok(json) => {
            let stats: lab::link::LinkStats = serde_json::from_slice(&json).unwrap();
            let pings_lost = 400 - u64::from(received);
            // Neighbour discovery and similar packets are lost too. On a busy machine some answers come
            // after ping's end, and a request may never be sent.
            let lost = stats.lost.iter().sum::<u64>();
            let late = stats.carried[1].saturating_sub(received.into());
            let unsent = 400u64.saturating_sub(stats.carried[0] + stats.lost[0]);
            assert!(unsent <= 10 && late <= 20, "{stats:?}, {received} received");
            assert!(lost + late + unsent >= pings_lost, "{stats:?} for {pings_lost}");
            assert!(stats.late_ns.n >= 400 && stats.late_ns.p50.is_some(), "{stats:?}");
            assert_eq!(stats.overflowed, [0, 0]);
        }
        Err(_) => {
            let qdisc = stdout(&lab, "left", &["tc", "qdisc", "show", "dev", "eth0"]);
            assert!(qdisc.contains("netem"), "neither a link of ours nor netem: {qdisc}");
        }
    }
}

#[test]
fn containers_have_their_own_cgroup_cpuset_and_namespace_on_one_bridge() {
    needs_root();
    let spec = ContainersSpec { cpus: Some("0".into()), mtu: Some(1400), ..Default::default() };
    let lab = TestLab::containers(&spec).unwrap();
    let status = stdout(&lab, "c1", &["grep", "Cpus_allowed_list", "/proc/self/status"]);
    assert_eq!(status.trim(), "Cpus_allowed_list:\t0");
    let groups: Vec<String> =
        ["c1", "c2"].iter().map(|c| stdout(&lab, c, &["cat", "/proc/self/cgroup"])).collect();
    assert!(groups.iter().all(|g| g.contains("/docker-")), "{groups:?}");
    assert_ne!(groups[0], groups[1]);
    assert_eq!(ping_ms(&lab, "c1", "10.98.0.3", 3).1, 3);
    let ports =
        output("ip", &["-n", lab_bridge(&lab).as_str(), "-br", "link", "show", "master", "br0"]);
    assert_eq!(String::from_utf8_lossy(&ports.stdout).lines().count(), 2);
    let name = lab.state.name.clone();
    assert!(!left_of(&name).is_empty());
    drop(lab);
    is_gone(&name, "removed");
}

fn lab_bridge(lab: &TestLab) -> String {
    format!("nw-{}-bridge", lab.state.name)
}

/// All of these share one guest, as booting is slow.
#[test]
fn a_server_has_its_nodes_queues_and_disk_and_runs_this_binary() {
    needs_root();
    let begun = Instant::now();
    let spec = ServerSpec { disk: DiskModel::Nvme, ..ServerSpec::new(NETWRIGHT) };
    let lab = TestLab::server_with(&spec, Preset::Queues).unwrap();
    println!("the guest took commands after {:?}", begun.elapsed());

    assert_eq!(stdout(&lab, "server", &["nproc"]).trim(), "4");
    assert_eq!(stdout(&lab, "server", &["cat", "/sys/devices/system/node/online"]).trim(), "0-1");
    let channels = stdout(&lab, "server", &["ethtool", "-l", "eth0"]);
    assert!(channels.contains("Combined:\t4") && channels.contains("Combined:\t1"), "{channels}");
    // The remote host has channels as well; current and maximum are known and can be set.
    let channels = || stdout(&lab, "client", &["ethtool", "-l", "eth0"]);
    let said = channels();
    assert!(
        said.matches("RX:\t\t4").count() == 1 && said.matches("RX:\t\t1").count() == 1,
        "{said}"
    );
    stdout(&lab, "client", &["ethtool", "-L", "eth0", "rx", "4", "tx", "4"]);
    assert_eq!(channels().matches("TX:\t\t4").count(), 2, "{}", channels());
    // An emulated guest may exceed ping's timeout; one reply proves the link.
    assert!(ping_ms(&lab, "client", "10.97.0.2", 20).1 > 0);
    let both = lab.output("server", &["sh", "-c", "echo out; echo err >&2; exit 7"]).unwrap();
    assert_eq!((both.code, both.stdout, both.stderr), (7, b"out\n".to_vec(), b"err\n".to_vec()));
    let long = stdout(&lab, "server", &["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"]);
    assert_eq!(long.len(), 3_000_000);
    assert_eq!(lab.output("server", &["/no/such/program"]).unwrap().code, 127);

    let text = stdout(&lab, "server", &[NETWRIGHT, "inspect", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    let nic = facts["nics"].as_array().unwrap().iter().find(|n| n["name"] == "eth0").unwrap();
    assert_eq!(nic["numa_node"], 1);
    assert_eq!(
        (&nic["channels"]["combined"], &nic["channels"]["max_combined"]),
        (&1.into(), &4.into())
    );
    let nodes: Vec<_> =
        facts["cpus"].as_array().unwrap().iter().map(|c| c["numa_node"].clone()).collect();
    assert_eq!(nodes, [0, 0, 1, 1]);
    let irq = facts["irqs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|i| i["nic"] == "eth0" && i["queue"] == "rx-0");
    assert_eq!(irq.unwrap()["numa_node"], 1);
    assert!(facts["storage"].as_array().unwrap().iter().any(|s| s["name"] == "nvme0"));
    cases::queues::is_worked(&lab);

    let name = lab.state.name.clone();
    assert!(!left_of(&name).is_empty());
    drop(lab);
    is_gone(&name, "removed");
}

#[test]
fn what_a_killed_up_leaves_is_removed_by_the_next_and_a_standing_lab_is_left_alone() {
    needs_root();
    let name = format!("up-t{}-killed", std::process::id());
    // Killed at several moments of bringing up. Its watchdog puts each right; where that was killed too, `down`
    // does.
    for delay_ms in [5, 15, 25, 30, 35, 40, 45, 50, 60, 80, 100, 150] {
        let mut child = Command::new(NETWRIGHT)
            .args(["lab", "up", "pair", "--delay", "1ms", "--name", &name])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        let alone = delay_ms % 10 == 0;
        let watchdog = format!("tune watchdog --maker-pid {} ", child.id());
        if !alone {
            output("pkill", &["-KILL", "-f", &watchdog]);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let when = format!("killed after {delay_ms} ms");
        // One that was up before the kill stays.
        let state = fs::read_to_string(format!("/run/netwright/lab/{name}/state.json"));
        if alone && !state.is_ok_and(|s| s.contains("\"complete\":true")) {
            is_gone(&name, &when);
        }
        let down = output(NETWRIGHT, &["lab", "down", &name]);
        assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
        is_gone(&name, &when);
    }
    assert!(output(NETWRIGHT, &["lab", "up", "pair", "-q", "--name", &name]).status.success());
    // The same lab again is accepted, another one under the same name is not.
    assert!(output(NETWRIGHT, &["lab", "up", "pair", "-q", "--name", &name]).status.success());
    let other = output(NETWRIGHT, &["lab", "up", "pair", "-q", "--queues", "2", "--name", &name]);
    assert_eq!(other.status.code(), Some(2));
    let host = format!("{name}/left");
    // A run on a practice host is kept with the way there.
    let store = tempfile::tempdir().unwrap();
    let store = store.path().join("runs").display().to_string();
    let begin = ["lab", "exec", &host, "--", NETWRIGHT];
    let kept = ["doctor", "--window", "200ms", "--no-bpf", "--json", "--store", &store];
    let run = Command::new(NETWRIGHT)
        .args(begin)
        .args(kept)
        .env_remove("NETWRIGHT_STORE")
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report = ["report", "history:1", "--format", "markdown"];
    let page =
        Command::new(NETWRIGHT).args(report).env("NETWRIGHT_STORE", &store).output().unwrap();
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    let again = format!("netwright lab exec {host} -- netwright doctor --window 200ms");
    assert!(page.contains(&again), "{page}");
    let exec = output(NETWRIGHT, &["lab", "exec", &host, "--", "sh", "-c", "exit 9"]);
    assert_eq!(exec.status.code(), Some(9));
    let exec = output(NETWRIGHT, &["lab", "exec", &host, "--", "no-such-command"]);
    assert_eq!(exec.status.code(), Some(127), "{}", String::from_utf8_lossy(&exec.stderr));
    assert!(output(NETWRIGHT, &["lab", "down", &name]).status.success());
    assert!(output(NETWRIGHT, &["lab", "down", &name]).status.success(), "down is idempotent");
    is_gone(&name, "removed");
}

#[test]
fn refusals_are_one_line_with_the_right_code() {
    needs_root();
    let refuse = |args: &[&str], code: i32, word: &str| {
        let out = output(NETWRIGHT, args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    };
    refuse(&["lab", "up", "pair", "--name", "../x"], 2, "no lab name");
    refuse(&["lab", "up", "pair", "--loss", "1", "--name", "t0-x"], 2, "0.1%");
    refuse(&["lab", "up", "pair", "--queues", "0", "--name", "t0-x"], 2, "--queues");
    refuse(&["lab", "up", "pair", "--rps", "zz", "--name", "t0-x"], 2, "hexadecimal");
    refuse(&["lab", "up", "pair", "--preset", "softirq", "--name", "t0-x"], 2, "lab up server");
    let wire = ["lab", "up", "pair", "--preset", "queues", "--mtu", "9000", "--name", "t0-x"];
    refuse(&wire, 2, "lab up server --preset queues");
    refuse(&["lab", "up", "server", "--cpus", "3", "--name", "t0-x"], 2, "evenly");
    refuse(&["lab", "up", "server", "--memory", "60G", "--name", "t0-x"], 4, "MiB");
    refuse(&["lab", "exec", "nowhere", "--", "true"], 4, "nowhere");
    let out =
        output("setpriv", &["--reuid=65534", "--clear-groups", NETWRIGHT, "lab", "up", "pair"]);
    assert_eq!(out.status.code(), Some(3), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Brings a preset up by the command line, and takes it down when dropped.
struct CommandLab {
    name: String,
}

impl CommandLab {
    fn up(shape: &str, preset: &str) -> Self {
        Self::up_with(shape, preset, &[])
    }

    fn up_with(shape: &str, preset: &str, options: &[&str]) -> Self {
        needs_root();
        // Not a name of the library's tests: the `up` command has ended, so another test process
        // would remove this lab as that of a killed test.
        let name = format!("up-t{}-{preset}", std::process::id());
        let mut args = vec!["lab", "up", shape, "--preset", preset, "-q", "--name", &name];
        args.extend(options);
        let out = output(NETWRIGHT, &args);
        assert!(out.status.success(), "{preset}: {}", String::from_utf8_lossy(&out.stderr));
        Self { name }
    }

    fn exec(&self, host: &str, argv: &[&str]) -> String {
        let host = format!("{}/{host}", self.name);
        let mut args = vec!["lab", "exec", host.as_str(), "--"];
        args.extend(argv);
        let out = output(NETWRIGHT, &args);
        assert!(out.status.success(), "{argv:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }
}

impl Drop for CommandLab {
    fn drop(&mut self) {
        let _ = output(NETWRIGHT, &["lab", "down", &self.name]);
    }
}

#[test]
fn the_latency_preset_is_slower_than_loopback_by_what_it_says() {
    let lab = CommandLab::up("pair", "latency");
    let min = |to: &str| -> f64 {
        let said = lab.exec("left", &["ping", "-q", "-i", "0.005", "-c", "200", to]);
        let line = said.lines().find_map(|l| l.strip_prefix("rtt min/avg/max/mdev = ")).unwrap();
        line.split('/').next().unwrap().parse().unwrap()
    };
    let (wire, loopback) = (min("10.99.0.2"), min("127.0.0.1"));
    assert!((0.08..0.4).contains(&(wire - loopback)), "{wire} ms beside {loopback} ms on loopback");
    let name = lab.name.clone();
    assert!(!left_of(&name).is_empty());
    drop(lab);
    is_gone(&name, "removed");
}

#[test]
fn the_tengig_preset_holds_tcp_back_by_its_buffers() {
    let lab = CommandLab::up("pair", "tengig");
    assert!(lab.exec("left", &["tc", "qdisc", "show", "dev", "eth0"]).contains("rate 1Gbit"));
    assert!(lab.exec("left", &["ip", "link", "show", "eth0"]).contains("mtu 1500"));
    for host in ["left", "right"] {
        let buffers = lab.exec(host, &["sysctl", "-n", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]);
        assert!(buffers.lines().all(|l| l.ends_with("\t131072")), "{buffers}");
    }
    lab.exec("right", &["iperf3", "-s", "-1", "-D"]);
    await_listener(5201, |args| lab.exec("right", &[&["ss"], args].concat()));
    let text = lab.exec("left", &["iperf3", "-c", "10.99.0.2", "-t", "3", "-J"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rate = json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    // A window of at most 128 KiB per round trip of at least 4 ms allows 262 of 1,000 Mbit/s. The
    // kernel uses about half of the buffer as window: 150 Mbit/s on a quiet machine.
    assert!((76e6..262e6).contains(&rate), "{rate} bit/s");
    let name = lab.name.clone();
    assert!(!left_of(&name).is_empty());
    drop(lab);
    is_gone(&name, "removed");
}

#[test]
fn the_migration_preset_lets_two_containers_wander_and_inspect_finds_them() {
    let lab = CommandLab::up("containers", "migration");
    lab.exec("c2", &["sh", "-c", "iperf3 -s -D; sleep 0.5"]);
    let text = output(NETWRIGHT, &["inspect", "--json", "--name", "iperf3"]).stdout;
    let facts: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let cgroup = lab.exec("c2", &["cat", "/proc/self/cgroup"]);
    let id = cgroup.split("docker-").nth(1).and_then(|r| r.split('.').next()).unwrap();
    let found = facts["processes"].as_array().unwrap().iter().any(|p| p["container"] == id);
    assert!(found, "no process in container {id}: {}", facts["processes"]);
    cases::migration::is_worked(&lab.name);
    let name = lab.name.clone();
    assert!(!left_of(&name).is_empty());
    drop(lab);
    is_gone(&name, "removed");
}

#[test]
fn the_softirq_preset_sends_the_interrupts_to_the_other_node() {
    // Nothing here attaches an eBPF program: a thread for each CPU cannot hang this guest.
    let lab = CommandLab::up_with("server", "softirq", &["--emulation-threads", "each"]);
    let text = lab.exec("server", &[NETWRIGHT, "inspect", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    let nic = facts["nics"].as_array().unwrap().iter().find(|n| n["name"] == "eth0").unwrap();
    assert_eq!(nic["numa_node"], 1);
    let script = "for i in /proc/irq/*; do ls $i | grep -qE 'input|output' && cat $i/smp_affinity_list; done; true";
    let masks = lab.exec("server", &["sh", "-c", script]);
    assert!(masks.lines().count() >= 8 && masks.lines().all(|l| l == "0-1"), "{masks}");

    // The preset `queues` in a guest with CPUs in parallel, as here.
    lab.exec("server", &["sh", "-c", BLOCKED]);
    let list = lab.exec("server", &["tc", "filter", "show", "dev", "eth0", "ingress"]);
    assert_eq!(list.matches("gact action drop").count(), 4_000);
    lab.exec("client", &["ping", "-c", "1", "-W", "20", "10.97.0.2"]);
    let name = lab.name.clone();
    assert!(!left_of(&name).is_empty());
    drop(lab);
    is_gone(&name, "removed");
}

#[test]
fn a_guest_that_cannot_start_or_takes_too_long_says_so_and_leaves_nothing() {
    needs_root();
    let late = ServerSpec { patience: Duration::from_millis(300), ..ServerSpec::new(NETWRIGHT) };
    let fails = |spec: &ServerSpec| {
        let (registry, name) = (Registry::default(), format!("up-t{}-fails", std::process::id()));
        let mut lab = registry.begin(&name, "server", None, "a test's").unwrap();
        let said = server::up(&mut lab, spec, &mut |_| ()).unwrap_err().to_string();
        drop(lab);
        is_gone(&name, &said);
        said
    };
    let said = fails(&late);
    assert!(said.contains("did not happen within"), "{said}");

    let cache = tempfile::tempdir().unwrap();
    fs::create_dir_all(cache.path().join("lib/modules/9.9.9")).unwrap();
    fs::write(cache.path().join("lib/modules/9.9.9/modules.dep"), "").unwrap();
    fs::write(cache.path().join("vmlinuz-9.9.9"), "no kernel at all").unwrap();
    let broken = ServerSpec { cache: cache.path().to_owned(), ..ServerSpec::new(NETWRIGHT) };
    let said = fails(&broken);
    assert!(said.contains("QEMU ended") && said.contains("  | "), "{said}");
}
