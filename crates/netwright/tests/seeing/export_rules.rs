//! What `packaging` has for `export`: rules before promtool, a dashboard whose every query a real
//! Prometheus answers, and the service's rights.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::Value;

use crate::support::{
    NETWRIGHT,
    cpu_cgroup::CpuCgroup,
    exporter::{Exporter, Prometheus},
    run,
    serve::Serve,
};

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

fn promtool(args: &[&str], folder: &Path) -> (bool, String) {
    let mut command = Command::new("promtool");
    let out = command.args(args).current_dir(folder).output().expect("promtool");
    let text = [out.stdout, out.stderr].concat();
    (out.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn rules_fire_for_their_faults_and_for_nothing_else() {
    let folder = packaging("prometheus");
    let (fine, said) = promtool(&["check", "rules", "netwright.rules.yml"], &folder);
    assert!(fine, "{said}");
    let (fine, said) = promtool(&["test", "rules", "netwright.rules.test.yml"], &folder);
    assert!(fine, "{said}");
    // Each alert is tried in both hosts of the test: with its fault, and without.
    let rules = fs::read_to_string(folder.join("netwright.rules.yml")).unwrap();
    let tests = fs::read_to_string(folder.join("netwright.rules.test.yml")).unwrap();
    let (faults, none) = tests.split_once("- name: a host without trouble").unwrap();
    let alerts: Vec<&str> =
        rules.lines().filter_map(|l| l.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 10, "{alerts:?}");
    for alert in alerts {
        let fired = format!("- alertname: {alert}\n");
        assert!(faults.contains(&fired), "{alert} never fires");
        assert!(none.contains(&format!("alertname: {alert},")), "{alert} has no quiet case");
    }
    // The tests notice a rule that became blind.
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("netwright.rules.yml"), rules.replace("> 0.8", "> 0.95")).unwrap();
    fs::write(other.path().join("netwright.rules.test.yml"), &tests).unwrap();
    assert!(!promtool(&["test", "rules", "netwright.rules.test.yml"], other.path()).0);
}

/// Every query of the dashboard, as Grafana would send it for all hosts.
fn queries() -> Vec<String> {
    let text = fs::read_to_string(packaging("grafana/netwright.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|p| p["targets"].as_array().into_iter().flatten());
    let queries: Vec<String> = targets
        .map(|t| t["expr"].as_str().unwrap().replace("$__rate_interval", "10s"))
        .map(|q| q.replace("$instance", ".*"))
        .collect();
    assert!(queries.len() >= 29 && !queries.iter().any(|q| q.contains('$')), "{queries:#?}");
    queries
}

/// Traffic that makes drops, waits and a finding: a reader that waits, one that never reads, and a
/// closed port.
fn traffic(stop: &AtomicBool) {
    let reader = UdpSocket::bind("127.0.0.1:0").unwrap();
    let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let to = reader.local_addr().unwrap();
    let from = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    reader.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut bytes = [0; 8];
            while !stop.load(Ordering::Relaxed) {
                let _ = reader.recv(&mut bytes);
            }
        });
        while !stop.load(Ordering::Relaxed) {
            let _ = from.send_to(b"x", to);
            let _ = from.send_to(b"x", closed);
            for _ in 0..200 {
                let _ = from.send_to(&[0; 512], deaf.local_addr().unwrap());
            }
            let _ = std::net::TcpStream::connect(listener.local_addr().unwrap());
            let _ = listener.accept();
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

#[test]
fn every_query_of_the_dashboard_has_an_answer() {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().to_str().unwrap();
    // A namespace of its own, so that no other test meets the value.
    let place = crate::support::Namespace::new();
    let knob = "sysctl.net.core.somaxconn=5555";
    place.run(NETWRIGHT, &["tune", "apply", "--state-dir", folder, "-q", knob]);
    let always = ["--drops", "always", "--waits", "always", "--state-dir", folder];
    let serve = Serve::start(&[]);
    let target = format!("rtt://{}", serve.target());
    let probe = ["--interval", "500ms", "--probe", &target, "--every", "1s"];
    let exporter = Exporter::start(&[&probe[..], &always].concat());
    let rules = fs::read_to_string(packaging("prometheus/netwright.rules.yml")).unwrap();
    // A mesh of a peer that answers and one that does not, in a cgroup with a quota.
    let cgroup = CpuCgroup::new("dashboard");
    cgroup.grant(90);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let peers = state.path().join("peers");
    fs::write(&peers, format!("me\n{}\n{closed}\n", serve.target())).unwrap();
    let peers = ["--peers", peers.to_str().unwrap(), "--self", "me", "--every", "2s"];
    let mesh = Exporter::of("mesh", &peers);
    cgroup.take(mesh.pid());
    let both = format!("'{}', '{}'", exporter.address, mesh.address);
    let one = format!("'{}'", exporter.address);
    let config = Prometheus::scraping(exporter.address, "").replace(&one, &both);
    let prometheus = Prometheus::start(&config, &rules);
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| traffic(&stop));
        let ended = Ended(&stop);
        for query in queries() {
            prometheus.answered(&query);
        }
        // The peer that does not answer is among those that the dashboard counts.
        let silent = "max by (target) (netwright_probe_success{source!=\"\"}) == 0";
        let silent = prometheus.answered(silent);
        assert!(silent.iter().any(|s| s["metric"]["target"] == closed.to_string()), "{silent:?}");
        drop(ended);
    });
    let states = prometheus.api("/api/v1/rules");
    for rule in
        states["groups"].as_array().unwrap().iter().flat_map(|g| g["rules"].as_array().unwrap())
    {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
}

/// Sets the flag also when a check fails, so that the traffic ends.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_service_needs_the_rights_of_its_unit_and_no_others() {
    let unit = packaging("systemd/netwright-export.service");
    let text = fs::read_to_string(&unit).unwrap();
    let of = |key: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no {key}")).to_owned()
    };
    assert_eq!(of("CapabilityBoundingSet"), of("AmbientCapabilities"));
    let start = of("ExecStart");
    let args: Vec<&str> = start.strip_prefix("/usr/bin/netwright ").unwrap().split(' ').collect();
    assert_eq!(args[0], "export");
    // A user of no rights runs a copy, for which the build's folder need not be readable.
    let folder = tempfile::Builder::new().permissions(world_readable()).tempdir().unwrap();
    let program = folder.path().join("netwright");
    fs::copy(NETWRIGHT, &program).unwrap();
    let page = |capabilities: &str| {
        let caps: String = capabilities
            .split_ascii_whitespace()
            .map(|c| format!(",+{}", c.strip_prefix("CAP_").unwrap().to_lowercase()))
            .collect();
        let caps = format!("-all{caps}");
        let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"];
        let [inherited, ambient, bound] =
            ["--inh-caps", "--ambient-caps", "--bounding-set"].map(|o| format!("{o}={caps}"));
        let more = ["--once", "--interval", "500ms"];
        let program = program.to_str().unwrap();
        let all = [&user[..], &[&inherited, &ambient, &bound, program], &args, &more].concat();
        run("setpriv", &all)
    };
    let measured = "netwright_softirq_seconds_total{cpu=\"0\",context=\"syscall\"}";
    let dropped = "netwright_observed_seconds_total{part=\"drops\"}";
    let whole = page(&of("CapabilityBoundingSet"));
    assert!(whole.contains(measured) && whole.contains(dropped), "{whole}");
    assert!(!page("").contains(measured), "the capabilities are needed");
    // 0 is no exposure at all, 10 is that of a service without any of this.
    let args = ["security", "--offline=true", "--threshold=20", unit.to_str().unwrap()];
    assert!(run("systemd-analyze", &args).contains("OK"), "an exposure of 2.0 at most");
}

fn world_readable() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}
