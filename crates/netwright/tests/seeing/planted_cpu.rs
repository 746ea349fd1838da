//! CPU time denied to a process: a cgroup's quota, planted for real.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::support::{
    NETWRIGHT, needs_root,
    planted::{figure, found, silent},
    run,
};

/// A cgroup of the cpu controller, removed on drop.
struct CpuCgroup {
    folder: PathBuf,
    v2: bool,
}

impl CpuCgroup {
    fn new(name: &str) -> Self {
        needs_root();
        let v1 = Path::new("/sys/fs/cgroup/cpu");
        let v2 = !v1.join("cpu.cfs_quota_us").exists();
        let top = if v2 { Path::new("/sys/fs/cgroup") } else { v1 };
        if v2 {
            fs::write(top.join("cgroup.subtree_control"), "+cpu")
                .expect("this suite needs the cpu controller under /sys/fs/cgroup");
        }
        let folder = top.join(format!("nwtest-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Self { folder, v2 }
    }

    /// Grants a share of one CPU, in percent, in periods of 20 ms.
    fn grant(&self, percent: u32) {
        let (quota, period) = (percent * 200, 20_000);
        if self.v2 {
            fs::write(self.folder.join("cpu.max"), format!("{quota} {period}")).unwrap();
        } else {
            fs::write(self.folder.join("cpu.cfs_period_us"), period.to_string()).unwrap();
            fs::write(self.folder.join("cpu.cfs_quota_us"), quota.to_string()).unwrap();
        }
    }

    /// Moves a process into it.
    fn take(&self, pid: u32) {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    fn throttled_periods(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join("cpu.stat")).unwrap();
        let line = text.lines().find_map(|l| l.strip_prefix("nr_throttled ")).unwrap();
        line.parse().unwrap()
    }
}

impl Drop for CpuCgroup {
    fn drop(&mut self) {
        // It is empty once its process is reaped.
        let _ = fs::remove_dir(&self.folder);
    }
}

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

    let before = cgroup.throttled_periods();
    let d = doctor(spinner.0.id());
    let around = cgroup.throttled_periods() - before;
    let f = found(&d, "cpu_quota", &subject);
    assert_eq!((&f["severity"], &f["confidence"]), (&"warning".into(), &"high".into()), "{f:#}");
    // One period of 20 ms after another, for 1.5 s and a little longer.
    let seen = figure(f, "throttled periods");
    assert!(seen > around / 2 && seen <= around && seen > 38, "{seen} of {around}: {f:#}");
    assert!(f["title"].as_str().unwrap().contains("0.1 CPUs"), "{f:#}");

    // The look-alike: a quota that the process does not reach.
    cgroup.grant(400);
    let d = doctor(spinner.0.id());
    silent(&d, "cpu_quota");
}
