//! `netwright prove --builds`: two commits of a repository whose cost is known, and two paths.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::support::NETWRIGHT;

/// Prints what `make.sh` built, with noise of 2 in 1,000.
const RUN: &str =
    "echo \"x = $(($(cat \"${0%/*}/value\") + $(od -An -N1 -tu1 /dev/urandom) / 128))\"";

fn git(folder: &Path, args: &[&str]) -> String {
    let user = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
    let out = Command::new("git").current_dir(folder).args(user).args(args).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// A repository of two commits: `first` costs 1,000, `second` 1,020, and `broken` is not built.
fn repository(folder: &Path) {
    git(folder, &["init", "--quiet"]);
    fs::write(folder.join("run.sh"), RUN).unwrap();
    fs::write(folder.join(".gitignore"), "value\n").unwrap();
    for (tag, make) in [
        ("first", "echo 1000 > value"),
        ("second", "echo 1020 > value"),
        ("broken", "echo a word is missing; exit 3"),
    ] {
        fs::write(folder.join("make.sh"), make).unwrap();
        git(folder, &["add", "."]);
        git(folder, &["commit", "--quiet", "-m", tag]);
        git(folder, &["tag", tag]);
    }
}

struct Builds {
    repository: tempfile::TempDir,
    state: tempfile::TempDir,
}

impl Builds {
    fn prove(&self, args: &[&str]) -> Output {
        let mut command = Command::new(NETWRIGHT);
        command.current_dir(self.repository.path()).env("NETWRIGHT_STATE", self.state.path());
        command.args(["prove", "--metric", "x=/x = ([0-9]+)/:lower", "--runs", "32", "--json"]);
        command.args(args).output().unwrap()
    }

    fn commits(&self, builds: [&str; 2], more: &[&str]) -> Output {
        let made = format!("echo >> {}; sh make.sh", self.made().display());
        let record = self
            .state
            .path()
            .join(format!("{}.jsonl", fs::read_dir(self.state.path()).unwrap().count()));
        let record = record.to_str().unwrap();
        let args = ["--command", "sh {build}/run.sh", "--build-command", &made, "--record", record];
        self.prove(&[&["--builds"], &builds[..], &args, more].concat())
    }

    /// A file with a line for each build.
    fn made(&self) -> std::path::PathBuf {
        self.state.path().join("made")
    }
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn a_commit_that_costs_two_percent_is_worse_and_within_a_limit_of_five() {
    let all =
        Builds { repository: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
    repository(all.repository.path());
    for (limit, code, held) in
        [(None, 1, None), (Some("5%"), 0, Some(true)), (Some("1%"), 1, Some(false))]
    {
        let more: Vec<&str> = limit.iter().flat_map(|l| ["--limit", l]).collect();
        let out = all.commits(["first", "second"], &more);
        assert_eq!(out.status.code(), Some(code), "{limit:?}: {}", said(&out));
        let found: Value = serde_json::from_slice(&out.stdout).unwrap();
        let effect = found["verdict"]["effect"].as_f64().unwrap();
        assert!((effect - 0.02).abs() < 0.002, "{}", found["verdict"]);
        assert_eq!(found["limit"]["held"].as_bool(), held, "{found}");
        let level = found["levels"][1]["level"].as_str().unwrap();
        let commit = git(all.repository.path(), &["rev-parse", "second"]);
        assert_eq!(level, format!("second ({})", &commit[..12]));
    }
    // Each commit was built once, and the repository's own folder is as it was.
    assert_eq!(fs::read_to_string(all.made()).unwrap().lines().count(), 2);
    assert_eq!(git(all.repository.path(), &["status", "--porcelain"]), "");
}

#[test]
fn what_cannot_be_built_is_one_line_and_is_tried_again() {
    let all =
        Builds { repository: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
    repository(all.repository.path());
    for _ in 0..2 {
        let out = all.commits(["first", "broken"], &[]);
        let text = said(&out);
        assert_eq!(out.status.code(), Some(4), "{text}");
        assert!(text.contains("exit code 3: a word is missing") && text.contains(".log"), "{text}");
    }
    assert_eq!(fs::read_to_string(all.made()).unwrap().lines().count(), 3);
    // Whoever only looks makes no worktree.
    let out = all.commits(["second", "first"], &["--status"]);
    assert_eq!(out.status.code(), Some(4), "{}", said(&out));
    assert!(
        !git(all.repository.path(), &["worktree", "list"])
            .contains(&git(all.repository.path(), &["rev-parse", "second"])[..12])
    );
    let out = all.commits(["first", "no-such"], &[]);
    let text = said(&out);
    assert_eq!((out.status.code(), text.lines().count()), (Some(2), 1), "{text}");
    assert!(text.contains("--builds no-such: no such path, and no git revision"), "{text}");
    let out = all.prove(&["--builds", "first", "second", "--command", "echo x = 1"]);
    assert!(said(&out).contains("factor build: changes nothing: name it as {build}"), "{out:?}");
}

#[test]
fn two_paths_are_compared_as_they_are() {
    let all =
        Builds { repository: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
    for (name, costs) in [("a", 1020), ("b", 1000)] {
        let folder = all.repository.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("run.sh"), RUN).unwrap();
        fs::write(folder.join("value"), costs.to_string()).unwrap();
    }
    let out = all.prove(&["--builds", "a", "b", "--command", "sh {build}/run.sh"]);
    let found: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((out.status.code(), &found["verdict"]["outcome"]), (Some(0), &"better".into()));
    assert_eq!(found["levels"][0]["level"], "a");
}
