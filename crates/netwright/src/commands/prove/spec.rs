//! From what was typed to an experiment.

use model::quote;
use std::path::{Path, PathBuf};

use probe::{Root, facts, given};
use prove::{
    Experiment, placement,
    spec::{FactorSpec, FullLevelSpec, LevelSpec, MetricSpec, PlacementSpec, Spec},
};

use super::args::ProveArgs;
use crate::exit::Failure;

/// What an experiment is called that no file names.
const BY_FLAGS: &str = "prove";

pub fn experiment(args: &ProveArgs) -> Result<Experiment, Failure> {
    let (mut spec, name, of) = match (&args.file, &args.record) {
        (Some(path), _) => (read(path)?, stem(path), format!("{}: ", path.display())),
        (None, Some(path)) if args.resume && !any_flag(args) => recorded(path)?,
        (None, _) => (flags(args)?, BY_FLAGS.to_owned(), String::new()),
    };
    if args.budget.is_some() || args.runs.is_some() {
        (spec.budget, spec.runs) = (args.budget.clone(), args.runs);
    }
    spec.min_effect = args.min_effect.clone().or(spec.min_effect);
    spec.seed = args.seed.or(spec.seed);
    spec.freeze_host |= args.freeze_host;
    if spec.placement.as_ref().is_some_and(PlacementSpec::by_class) {
        let facts = facts::collect(&Root::live(), &facts::Request::default());
        let allowed =
            traffic::host::pin::allowed().map_err(|e| Failure::Environment(e.to_string()))?;
        placement::resolve(&mut spec, &facts, &allowed)
            .map_err(|e| Failure::Usage(format!("{of}{e}")))?;
    }
    let placed = spec.placement.clone();
    let checked = Experiment::check(spec, &name).map_err(|e| Failure::Usage(format!("{of}{e}")))?;
    // A look is at what was tried, perhaps on another host.
    if let (Some(placed), false) = (placed, args.peek) {
        let facts = facts::collect(&Root::live(), &facts::Request::default());
        placement::there(&placed, &facts).map_err(|e| Failure::Usage(format!("{of}{e}")))?;
    }
    Ok(checked)
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or("prove".into(), |s| s.to_string_lossy().into_owned())
}

const MOST_BYTES: u64 = 1 << 20;

fn read(path: &Path) -> Result<Spec, Failure> {
    let text = given::text(path, MOST_BYTES).map_err(|e| Failure::io(path, &e))?;
    prove::spec::parse(&text).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

/// Whether an experiment is told by flags.
fn any_flag(args: &ProveArgs) -> bool {
    let all = [&args.level, &args.change, &args.metric];
    args.workload.is_some() || args.command.is_some() || all.iter().any(|flag| !flag.is_empty())
}

/// The experiment that a record tells, its name, and what its errors begin with.
fn recorded(path: &Path) -> Result<(Spec, String, String), Failure> {
    let begun = prove::record::read(path).map_err(super::failure)?.begun;
    Ok((begun.spec, begun.name, format!("{}: ", path.display())))
}

fn flags(args: &ProveArgs) -> Result<Spec, Failure> {
    if args.workload.is_none() && args.command.is_none() {
        return Err(Failure::Usage(
            "prove needs an experiment: FILE.toml, or --workload or --command with --change or --level"
                .into(),
        ));
    }
    let of_changes = || of_changes(&args.change);
    let factor = if args.change.is_empty() { of_levels(args) } else { of_changes() };
    Ok(Spec {
        workload: args.workload.clone(),
        command: args.command.clone(),
        factors: vec![factor],
        metrics: args.metric.iter().map(|m| metric(m)).collect::<Result<_, _>>()?,
        ..Spec::default()
    })
}

/// As it is against changed.
pub fn of_changes(change: &[String]) -> FactorSpec {
    let level = |name: String, change: &[String]| {
        LevelSpec::Full(FullLevelSpec { name, change: change.to_vec(), ..FullLevelSpec::default() })
    };
    FactorSpec {
        name: "change".into(),
        levels: vec![level("as it is".into(), &[]), level(change.join(", "), change)],
        ..FactorSpec::default()
    }
}

fn of_levels(args: &ProveArgs) -> FactorSpec {
    let text = args.workload.as_ref().or(args.command.as_ref());
    let appended = !text.is_some_and(|t| t.contains("{level}"));
    FactorSpec {
        name: "level".into(),
        levels: args.level.iter().cloned().map(LevelSpec::Name).collect(),
        args: appended.then(|| "{level}".to_owned()),
        ..FactorSpec::default()
    }
}

/// `NAME=PATH:lower[:guard]`, `NAME=/REGEX/:higher`, `NAME=exit:lower`, `NAME=time:lower`.
pub fn metric(text: &str) -> Result<MetricSpec, Failure> {
    let bad = || {
        Failure::Usage(format!(
            "--metric {text}: NAME=WHERE:higher or :lower, with WHERE a path in JSON, /REGEX/, \
             exit_code or time"
        ))
    };
    let (name, rest) = text.split_once('=').ok_or_else(bad)?;
    let (rest, guard) = match rest.strip_suffix(":guard") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let (place, better) = rest.rsplit_once(':').ok_or_else(bad)?;
    let regex = place.strip_prefix('/').and_then(|p| p.strip_suffix('/'));
    let json = (regex.is_none() && place != "exit_code" && place != "time").then_some(place);
    Ok(MetricSpec {
        name: name.into(),
        json: json.map(str::to_owned),
        regex: regex.map(str::to_owned),
        exit_code: place == "exit_code",
        time: place == "time",
        better: better.into(),
        guard,
        limit: None,
    })
}

/// Where an experiment's record is. One by flags has a name of its own for what it tries, so that another
/// one's is not in its way; how long it goes on makes no difference.
pub fn record(args: &ProveArgs, experiment: &Experiment) -> PathBuf {
    if let Some(path) = &args.record {
        return path.clone();
    }
    let name = match args.file {
        Some(_) => experiment.name.clone(),
        None => format!("{}-{:08x}", experiment.name, what(&experiment.spec)),
    };
    let file: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' })
        .collect();
    folder().join(format!("{}.jsonl", file.trim_start_matches('.')))
}

/// What goes on with the experiment of a record, for a shell.
pub fn go_on(args: &ProveArgs, path: &Path) -> String {
    let mut line =
        format!("netwright prove --resume --record {}", quote::shell(&path.to_string_lossy()));
    if let Some(name) = &args.responder {
        line += &format!(" --responder {}", quote::shell(name));
    }
    if args.allow_disconnect {
        line += " --allow-disconnect";
    }
    if args.i_understand {
        line += " --i-understand";
    }
    line
}

/// Whether an experiment by flags, which name its record, was ever begun; of a record that is named by a file
/// or by `--record` who reads it tells.
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

/// A number for what is run, varied and looked at (FNV-1a, folded to 32 bits).
fn what(spec: &Spec) -> u32 {
    let tried = Spec {
        workload: spec.workload.clone(),
        command: spec.command.clone(),
        factors: spec.factors.clone(),
        metrics: spec.metrics.clone(),
        ..Spec::default()
    };
    let text = serde_json::to_string(&tried).unwrap_or_default();
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ hash >> 32) as u32
}

fn folder() -> PathBuf {
    if let Some(state) = std::env::var_os("NETWRIGHT_STATE").filter(|s| !s.is_empty()) {
        return PathBuf::from(state).join("prove");
    }
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/netwright/prove");
    }
    let var = |name| std::env::var_os(name).filter(|v: &std::ffi::OsString| !v.is_empty());
    let state = var("XDG_STATE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(var("HOME").unwrap_or_else(|| ".".into())).join(".local/state");
    state.unwrap_or_else(home).join("netwright/prove")
}

#[cfg(test)]
mod tests {
    use super::{super::tests::typed, *};

    #[test]
    fn what_is_tried_by_flags_names_its_record_and_how_long_does_not() {
        let spec = |command: &str, budget: &str| Spec {
            command: Some(command.into()),
            budget: Some(budget.into()),
            ..Spec::default()
        };
        assert_eq!(what(&spec("a", "1m")), what(&spec("a", "2m")));
        assert_ne!(what(&spec("a", "1m")), what(&spec("b", "1m")));
    }

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

    #[test]
    fn metrics_are_typed_in_a_word() {
        let m = metric("tps=/tps = ([0-9.]+)/:higher").unwrap();
        assert_eq!((m.regex.as_deref(), m.better.as_str()), (Some("tps = ([0-9.]+)"), "higher"));
        let m = metric("p99=runs.0.rtt_ns.p99:lower:guard").unwrap();
        assert_eq!((m.json.as_deref(), m.guard), (Some("runs.0.rtt_ns.p99"), true));
        assert!(metric("code=exit_code:lower").unwrap().exit_code);
        assert!(metric("tps").is_err() && metric("tps=x").is_err());
    }
}
