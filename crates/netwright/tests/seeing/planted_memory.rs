//! Memory pressure: a cgroup's memory limit that is too small, planted for real.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::support::{
    NETWRIGHT, needs_root,
    planted::{beside_of, finding, found, silent},
    run,
};

/// A cgroup with a memory limit, removed on drop. Under v1 the limit and the count of the pressure are
/// of two hierarchies.
struct MemoryCgroup {
    limit: PathBuf,
    /// Where v2 counts the pressure.
    folder: PathBuf,
}

impl MemoryCgroup {
    fn new() -> Self {
        needs_root();
        let name = format!("nwtest-memory-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
        let (folder, limit) = if v1 {
            let limits = Path::new("/sys/fs/cgroup/memory").join(&name);
            fs::create_dir(&limits).unwrap();
            let unified = Path::new("/sys/fs/cgroup/unified").join(&name);
            (unified, limits.join("memory.limit_in_bytes"))
        } else {
            fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")
                .expect("this suite needs the memory controller under /sys/fs/cgroup");
            let folder = Path::new("/sys/fs/cgroup").join(&name);
            (folder.clone(), folder.join("memory.max"))
        };
        fs::create_dir(&folder).unwrap();
        assert!(
            folder.join("memory.pressure").exists(),
            "this suite needs CONFIG_PSI and cgroup v2"
        );
        Self { limit, folder }
    }

    fn grant(&self, mib: u64) {
        fs::write(&self.limit, (mib << 20).to_string()).unwrap();
    }

    /// Files to which a process writes its pid to be in it.
    fn doors(&self) -> [PathBuf; 2] {
        [self.limit.with_file_name("cgroup.procs"), self.folder.join("cgroup.procs")]
    }

    /// Time in which some task waited, ns.
    fn waited_ns(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join("memory.pressure")).unwrap();
        let some = text.lines().find_map(|l| l.strip_prefix("some ")).unwrap();
        let total = some.split_whitespace().find_map(|w| w.strip_prefix("total=")).unwrap();
        total.parse::<u64>().unwrap() * 1_000
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        // They are empty once the reader's last child has ended.
        for folder in [self.folder.as_path(), self.limit.parent().unwrap()] {
            let gone = || !folder.exists() || fs::remove_dir(folder).is_ok();
            let _ = (0..50).any(|_| {
                gone() || {
                    thread::sleep(Duration::from_millis(20));
                    false
                }
            });
        }
    }
}

/// A shell that reads a file of 24 MiB again and again; killed on drop.
struct Reader(Child);

impl Reader {
    fn start(cgroup: &MemoryCgroup, file: &Path) -> Self {
        let [limits, counts] = cgroup.doors();
        // The cgroup that reads a page first has it in its account, so the file is made there.
        let script = format!(
            "echo $$ > {}; echo $$ > {}; head -c 25165824 /dev/urandom > {file}
            sync {file}; echo ready; while :; do cat {file} > /dev/null; done",
            limits.display(),
            counts.display(),
            file = file.display(),
        );
        let mut command = Command::new("bash");
        command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        Self(child)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn doctor(pid: u32) -> Value {
    let pid = pid.to_string();
    let args = ["doctor", "--window", "2s", "--no-bpf", "--json", "--pid", &pid];
    serde_json::from_str(&run(NETWRIGHT, &args)).unwrap()
}

#[test]
fn a_memory_limit_that_is_too_small() {
    let (cgroup, dir) = (MemoryCgroup::new(), tempfile::tempdir_in("/var/tmp").unwrap());
    cgroup.grant(8);
    let reader = Reader::start(&cgroup, &dir.path().join("file"));
    let subject = format!("/{}", cgroup.folder.file_name().unwrap().to_str().unwrap());

    let pid = reader.0.id();
    let (d, truth) = beside_of(|| doctor(pid), || cgroup.waited_ns());
    let f = found(&d, "memory_pressure", &subject);
    let shown = &f["evidence"][0];
    assert!(shown["source"].as_str().unwrap().ends_with("/memory.pressure"), "{f:#}");
    let value = shown["value"].as_str().unwrap();
    let percent: f64 = value.split_once('%').unwrap().0.parse().unwrap();
    let ns = percent / 100.0 * d["window_ns"].as_u64().unwrap() as f64;
    truth.holds(&d, ns as u64);

    // The look-alike: as busy, with memory for its file.
    cgroup.grant(200);
    thread::sleep(Duration::from_millis(500));
    let d = doctor(reader.0.id());
    let of_cgroup = |f: &Value| f["subject"] == subject.as_str();
    assert!(!finding(&d, "memory_pressure").is_some_and(of_cgroup), "{d:#}");
    if finding(&d, "memory_pressure").is_none() {
        silent(&d, "memory_pressure");
    }
}
