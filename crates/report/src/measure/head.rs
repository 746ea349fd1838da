//! The header: the request, both ends, the duration.

use std::collections::BTreeSet;

use model::{
    Nanos,
    measure::{Common, End, SPIN_NS, Transport, Wait},
    units::grouped,
};

use super::Run;
use crate::{
    inspect::dotted,
    text::{Ink, Line, Page},
    words::many,
};

/// The lines above the first table.
pub struct Head<'a, R> {
    /// First words of the page: `Round trips`.
    pub what: &'a str,
    pub common: &'a Common,
    pub local: &'a End,
    pub peer: &'a End,
    /// What all runs have in common.
    pub said: Vec<String>,
    pub runs: &'a [R],
    /// Whether the measurement ended early.
    pub interrupted: bool,
    /// The levels that were requested and not started: `8, 16 clients`; empty where none.
    pub missing: String,
}

impl<R: Run> Head<'_, R> {
    /// Writes the header, with the answer on the second line.
    pub fn show(self, answer: Option<Line>, page: &mut Page) {
        let over = format!("{} over {} to ", self.what, transport(self.common.transport));
        let title = Line::new().ink(Ink::Strong, over).ink(Ink::Strong, &self.common.target);
        let said = self.said.iter().map(Line::plain);
        match answer {
            // What all runs have in common may take two lines, so it follows the answer.
            Some(answer) => {
                page.line(title, 2);
                page.line(answer, 2);
                page.line(dotted(said), 2);
            }
            None => page.line(dotted([title].into_iter().chain(said)), 2),
        }
        let same = self.runs.iter().any(|r| r.placement().same_host);
        page.line(
            match same {
                true => dotted(one_host(self.local, self.peer)),
                false => dotted([end("client", self.local), end("server", self.peer)]),
            },
            2,
        );
        if let Some(line) = length(self.runs) {
            page.line(line, 2);
        }
        if self.interrupted {
            let text = match (self.runs.len(), self.missing.as_str()) {
                (0, _) => "Ended early, before anything was measured.".to_owned(),
                (_, "") => "Ended early: the figures cover the time until then.".to_owned(),
                (_, missing) => format!(
                    "Ended early: the figures cover the time until then; not measured: {missing}."
                ),
            };
            page.line(Line::new().ink(Ink::Warn, text), 2);
        }
    }
}

/// `client netwright 0.1.0`, `server nginx/1.22.1`, `one host: Linux 6.18.5 x86_64, 2 CPUs`; or
/// `netwright 0.1.0 at both ends`.
fn one_host(local: &End, peer: &End) -> Vec<Line> {
    let program =
        |name: &str, program: &str| Line::new().ink(Ink::Faint, format!("{name} ")).text(program);
    let mut parts = match local.program == peer.program {
        true => vec![Line::plain(format!("{} at both ends", local.program))],
        false => vec![program("client", &local.program), program("server", &peer.program)],
    };
    let host = End { program: String::new(), ..local.clone() };
    parts.push(end("one host:", &host));
    parts
}

/// `client netwright 0.1.0, Linux 6.18.5 x86_64, 2 CPUs, 10.0.0.1`.
fn end(name: &str, end: &End) -> Line {
    let kernel = match end.kernel.is_empty() {
        true => String::new(),
        false => format!("Linux {} {}", end.kernel, end.arch),
    };
    // A number and its noun stay on one line.
    let cpus = match end.cpus {
        0 => String::new(),
        n => many(n as usize, "CPU").replace(' ', "\u{a0}"),
    };
    let parts: Vec<&str> = [end.program.as_str(), kernel.trim(), &cpus, &end.address]
        .into_iter()
        .filter(|p| !p.is_empty())
        .collect();
    Line::new().ink(Ink::Faint, format!("{name} ")).text(parts.join(", "))
}

/// Requested levels that were not started, in their order: those after the first `begun`.
pub fn not_started(asked: &[u32], begun: usize, one: &str) -> String {
    match asked.get(begun..).unwrap_or_default() {
        [] => String::new(),
        [only] => many(*only as usize, one),
        several => {
            let all: Vec<String> = several.iter().map(|n| grouped((*n).into())).collect();
            format!("{} {one}s", all.join(", "))
        }
    }
}

fn length<R: Run>(runs: &[R]) -> Option<Line> {
    let range = |of: fn(&R) -> Nanos| {
        let all: BTreeSet<Nanos> = runs.iter().map(of).collect();
        // To three digits they are mostly equal.
        let (first, last) = (all.first()?.to_string(), all.last()?.to_string());
        Some(if first == last { first } else { format!("{first} to {last}") })
    };
    let (window, trimmed) = (range(R::window)?, range(R::trimmed)?);
    let each = if runs.len() > 1 { "Each run" } else { "Measured for" };
    let tail = match runs.iter().all(|r| r.trimmed().0 == 0) {
        true => "no warm-up".to_owned(),
        false => format!("without {trimmed} of warm-up and cool-down"),
    };
    Some(Line::plain(format!("{each} {window}, {tail}.")))
}

pub fn transport(t: Transport) -> &'static str {
    match t {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
        Transport::Unix => "a Unix socket",
    }
}

/// `block`, or `spin/block` where the server waits differently.
pub fn waits((local, peer): (Wait, Wait)) -> String {
    let name = |w| match w {
        Wait::Block => "block",
        Wait::Spin => "spin",
        Wait::SpinThenBlock => "spin-block",
        Wait::BusyPoll => "busy-poll",
    };
    if local == peer { name(local).into() } else { format!("{}/{}", name(local), name(peer)) }
}

/// How a thread waits for data.
pub fn wait(w: Wait) -> String {
    match w {
        Wait::Block => "blocking I/O".into(),
        Wait::Spin => "spinning".into(),
        Wait::SpinThenBlock => format!("spinning {SPIN_NS} then blocking"),
        Wait::BusyPoll => "busy polling".into(),
    }
}

/// How both ends wait, as the header says it.
pub fn waits_said((local, peer): (Wait, Wait)) -> String {
    match local == peer {
        true => format!("{} at both ends", wait(local)),
        false => format!("{} at the client, {} at the server", wait(local), wait(peer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_after_the_last_that_was_begun_are_named() {
        assert_eq!(not_started(&[1, 8, 1600], 1, "client"), "8, 1,600 clients");
        assert_eq!(not_started(&[1, 8], 1, "client"), "8 clients");
        assert_eq!(not_started(&[8, 1], 1, "flow"), "1 flow");
        assert_eq!(not_started(&[1, 8], 2, "client"), "");
    }
}
