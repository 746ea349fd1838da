//! Tests of the responder that `explain` starts or asks for, and of CPU time that others use.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use super::{alone, explain};
use crate::support::{
    NETWRIGHT,
    http::{Nginx, Server, plain},
    looks::in_most_looks,
    needs_root,
    serve::Serve,
};

/// A responder of ours may use the server's CPUs, whatever this command is bound to.
#[test]
fn a_responder_of_our_own_may_run_where_the_server_may() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let nginx = Nginx::start(folder.path(), "location / { return 200 hello; }");
    let allowed = |pid: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let list = text.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
        Some(list.trim().to_owned())
    };
    let ours = allowed("self").unwrap();
    let first = ours.split(['-', ',']).next().unwrap();
    let mut child = Command::new("taskset")
        .args(["-c", first, NETWRIGHT, "explain", "--quiet", &nginx.url("/"), "--duration", "1m"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let seen = (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        let own = format!("/proc/{0}/task/{0}/children", child.id());
        let pid = std::fs::read_to_string(own).ok()?.split_whitespace().next()?.to_owned();
        // Between fork and exec the child still has its parent's program.
        let name = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        name.contains("serve").then(|| allowed(&pid))?
    });
    let its = allowed(&child.id().to_string());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((its.as_deref(), seen.as_ref()), (Some(first), Some(&ours)));
}

/// Two busy loops take most of both CPUs. The server's demand must not include them; it is compared
/// with what nginx used per logged request.
#[test]
fn what_strangers_are_busy_with_is_no_demand() {
    let _alone = alone();
    needs_root();
    let folder = tempfile::tempdir().unwrap();
    let nginx = Nginx::start(folder.path(), "location / { return 200 hello; }");
    let url = nginx.url("/");
    let _strangers = [Stranger::start(), Stranger::start()];
    let (mut seen, mut reported) = (vec![], false);
    let good = in_most_looks(|| {
        let (before, logged) = (Used::by(&nginx), nginx.log().len());
        let d = explain(&[&url, "--duration", "400ms"]);
        let (after, requests) = (Used::by(&nginx), (nginx.log().len() - logged) as f64);
        let server = d.demands.iter().find(|m| m.place == "server").unwrap();
        assert_eq!(server.source, "CPU time of the server", "{d:?}");
        reported |= d.warnings.iter().any(|w| w.to_string().starts_with("other programs kept"));
        let own_ns = (after.worker_ns - before.worker_ns) / requests;
        // Some kernels do not charge softirqs to the interrupted process.
        let most_ns = own_ns + (after.softirqs_ns - before.softirqs_ns) / requests;
        let strangers_ns = (after.host_ns - before.host_ns) / requests - most_ns;
        seen.push((server.ns, own_ns, most_ns, strangers_ns));
        let told_apart = strangers_ns > 2.0 * most_ns;
        reported && told_apart && server.ns > 0.6 * own_ns && server.ns < 1.6 * most_ns
    });
    assert!(good, "{seen:?}, told of: {reported}");
}

/// CPU time so far, ns.
struct Used {
    worker_ns: f64,
    /// Interrupts and softirqs of the host.
    softirqs_ns: f64,
    /// All busy time of the host.
    host_ns: f64,
}

impl Used {
    fn by(nginx: &Nginx) -> Self {
        let pid = nginx.worker();
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
        let worker_ns = text.split(' ').next().unwrap().parse().unwrap();
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let ticks: Vec<f64> =
            stat.lines().next().unwrap().split_whitespace().flat_map(str::parse).collect();
        let [user, nice, system, _, _, irq, softirq, ..] = ticks[..] else { panic!("{stat}") };
        let tick_ns = 1e7;
        Self {
            worker_ns,
            softirqs_ns: (irq + softirq) * tick_ns,
            host_ns: (user + nice + system + irq + softirq) * tick_ns,
        }
    }
}

/// A busy loop until it is dropped.
struct Stranger(std::process::Child);
impl Stranger {
    fn start() -> Self {
        let all = ["-c", "while :; do :; done"];
        Self(Command::new("sh").args(all).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_responder_elsewhere_is_asked_for_and_taken() {
    let _alone = alone();
    let server = Server::start(plain);
    let serve = Serve::start(&["--service-time", "10ms"]);
    let d = explain(&[&server.url("/"), "--responder", serve.target()]);
    assert_eq!(d.responder, serve.target());
    // Its own service time is not part of the network.
    assert!(d.typical.unwrap().network_ns < 9e6, "{:?}", d.typical);
}
