//! The commands that make the same result again, as far as a document has them.

use model::{
    compare::CompareDocument, explain::ExplainDocument, passive::PassiveDocument, quote::shell,
};
use report::DoctorDocument;

use crate::document::{Document, Kind};

/// Commands, and what they do not say.
pub struct Repeat {
    pub lines: Vec<String>,
    pub about: String,
}

/// The commands for a document.
pub fn commands(d: &Document) -> Repeat {
    if let Some(line) = &d.command {
        let about = match line.contains("***") {
            true => "The command line of this run; `***` stands for a secret.",
            false => "The command line of this run.",
        };
        return Repeat { lines: vec![line.clone()], about: about.into() };
    }
    let (lines, about) = match &d.kind {
        Kind::Doctor(t) => {
            (vec![doctor(t)], "Processes that were chosen by name are not in the document.")
        }
        Kind::Inspect(_) => (
            vec!["netwright inspect --json".into()],
            "Whether it was read from a snapshot (--root) is not in the document.",
        ),
        Kind::Rtt(_)
        | Kind::Stream(_)
        | Kind::Connect(_)
        | Kind::Http(_)
        | Kind::Pg(_)
        | Kind::Redis(_)
            if d.name == "standard input" =>
        {
            (
                vec![],
                "Save the document in a file: `netwright measure --rerun FILE` has every parameter.",
            )
        }
        Kind::Rtt(_)
        | Kind::Stream(_)
        | Kind::Connect(_)
        | Kind::Http(_)
        | Kind::Pg(_)
        | Kind::Redis(_) => (
            vec![format!("netwright measure --rerun {} --json", shell(&d.name))],
            "The document has every parameter of the measurement, and --rerun reads them from it. A \
             secret or a password is not in it.",
        ),
        Kind::Explain(t) => (
            vec![explain(t)],
            "Scripts, headers, sizes, times and CPUs that differ from the defaults are not in the \
             document.",
        ),
        Kind::Passive(t) => (vec![passive(t)], "It needs root on the server's host."),
        Kind::Prove(t) => (
            vec![t.workload.clone()],
            "This is one run, with the level in its place. The experiment's file or flags are not in \
             the document; its levels and metrics are above.",
        ),
        Kind::Fix(t) => (
            vec![t.workload.clone()],
            "This is the workload. The flags of `netwright fix` are not in the document; its \
             candidates are above.",
        ),
        Kind::Compare(t) => (
            compare(t),
            "The names are those of the groups; which files they held is not in the document.",
        ),
    };
    Repeat { lines, about: about.into() }
}

fn doctor(t: &DoctorDocument) -> String {
    let mut line = "netwright doctor".to_owned();
    if t.source.kind != "live" {
        line += &format!(" --root {}", shell(&t.source.path));
    } else if let Some(ns) = t.window_ns.known() {
        // The document has the measured length.
        line += &format!(" --window {}ms", (ns.0 + 50_000_000) / 100_000_000 * 100);
    }
    if t.goal == model::Goal::Latency {
        line += " --for latency";
    }
    line + " --json"
}

fn explain(t: &ExplainDocument) -> String {
    let mut line = format!("netwright explain {}", shell(&t.target));
    if !t.responder.is_empty() && !t.responder.contains(' ') {
        line += &format!(" --responder {}", shell(&t.responder));
    }
    let mut clients = vec![t.clients];
    for p in &t.predictions {
        if !clients.contains(&p.clients) {
            clients.push(p.clients);
        }
    }
    let clients: Vec<String> = clients.iter().map(ToString::to_string).collect();
    line += &format!(" --flows {}", clients.join(","));
    for path in &t.other_paths {
        line += &format!(" --path {}", shell(&path.path));
    }
    if t.verified.is_some() {
        line += " --verify";
    }
    line + " --json"
}

fn passive(t: &PassiveDocument) -> String {
    let mut line = "netwright explain".to_owned();
    t.ports.iter().for_each(|p| line += &format!(" --port {p}"));
    t.pids.iter().for_each(|p| line += &format!(" --pid {p}"));
    line + &format!(" --duration {}ms --json", t.window_ns.0 / 1_000_000)
}

fn compare(t: &CompareDocument) -> Vec<String> {
    let (Some(before), Some(after)) = (&t.before, &t.after) else { return vec![] };
    let mut line = format!("netwright compare {} {}", shell(&before.name), shell(&after.name));
    if let Some(limit) = t.limit {
        line += &format!(" --limit {}%", 100.0 * limit);
    }
    if let Some(least) = t.min_effect {
        line += &format!(" --min-effect {}%", 100.0 * least);
    }
    vec![line + " --json"]
}
