//! Two builds to compare: paths, or git revisions, each built in a worktree of its own that is kept.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use model::quote;
use tune::operator::Operator;

use crate::{
    ProveError,
    child::{self, RunFailure},
    record_path,
    spec::{FactorSpec, FullLevelSpec, LevelSpec},
    workload::Workload,
};

/// The factor's name: `{build}` in the workload is the path or the worktree.
const FACTOR: &str = "build";
/// How long one build may take.
const PATIENCE: Duration = Duration::from_secs(3 * 3600);

/// A build as typed, and what `{build}` stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// The path as typed, or the revision with its commit: `main (1a2b3c4d5e6f)`.
    pub name: String,
    /// The path of the build, absolute.
    pub path: PathBuf,
    /// The commit of a worktree; `None` of a path as it is.
    commit: Option<String>,
}

/// The builds that were typed: a path where there is one, otherwise a revision of the git repository
/// of the current folder, whose worktree [`make`] makes in a folder of ours. Changes nothing.
///
/// # Errors
/// [`ProveError::Spec`]: it is neither.
pub fn find(typed: &[String]) -> Result<Vec<Build>, ProveError> {
    typed.iter().map(|text| one(text)).collect()
}

fn one(text: &str) -> Result<Build, ProveError> {
    if let Ok(path) = fs::canonicalize(text) {
        return Ok(Build { name: text.to_owned(), path, commit: None });
    }
    let neither = |why: String| {
        ProveError::Spec(format!(
            "--builds {text}: no such path, and no git revision of this folder{why}"
        ))
    };
    let top = git(&["rev-parse", "--show-toplevel"]).map_err(neither)?;
    let of_commit = format!("{text}^{{commit}}");
    let commit =
        git(&["rev-parse", "--verify", "--end-of-options", &of_commit]).map_err(neither)?;
    let short = commit.get(..12).unwrap_or(&commit);
    let repository = Path::new(&top).file_name().map_or("builds".into(), |n| n.to_string_lossy());
    let path = record_path::state_folder("builds").join(format!("{repository}-{short}"));
    Ok(Build { name: format!("{text} ({short})"), path, commit: Some(commit) })
}

/// Makes the worktree, unless it is there with that commit.
fn check_out(path: &Path, commit: &str) -> Result<(), ProveError> {
    let at = path.to_string_lossy();
    if path.exists() {
        return match git(&["-C", &at, "rev-parse", "HEAD"]) {
            Ok(there) if there == commit => Ok(()),
            _ => Err(ProveError::Setting(format!(
                "{at} is not at commit {commit}: `git worktree remove {}`, or remove it by hand",
                quote::shell(&at)
            ))),
        };
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|e| ProveError::file(parent, e))?;
    }
    // A worktree that was removed by hand is still registered.
    let _ = git(&["worktree", "prune"]);
    git(&["worktree", "add", "--detach", "--quiet", &at, commit])
        .map(drop)
        .map_err(|why| ProveError::Setting(format!("git makes no worktree {at}{why}")))
}

/// What git prints; on failure `: ` and its last line.
fn git(args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(args).stdin(Stdio::null());
    let out = command.output().map_err(|e| format!(": git does not start: {e}"))?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_owned()),
        false => Err(child::last_line(&String::from_utf8_lossy(&out.stderr))),
    }
}

/// Makes each worktree, and builds it with the command, unless it was built with it before. `None`
/// where the operator ended it. The output of a build is in a file beside its worktree.
///
/// # Errors
/// [`ProveError::Setting`]: git does not make the worktree, or the command failed; its last line and
/// the file of its output.
pub fn make(
    builds: &[Build],
    command: Option<&str>,
    operator: &dyn Operator,
) -> Result<Option<()>, ProveError> {
    for build in builds {
        let Some(commit) = &build.commit else { continue };
        check_out(&build.path, commit)?;
        let Some(command) = command else { continue };
        let beside = |ending: &str| PathBuf::from(format!("{}.{ending}", build.path.display()));
        let (log, done) = (beside("log"), beside("built"));
        if fs::read_to_string(&done).is_ok_and(|by| by == command) {
            continue;
        }
        let _ = fs::remove_file(&done);
        operator.note(&format!("building {}; its output is in {}", build.name, log.display()));
        let path = |path: &Path| quote::shell(&path.to_string_lossy());
        let line =
            format!("cd {} && exec > {} 2>&1 && {{ {command}\n}}", path(&build.path), path(&log));
        let ours = Path::new("");
        let why = match child::run(ours, &Workload::Shell(line), PATIENCE, operator.stop()) {
            Ok((ended, _)) if ended.exit_code == 0 => {
                fs::write(&done, command).map_err(|e| ProveError::file(&done, e))?;
                continue;
            }
            Ok((ended, complained)) => {
                let text = fs::read_to_string(&log).unwrap_or(complained);
                format!("failed with exit code {}{}", ended.exit_code, child::last_line(&text))
            }
            Err(RunFailure::Stopped) => return Ok(None),
            Err(why) => why.to_string(),
        };
        return Err(ProveError::Setting(format!(
            "--build-command {why}; {} was not built, its output is in {}",
            build.name,
            log.display()
        )));
    }
    Ok(Some(()))
}

/// The factor with these builds as its levels.
pub fn factor(builds: &[Build]) -> FactorSpec {
    let level = |build: &Build| {
        LevelSpec::Full(FullLevelSpec {
            name: build.name.clone(),
            text: Some(build.path.to_string_lossy().into_owned()),
            ..FullLevelSpec::default()
        })
    };
    FactorSpec {
        name: FACTOR.into(),
        levels: builds.iter().map(level).collect(),
        ..FactorSpec::default()
    }
}
