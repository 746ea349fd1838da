//! A cgroup with a CPU quota, planted for real.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::needs_root;

/// A cgroup of the cpu controller, removed on drop.
pub struct CpuCgroup {
    pub folder: PathBuf,
    v2: bool,
}

impl CpuCgroup {
    pub fn new(name: &str) -> Self {
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
    pub fn grant(&self, percent: u32) {
        let (quota, period) = (percent * 200, 20_000);
        if self.v2 {
            fs::write(self.folder.join("cpu.max"), format!("{quota} {period}")).unwrap();
        } else {
            fs::write(self.folder.join("cpu.cfs_period_us"), period.to_string()).unwrap();
            fs::write(self.folder.join("cpu.cfs_quota_us"), quota.to_string()).unwrap();
        }
    }

    /// Moves a process into it.
    pub fn take(&self, pid: u32) {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    pub fn throttled_periods(&self) -> u64 {
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
