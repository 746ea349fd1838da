//! Kernel settings, their defaults and who set them.

use model::sysctl::{DefaultFrom, Origin, Sysctl};

use super::View;
use crate::{
    text::{Ink, Line, Page, Table},
    words::reading,
};

pub fn show(v: &View<'_>, page: &mut Page) {
    page.heading("KERNEL SETTINGS");
    let mut t = Table::new()
        .left("KEY")
        .wrapping("VALUE")
        .wrapping("DEFAULT")
        .left("UNIT")
        .wrapping("SET BY");
    for (key, s) in &v.facts.sysctls {
        let differs = matches!((s.value.known(), s.default.known()), (Some(a), Some(b)) if a != b);
        let value = match s.value.known() {
            Some(x) if differs => Line::new().ink(Ink::Warn, x),
            _ => reading(&s.value),
        };
        t.row([Line::plain(key), value, reading(&s.default), Line::plain(&s.unit), origin(s)]);
    }
    page.table(&t, 2);
    let from = |d: DefaultFrom| v.facts.sysctls.values().filter(|s| s.default_from == d).count();
    page.line(
        Line::plain("  ").ink(
            Ink::Faint,
            format!(
                "Defaults: {} from a fresh network namespace, {} from the table by kernel \
                 version, {} not known.",
                from(DefaultFrom::FreshNamespace),
                from(DefaultFrom::VersionTable),
                from(DefaultFrom::Unknown)
            ),
        ),
        2,
    );
}

fn origin(s: &Sysctl) -> Line {
    match &s.origin {
        Origin::Default => Line::new().ink(Ink::Faint, "default"),
        Origin::File { path, line, .. } => Line::plain(format!("{path}:{line}")),
        Origin::Tuned { profile, path, line } => {
            Line::plain(format!("tuned {profile} ({path}:{line})"))
        }
        Origin::KernelCmdline => Line::plain("kernel cmdline"),
        Origin::Unknown => Line::plain("not known"),
    }
}
