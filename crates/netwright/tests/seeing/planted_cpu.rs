//! CPU time denied to a process: a cgroup's quota, planted for real.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{
    NETWRIGHT,
    cpu_cgroup::CpuCgroup,
    planted::{beside_of, figure, found, silent},
    run,
};

/// A process that computes until dropped.
struct Spinner(Child);

impl Spinner {
    fn start() -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn doctor(pid: u32) -> Value {
    let pid = pid.to_string();
    let args = ["doctor", "--window", "1500ms", "--no-bpf", "--json", "--pid", &pid];
    serde_json::from_str(&run(NETWRIGHT, &args)).unwrap()
}

#[test]
fn a_quota_that_is_used_up() {
    let (cgroup, spinner) = (CpuCgroup::new("quota"), Spinner::start());
    cgroup.grant(10);
    cgroup.take(spinner.0.id());
    let subject = format!("/{}", cgroup.folder.file_name().unwrap().to_str().unwrap());

    let pid = spinner.0.id();
    let (d, truth) = beside_of(|| doctor(pid), || cgroup.throttled_periods());
    let f = found(&d, "cpu_quota", &subject);
    assert_eq!((&f["severity"], &f["confidence"]), (&"warning".into(), &"high".into()), "{f:#}");
    // One period of 20 ms after another, for 1.5 s and a little longer.
    let seen = figure(f, "throttled periods");
    truth.holds(&d, seen);
    assert!(seen > 38, "{seen}: {f:#}");
    assert!(f["title"].as_str().unwrap().contains("0.1 CPUs"), "{f:#}");

    // The look-alike: a quota that the process does not reach.
    cgroup.grant(400);
    let d = doctor(spinner.0.id());
    silent(&d, "cpu_quota");
}
