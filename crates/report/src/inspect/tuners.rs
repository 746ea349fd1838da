//! Other programs that tune this host.

use model::{reading::Known, tuner::Tuner};

use super::{View, dotted};
use crate::{
    text::{Ink, Line, Page},
    words::{cpus, ranges},
};

/// Files shown in the overview before the rest is only counted.
const FILES: usize = 6;

/// The running tuners, and a few of the files.
pub fn brief(v: &View<'_>, page: &mut Page) {
    if v.facts.tuners.is_empty() {
        return;
    }
    page.heading("ALSO TUNING THIS HOST");
    let (running, files): (Vec<&Tuner>, Vec<&Tuner>) =
        v.facts.tuners.iter().partition(|r| r.running.is_known());
    let shown = if page.look().verbose { files.len() } else { FILES };
    for r in running.iter().chain(files.iter().take(shown)) {
        page.line(Line::plain("  ").also(summary(r)), 4);
    }
    if files.len() > shown {
        let more = files.len() - shown;
        page.line(Line::plain(format!("  and {more} more; see `netwright inspect tuners`")), 4);
    }
}

/// Every tuner with its evidence.
pub fn show(v: &View<'_>, page: &mut Page) {
    page.heading("ALSO TUNING THIS HOST");
    if v.facts.tuners.is_empty() {
        page.line(Line::plain("  no other tuner was found"), 4);
    }
    for r in &v.facts.tuners {
        page.line(Line::plain("  ").also(summary(r)), 4);
        for e in &r.evidence {
            page.line(Line::plain("      ").ink(Ink::Faint, e), 8);
        }
    }
}

fn summary(r: &Tuner) -> Line {
    let state = match (&r.running, &r.pid) {
        (Known(true), Known(pid)) => Line::new().ink(Ink::Warn, format!("running (pid {pid})")),
        (Known(true), _) => Line::new().ink(Ink::Warn, "running"),
        (Known(false), _) => Line::new().ink(Ink::Faint, "installed, not running"),
        _ => Line::new(),
    };
    let label = if r.name == r.kind { String::new() } else { format!(" ({})", r.kind) };
    let banned = r.banned_cpus.get().filter(|b| !b.is_empty());
    let banned_irqs = r.banned_irqs.get().filter(|b| !b.is_empty());
    dotted([
        Line::new().ink(Ink::Strong, &r.name).text(label),
        state,
        if r.owns.is_empty() {
            Line::new()
        } else {
            Line::plain(format!("sets {}", r.owns.join(", ")))
        },
        r.profile.get().map(|p| Line::plain(format!("profile {p}"))).unwrap_or_default(),
        banned.map(|b| Line::plain(format!("banned {}", cpus(&b)))).unwrap_or_default(),
        banned_irqs
            .map(|b| Line::plain(format!("banned IRQs {}", ranges(b.iter().map(|i| i.0)))))
            .unwrap_or_default(),
    ])
}
