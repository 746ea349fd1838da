//! Two lengths of help: `-h` fits one screen, `--help` has everything.
//!
//! A flag that several commands have with the same meaning is declared once, in `args.rs` or in
//! `commands/measure/flags.rs`; a command changes its text by `mut_arg`. The table in this file
//! lists the flags that `-h` shows.

use clap::{Arg, Command};

/// Commands with more flags than fit on a screen, and the flags that `-h` shows.
const SHOWN: &[(&str, &[&str])] = &[
    (
        "netwright doctor",
        &[
            "window",
            "for",
            "fail-on",
            "root",
            "peer",
            "fleet",
            "port",
            "container",
            "json",
            "verbose",
        ],
    ),
    (
        "netwright compare",
        &["group", "metric", "limit", "min-effect", "noise-floor", "markdown", "json", "verbose"],
    ),
    ("netwright inspect", &["nic", "picture", "root", "port", "container", "json", "verbose"]),
    ("netwright snapshot", &["output", "force", "window", "redact", "port", "container"]),
    (
        "netwright watch",
        &["interval", "duration", "pid", "nic", "cpu", "record", "replay", "plain", "json"],
    ),
    (
        "netwright explain",
        &["port", "responder", "script", "flows", "path", "verify", "duration", "json", "verbose"],
    ),
    (
        "netwright measure rtt",
        &[
            "port",
            "peer",
            "transport",
            "request",
            "response",
            "flows",
            "rate",
            "duration",
            "precision",
            "cpu",
            "json",
            "verbose",
        ],
    ),
    (
        "netwright measure stream",
        &[
            "port",
            "peer",
            "transport",
            "direction",
            "flows",
            "message",
            "rate",
            "duration",
            "precision",
            "cpu",
            "json",
            "verbose",
        ],
    ),
    (
        "netwright measure connect",
        &["port", "flows", "rate", "duration", "precision", "threads", "cpu", "json", "verbose"],
    ),
    (
        "netwright measure http",
        &[
            "header",
            "method",
            "body",
            "flows",
            "rate",
            "duration",
            "precision",
            "threads",
            "responder",
            "json",
            "verbose",
        ],
    ),
    (
        "netwright measure pg",
        &[
            "script",
            "protocol",
            "scale",
            "init",
            "flows",
            "rate",
            "duration",
            "precision",
            "responder",
            "json",
        ],
    ),
    (
        "netwright measure redis",
        &[
            "command",
            "keys",
            "data",
            "flows",
            "pipeline",
            "rate",
            "duration",
            "precision",
            "responder",
            "json",
            "verbose",
        ],
    ),
    (
        "netwright prove",
        &[
            "level",
            "command",
            "workload",
            "metric",
            "min-effect",
            "budget",
            "change",
            "builds",
            "json",
        ],
    ),
    (
        "netwright fix",
        &[
            "workload",
            "command",
            "goal",
            "metric",
            "try",
            "budget",
            "yes",
            "dry-run",
            "responder",
            "json",
        ],
    ),
    ("netwright tune plan", &["profile", "nic", "netns", "container", "json"]),
    (
        "netwright tune apply",
        &["profile", "nic", "confirm", "no-confirm", "dry-run", "netns", "container", "json"],
    ),
    ("netwright tune rollback", &["all", "unfinished", "force", "dry-run", "responder", "json"]),
    ("netwright tune persist", &["remove", "dry-run", "format", "into", "json"]),
    ("netwright tune status", &["responder", "netns", "json"]),
    (
        "netwright lab up pair",
        &["name", "preset", "queues", "mtu", "links", "rate", "delay", "loss"],
    ),
    (
        "netwright lab up server",
        &["name", "preset", "topology", "cpus", "nodes", "queues", "nic", "disk", "memory"],
    ),
    (
        "netwright serve",
        &["bind", "port", "secret-file", "open", "iperf3", "qperf", "cpu", "service-time", "json"],
    ),
];

/// The longest default that `-h` repeats, bytes.
const LONGEST_DEFAULT: usize = 12;

/// The number of examples that `-h` shows.
const EXAMPLES: usize = 2;

/// Sets both lengths of help, for subcommands too.
pub fn both(command: Command) -> Command {
    let name = command.get_name().to_owned();
    below(command, &name)
}

fn below(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |c| below(c, &format!("{path} {name}")))
    });
    let shown = SHOWN.iter().find(|(of, _)| *of == path).map(|(_, flags)| *flags);
    let command = command.mut_args(|arg| {
        let rare = match (shown, arg.get_long()) {
            (Some(shown), Some(long)) => !shown.contains(&long) && long != "help",
            _ => false,
        };
        if rare { arg.hide_short_help(true) } else { brief(arg) }
    });
    let Some(long) = command.get_after_help().map(ToString::to_string) else { return command };
    let short = format!("{}\n\nAll options and exit codes: {path} --help", first(&long));
    command.after_help(short).after_long_help(long)
}

/// Shortens an option's help to its first sentence, or to what precedes a semicolon, with its
/// default. A bracket before either leaves the help as it is.
fn brief(arg: Arg) -> Arg {
    let Some(long) = arg.get_help().map(ToString::to_string) else { return arg };
    let open = long.find(['[', '(']).unwrap_or(long.len());
    let ends = ["; ", ". "].iter().filter_map(|end| long.find(end)).min().filter(|end| *end < open);
    let Some(short) = ends.and_then(|end| long.get(..end)) else { return arg };
    let short = format!("{short}{}", default(&long).unwrap_or_default());
    match arg.get_long_help() {
        Some(_) => arg.help(short),
        None => arg.help(short).long_help(long),
    }
}

/// The default that a help text states, where it is a word or two: ` [default: 5s]`.
fn default(long: &str) -> Option<String> {
    let stated = long.split_once("[default: ")?.1.split([';', ',', ']']).next()?;
    (stated.len() <= LONGEST_DEFAULT).then(|| format!(" [default: {stated}]"))
}

/// The first examples of a command's help, with the comments before them.
fn first(help: &str) -> String {
    let examples = help.split("\n\nExit codes:").next().unwrap_or(help);
    let (mut lines, mut seen, mut goes_on) = (Vec::new(), 0, false);
    for line in examples.lines() {
        let command = line.trim_start().starts_with("netwright") && !goes_on;
        if seen == EXAMPLES && !goes_on {
            break;
        }
        seen += usize::from(command);
        goes_on = line.ends_with('\\');
        lines.push(line);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// A terminal as it opens: its columns, and the lines that leave room for the prompt.
    const COLUMNS: usize = 80;
    const SCREEN: usize = 40;

    fn every(command: Command, path: &str, seen: &mut Vec<(String, Command)>) {
        for sub in command.get_subcommands() {
            every(sub.clone(), &format!("{path} {}", sub.get_name()), seen);
        }
        seen.push((path.to_owned(), command));
    }

    fn commands() -> Vec<(String, Command)> {
        let mut seen = vec![];
        every(both(Cli::command()), "netwright", &mut seen);
        seen
    }

    #[test]
    fn short_help_fits_a_screen_and_names_the_long_one() {
        let mut wrong = vec![];
        for (path, command) in commands() {
            let mut command = command.term_width(COLUMNS);
            let short = command.render_help().to_string();
            let lines = short.lines().count();
            if lines > SCREEN {
                wrong.push(format!("{path} -h: {lines} lines"));
            }
            let long = command.render_long_help().to_string();
            if long.contains("Exit codes:") {
                assert!(short.contains(&format!("{path} --help")), "{short}");
                assert!(!short.contains("Exit codes:"), "{short}");
            }
            // The long help has every flag.
            let open = command.get_arguments().filter(|a| !a.is_hide_set());
            for arg in open.filter_map(|a| a.get_long()) {
                assert!(long.contains(&format!("--{arg}")), "{path} --help: no --{arg}");
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// clap checks it when a command is parsed, which no test does for each of them.
    #[test]
    fn no_command_has_an_option_twice() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_the_table_shows_is_there() {
        let all = commands();
        for (path, flags) in SHOWN {
            let (_, command) =
                all.iter().find(|(p, _)| p == path).unwrap_or_else(|| panic!("no {path}"));
            let known: Vec<&str> = command.get_arguments().filter_map(|a| a.get_long()).collect();
            let gone: Vec<_> = flags.iter().filter(|f| !known.contains(f)).collect();
            assert!(gone.is_empty(), "{path} has no {gone:?}; it has {known:?}");
        }
    }
}
