//! Turns the flags of `prove`, or its file, into an experiment.

use model::quote;
use std::path::{Path, PathBuf};

use model::prove::Design;
use probe::{Root, facts, given};
use prove::{
    Experiment, builds, placement,
    spec::{FactorSpec, LevelSpec, PlacementSpec, Spec},
};

use super::args::ProveArgs;
use crate::{failure::Failure, session::Session};

/// The name of an experiment by flags.
const BY_FLAGS: &str = "prove";

/// The experiment, its builds made. `None` where the operator ended a build.
pub fn experiment(args: &ProveArgs) -> Result<Option<Experiment>, Failure> {
    let (mut spec, name, of) = match (&args.file, &args.record) {
        (Some(path), _) => (read(path)?, stem(path), format!("{}: ", path.display())),
        (None, Some(path)) if args.resume && !any_flag(args) => recorded(path)?,
        (None, _) => match flags(args)? {
            Some(spec) => (spec, BY_FLAGS.to_owned(), String::new()),
            None => return Ok(None),
        },
    };
    if args.budget.is_some() || args.runs.is_some() {
        (spec.budget, spec.runs) = (args.budget.clone(), args.runs);
    }
    let limit = args.limit.filter(|share| *share > 0.0).map(|share| format!("{}%", share * 100.0));
    spec.min_effect = args.min_effect.clone().or(spec.min_effect).or(limit);
    spec.seed = args.seed.or(spec.seed);
    spec.freeze_host |= args.host.freeze_host;
    if spec.placement.as_ref().is_some_and(PlacementSpec::by_class) {
        let facts = facts::collect(&Root::live(), &facts::Request::default());
        let allowed =
            traffic::host::pin::allowed().map_err(|e| Failure::Environment(e.to_string()))?;
        placement::resolve(&mut spec, &facts, &allowed)
            .map_err(|e| Failure::Usage(format!("{of}{e}")))?;
    }
    let placed = spec.placement.clone();
    let checked = Experiment::check(spec, &name).map_err(|e| Failure::Usage(format!("{of}{e}")))?;
    // `--status` shows an experiment that may be of another host.
    if let (Some(placed), false) = (placed, args.status) {
        let facts = facts::collect(&Root::live(), &facts::Request::default());
        placement::there(&placed, &facts).map_err(|e| Failure::Usage(format!("{of}{e}")))?;
    }
    if args.limit.is_some() && checked.design != Design::Ab {
        return Err(Failure::Usage("--limit is for two levels of one factor".into()));
    }
    Ok(Some(checked))
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or("prove".into(), |s| s.to_string_lossy().into_owned())
}

const MOST_BYTES: u64 = 1 << 20;

fn read(path: &Path) -> Result<Spec, Failure> {
    let text = given::text(path, MOST_BYTES).map_err(|e| Failure::io(path, &e))?;
    prove::spec::parse(&text).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

/// Whether flags define the experiment, without a file.
fn any_flag(args: &ProveArgs) -> bool {
    let all = [&args.level, &args.change, &args.run.metric, &args.builds];
    args.run.workload.is_some()
        || args.run.command.is_some()
        || all.iter().any(|flag| !flag.is_empty())
}

/// The experiment of a record, its name, and the prefix of its errors.
fn recorded(path: &Path) -> Result<(Spec, String, String), Failure> {
    let begun = prove::record::read(path).map_err(Failure::from)?.begun;
    Ok((begun.spec, begun.name, format!("{}: ", path.display())))
}

fn flags(args: &ProveArgs) -> Result<Option<Spec>, Failure> {
    if args.run.workload.is_none() && args.run.command.is_none() {
        return Err(Failure::Usage(
            "prove needs an experiment: FILE.toml, or --workload or --command with --change, --level \
             or --builds"
                .into(),
        ));
    }
    // clap leaves out `requires` where what is required conflicts with another flag.
    if args.build_command.is_some() && args.builds.is_empty() {
        return Err(Failure::Usage("--build-command needs --builds A B".into()));
    }
    let factor = match (args.change.as_slice(), args.builds.as_slice()) {
        ([], []) => of_levels(args),
        ([], _) => match of_builds(args)? {
            Some(factor) => factor,
            None => return Ok(None),
        },
        (change, _) => prove::spec::of_changes(change),
    };
    Ok(Some(Spec {
        workload: args.run.workload.clone(),
        command: args.run.command.clone(),
        factors: vec![factor],
        metrics: args
            .run
            .metric
            .iter()
            .map(|m| prove::spec::metric(m))
            .collect::<Result<_, _>>()?,
        ..Spec::default()
    }))
}

/// The builds as levels, made where that is asked for. `None` where the operator ended it.
fn of_builds(args: &ProveArgs) -> Result<Option<FactorSpec>, Failure> {
    let found = builds::find(&args.builds)?;
    if !args.status {
        let session = Session::open(&args.output.talk);
        if builds::make(&found, args.build_command.as_deref(), &session)?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(builds::factor(&found)))
}

fn of_levels(args: &ProveArgs) -> FactorSpec {
    let text = args.run.workload.as_ref().or(args.run.command.as_ref());
    let appended = !text.is_some_and(|t| t.contains("{level}"));
    FactorSpec {
        name: "level".into(),
        levels: args.level.iter().cloned().map(LevelSpec::Name).collect(),
        args: appended.then(|| "{level}".to_owned()),
        ..FactorSpec::default()
    }
}

/// The path of an experiment's record.
pub fn record(args: &ProveArgs, experiment: &Experiment) -> PathBuf {
    args.record
        .clone()
        .unwrap_or_else(|| prove::record_path::usual(experiment, args.file.is_some()))
}

/// The command line that resumes a record's experiment, quoted for a shell.
pub fn go_on(args: &ProveArgs, path: &Path) -> String {
    let mut line =
        format!("netwright prove --resume --record {}", quote::shell(&path.to_string_lossy()));
    if let Some(name) = &args.responder {
        line += &format!(" --responder {}", quote::shell(name));
    }
    if args.host.allow_disconnect {
        line += " --allow-disconnect";
    }
    if args.i_understand {
        line += " --i-understand";
    }
    line
}

/// Refuses an experiment by flags that was never begun: the flags name its record. A record named
/// by a file or by `--record` has an error of its own when it is read.
///
/// # Errors
/// There is no such record (exit code 4).
pub fn begun(args: &ProveArgs, path: &Path) -> Result<(), Failure> {
    if args.file.is_some() || args.record.is_some() || !matches!(path.try_exists(), Ok(false)) {
        return Ok(());
    }
    Err(Failure::Environment(format!(
        "no experiment with this workload, these levels and metrics was begun in {}: give the flags that it \
         was begun with, or --record FILE",
        path.parent().unwrap_or(path).display()
    )))
}

#[cfg(test)]
mod tests {
    use super::{super::tests::typed, *};

    #[test]
    fn what_goes_on_with_a_record_is_a_line_for_a_shell() {
        let of_file = typed(&["e.toml"]);
        assert_eq!(
            go_on(&of_file, Path::new("/var/lib/e.jsonl")),
            "netwright prove --resume --record /var/lib/e.jsonl"
        );
        let peer = typed(&["--responder", "ssh://db1/opt/a b"]);
        assert_eq!(
            go_on(&peer, Path::new("it's.jsonl")),
            "netwright prove --resume --record 'it'\\''s.jsonl' --responder 'ssh://db1/opt/a b'"
        );
        assert!(any_flag(&typed(&["--metric", "t=time:lower"])) && !any_flag(&peer));
    }
}
