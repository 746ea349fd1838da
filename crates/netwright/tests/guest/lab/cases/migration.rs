//! Two containers with threads that are moved all the time: found, each given a CPU, held there,
//! rolled back.

use std::{
    fs,
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::support::NETWRIGHT;

/// A container: its id, and its cpuset's folder.
struct Container {
    id: String,
    cpuset: String,
}

impl Container {
    fn of(lab: &str, host: &str) -> Self {
        let text =
            run(&["lab", "exec", &format!("{lab}/{host}"), "--", "cat", "/proc/self/cgroup"]);
        let text = String::from_utf8(text.stdout).unwrap();
        let line = text.lines().find(|l| l.contains(":cpuset:")).or(text.lines().last()).unwrap();
        let path = line.splitn(3, ':').last().unwrap();
        let id = path.rsplit("docker-").next().unwrap().trim_end_matches(".scope");
        let cpuset = ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"]
            .map(|root| format!("{root}{path}/cpuset.cpus"))
            .into_iter()
            .find(|file| fs::metadata(file).is_ok());
        Self { id: id.to_owned(), cpuset: cpuset.unwrap() }
    }

    fn cpus(&self) -> String {
        fs::read_to_string(&self.cpuset).unwrap().trim().to_owned()
    }
}

fn run(args: &[&str]) -> Output {
    Command::new(NETWRIGHT).args(args).output().unwrap()
}

/// Kills the client when dropped.
struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs in a lab of the preset `migration` with an iperf3 server in `c2`.
pub fn is_worked(lab: &str) {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().to_str().unwrap();
    let (c1, c2) = (Container::of(lab, "c1"), Container::of(lab, "c2"));
    let before = [c1.cpus(), c2.cpus()];
    let client = Command::new(NETWRIGHT)
        .args(["lab", "exec", &format!("{lab}/c1"), "--"])
        .args(["iperf3", "-c", "10.98.0.3", "-t", "120"])
        .stdout(Stdio::null())
        .spawn();
    let _load = Load(client.unwrap());
    let file = state.path().join("plan.json");
    // Waits until both were moved within one window: a busy machine may delay the process that moves
    // them. No figure is chosen by it, and what follows holds for the plan that it is.
    let plan = (0..8).map(|_| plan(&c1, &c2)).find(|p| changes(p).len() == 2);
    let mut plan = plan.expect("neither container was seen to wander");
    let knobs = changes(&plan);
    assert!(knobs.iter().all(|k| k.starts_with("process.") && k.ends_with(".cpuset")), "{knobs:?}");
    // Other findings depend on this machine.
    plan["changes"].as_array_mut().unwrap().retain(|c| c["asked_by"] == "finding app_migrates");
    fs::write(&file, plan.to_string()).unwrap();
    let apply =
        run(&["tune", "apply", file.to_str().unwrap(), "--no-confirm", "--state-dir", folder]);
    assert!(apply.status.success(), "{apply:?}");
    let held = [c1.cpus(), c2.cpus()];
    let one = |cpus: &String| cpus.parse::<u32>().is_ok();
    assert!(held.iter().all(one) && held[0] != held[1], "{held:?}");
    // The moving process requests other CPUs a hundred times meanwhile.
    thread::sleep(Duration::from_millis(500));
    for (container, cpu) in [(&c1, &held[0]), (&c2, &held[1])] {
        let tasks = fs::read_to_string(container.cpuset.replace("cpuset.cpus", "cgroup.procs"));
        for pid in tasks.unwrap().lines() {
            let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
            let allowed = status.lines().find(|l| l.starts_with("Cpus_allowed_list")).unwrap();
            assert_eq!(allowed.split_whitespace().last(), Some(cpu.as_str()), "process {pid}");
        }
    }
    // What moves them may move one between its old affinity and the look at it: rollback says so, and how to
    // go on.
    let mut undone = run(&["tune", "rollback", "--state-dir", folder]);
    for _ in 0..3 {
        if undone.status.code() == Some(1) {
            let said = String::from_utf8_lossy(&undone.stdout);
            assert!(
                said.contains("affinity was not put back") && said.contains("tries again"),
                "{said}"
            );
            undone = run(&["tune", "rollback", "--state-dir", folder]);
        }
    }
    assert!(undone.status.success(), "{undone:?}");
    assert_eq!([c1.cpus(), c2.cpus()], before);
}

/// The present findings of doctor, as a plan.
fn plan(c1: &Container, c2: &Container) -> Value {
    let doctor =
        ["doctor", "--json", "--window", "2s", "--container", &c1.id, "--container", &c2.id];
    let mut doctor = Command::new(NETWRIGHT).args(doctor).stdout(Stdio::piped()).spawn().unwrap();
    let findings = doctor.stdout.take().unwrap();
    let plan =
        Command::new(NETWRIGHT).args(["tune", "plan", "-", "--json"]).stdin(findings).output();
    doctor.wait().unwrap();
    let plan = plan.unwrap();
    // Without a finding there are no changes; the note is on the other stream.
    let said = String::from_utf8_lossy(&plan.stderr);
    assert!(!plan.stdout.is_empty() || said.contains("nothing is asked for"), "{said}");
    serde_json::from_slice(&plan.stdout).unwrap_or_default()
}

/// The placements in a plan.
fn changes(plan: &Value) -> Vec<String> {
    let all = plan["changes"].as_array().into_iter().flatten();
    let asked = all.filter(|c| c["asked_by"] == "finding app_migrates");
    asked.map(|c| c["knob"].as_str().unwrap().to_owned()).collect()
}
