//! Tests of `fix` and `--container` under attack: workloads with misleading or harmful output, and
//! cgroups with such names. Every run ends before a trial, so the host is not changed.

use std::{
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, output};

#[test]
fn hostile_workloads_are_reported_in_a_line() {
    let state = tempfile::tempdir().unwrap();
    for (line, reported) in [
        ("echo v=NaN", "is no figure"),
        ("echo v=1e999", "is no figure"),
        ("echo v=-1e308", "is no figure"),
        ("printf '\\033[31mboom\\n' >&2; exit 7", "exit code 7"),
        ("sleep 1000", "no run ended"),
        ("while :; do echo v=1; done", "no run ended"),
        ("setsid sh -c 'trap \"\" TERM; sleep 1000' & exit 3", "exit code 3"),
    ] {
        let begun = Instant::now();
        let metric = "x=/v=([-0-9.eE+a-zA-Z]+)/:higher";
        let out = Command::new("timeout")
            .args(["100", NETWRIGHT, "fix", "--command", line, "--metric", metric])
            .args(["--budget", "12s", "--dry-run"])
            .env("NETWRIGHT_STATE", state.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(4), "{line}: {said}");
        assert!(said.contains(reported) && said.lines().count() <= 2, "{line}: {said}");
        assert!(!said.contains('\u{1b}') && !out.stdout.contains(&0x1b), "{line}: {said}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{line}: {:?}", begun.elapsed());
    }
}

/// A cgroup with a process in it; dropping it removes both.
struct Group {
    folder: PathBuf,
    child: Child,
}

impl Group {
    fn new(name: &str) -> Self {
        // The named hierarchy (`name=…`) of cgroup v1, or the v2 hierarchy.
        let named = PathBuf::from("/sys/fs/cgroup/systemd");
        let root = if named.is_dir() { named } else { PathBuf::from("/sys/fs/cgroup") };
        let folder = root.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let procs = folder.join("cgroup.procs");
        let mut command = Command::new("sleep");
        command.arg("300").stdin(Stdio::null());
        // SAFETY: between fork and exec only a file is written.
        unsafe { command.pre_exec(move || std::fs::write(&procs, "0")) };
        Self { folder, child: command.spawn().unwrap() }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir(&self.folder);
    }
}

#[test]
fn hostile_names_of_control_groups_select_nobody_else_and_are_shown_tamed() {
    crate::support::needs_root();
    let id = "ab".repeat(32);
    let own = Group::new(&format!("docker-{id}.scope"));
    let _others = [
        "docker-\u{1b}[31mX.scope",
        "libpod-$(touch pwned).scope",
        "docker-`touch pwned`;.scope",
        &format!("cri-containerd-{}.scope", "z".repeat(200)),
        &format!("docker-{}.scope", &id[..63]),
    ]
    .map(Group::new);
    let found = output(NETWRIGHT, &["inspect", "--json", "--container", &id]);
    let document: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let pids: Vec<_> = document["processes"].as_array().unwrap().iter().collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
    assert_eq!(pids[0]["pid"], own.child.id());
    for name in ["\u{1b}[31mX", "$(touch pwned)", "../../etc", "", "ab", &"a".repeat(5000)] {
        let out = output(NETWRIGHT, &["inspect", &format!("--container={name}")]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(4), "{name:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{name:?}: {said}");
        assert!(!said.contains('\u{1b}'), "{name:?}: {said}");
    }
    let shown = output(NETWRIGHT, &["inspect", "--unit", "docker-\u{1b}[31mX.scope"]);
    assert!(shown.status.success() && !shown.stdout.contains(&0x1b));
}
