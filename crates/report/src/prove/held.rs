//! What was frozen during the runs, and what could not be.

use model::prove::{FrozenHost, HeldSetting};

use crate::text::{Ink, Line, Page};

/// A line for what was frozen, and a line for each thing that could not be.
pub(crate) fn still(of: Option<&FrozenHost>, page: &mut Page) {
    let Some(of) = of else { return };
    let each: Vec<String> = of.held.iter().map(held).collect();
    if !each.is_empty() {
        page.line(Line::plain(format!("Frozen, then restored: {}.", each.join("; "))), 2);
    }
    let changed = of.held.iter().filter_map(|h| h.until.as_ref());
    let changed = changed.map(|why| format!("Not frozen until the end: {why}."));
    let not = of.not_frozen.iter().map(|n| format!("Not frozen: {}: {}.", n.knob, n.why));
    for line in changed.chain(not) {
        page.line(Line::new().ink(Ink::Warn, line), 2);
    }
}

fn held(h: &HeldSetting) -> String {
    let times = if h.settings > 1 { format!(" ({} of them)", h.settings) } else { String::new() };
    match h.old == h.new {
        true => format!("{}{times} was {} already", h.knob, h.new),
        false => format!("{}{times} {} (was {})", h.knob, h.new, h.old),
    }
}
