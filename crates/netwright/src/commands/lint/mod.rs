//! `netwright lint`: judges lines of inherited tuning.

pub mod args;

use model::{
    BitsPerSec, Facts, Reading,
    host::kernel_version,
    lint::{LintDocument, LintHost},
};
use probe::facts::sysctl;

use self::args::LintArgs;
use crate::{
    args::ProcessArgs,
    failure::{CommandEnd, Failure},
    output::{Answer, Sink, note},
    request::Source,
};

/// Reads the files and the host, judges each line, and prints the verdicts.
pub fn run(args: LintArgs) -> Result<CommandEnd, Failure> {
    let answer = Answer::to(&args.output)?;
    version_of(&args)?;
    let source = Source::open(args.source.root.clone(), ProcessArgs::default())?;
    let files = lint::files::read(&source.root, &args.files)?;
    let mut facts = source.facts()?;
    let host = assume(&mut facts, &args, source.name);
    let document = lint::lint(&facts, host, &files);
    let sink = Sink::new(args.output.output.clone());
    if args.sarif {
        sink.json(&report::lint::sarif(&document))?;
    } else if args.fix {
        let fix = lint::fix::diff(&document, &files);
        let shown = |line: &str| format!("{}\n", report::clean(line));
        match sink.is_terminal() {
            true => sink.text(&fix.diff.lines().map(shown).collect::<String>())?,
            false => sink.text(&fix.diff)?,
        }
        fix.by_hand.iter().for_each(|line| note(&format!("by hand: {line}")));
    } else {
        answer.tell(&document, report::lint::text)?;
    }
    Ok(end(&document))
}

fn end(document: &LintDocument) -> CommandEnd {
    match document.lines.iter().any(|l| l.verdict.is_bad()) {
        true => CommandEnd::No,
        false => CommandEnd::Yes,
    }
}

/// Refuses a version that is none.
fn version_of(args: &LintArgs) -> Result<(), Failure> {
    match &args.kernel {
        Some(text) if kernel_version(text).is_none() => {
            Err(Failure::Usage(format!("--kernel {text:?} is no version such as 6.12")))
        }
        _ => Ok(()),
    }
}

/// Puts what the command line says in place of the host's facts, and says what the lines are judged
/// for.
fn assume(facts: &mut Facts, args: &LintArgs, source: String) -> LintHost {
    let mut given = Vec::new();
    if let Some(kernel) = &args.kernel {
        facts.host.kernel = Reading::Known(kernel.clone());
        // How another kernel was built is not known.
        facts.host.build.hz = Reading::absent("another kernel");
        given.push("kernel".to_owned());
    }
    if let Some(memory) = args.memory {
        facts.memory_bytes = Reading::Known(memory);
        given.push("memory".to_owned());
    }
    if !given.is_empty() {
        let nodes = Some(facts.numa_nodes.len()).filter(|n| *n > 0);
        facts.sysctls = sysctl::of_another(&facts.host, nodes, &facts.memory_bytes);
    }
    let nic_speed_bps = match args.nic_speed {
        Some(speed) => {
            given.push("nic_speed".to_owned());
            Reading::Known(speed)
        }
        None => fastest(facts),
    };
    LintHost {
        source,
        name: facts.host.name.clone(),
        kernel: facts.host.kernel.clone(),
        memory_bytes: facts.memory_bytes.clone(),
        nic_speed_bps,
        given,
    }
}

fn fastest(facts: &Facts) -> Reading<BitsPerSec> {
    let speeds = facts.nics.iter().filter_map(|n| n.speed_bps.get());
    let most = speeds.max_by_key(|s| s.0);
    most.map_or_else(|| Reading::absent("no NIC shows its speed"), Reading::Known)
}
