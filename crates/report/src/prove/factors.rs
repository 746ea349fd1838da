//! Several factors: the effect of each, in the first line and as a table.

use model::prove::{FactorEffect, Outcome, ProveDocument};

use super::{chance, change, effect, ink, says};
use crate::text::{Line, Page, Table};

/// The most effects in the first line; the table has all.
const MOST: usize = 3;

/// Effects of factors beside the verdict's own: `; threads 8 worse, -5.0% (…)`.
pub(super) fn beside(d: &ProveDocument) -> String {
    let shown = |e: &&FactorEffect| matches!(e.verdict.outcome, Outcome::Better | Outcome::Worse);
    let other = d.effects.iter().filter(|e| e.verdict != d.verdict);
    let mut all: Vec<&FactorEffect> = other.filter(shown).collect();
    // A factor says more than an interaction, and a larger effect more than a smaller one.
    all.sort_by(|a, b| {
        let size = |e: &FactorEffect| e.verdict.effect.map_or(0.0, f64::abs);
        pair(a).cmp(&pair(b)).then(size(b).total_cmp(&size(a)))
    });
    let mut said: String = all.iter().take(MOST).map(|e| format!("; {}", one(e))).collect();
    if let Some(more) = all.len().checked_sub(MOST).filter(|n| *n > 0) {
        said += &format!("; {more} more below");
    }
    said
}

fn one(e: &FactorEffect) -> String {
    let comma = if pair(e) { ":" } else { "" };
    format!("{} {}{comma} {}, {}", e.factor, e.level, word(e), effect(&e.verdict))
}

/// Whether it is an interaction of two factors.
fn pair(e: &FactorEffect) -> bool {
    e.factor.contains(" × ")
}

fn word(e: &FactorEffect) -> String {
    match (pair(e), e.verdict.outcome) {
        (true, Outcome::Better | Outcome::Worse) => "they depend on one another".to_owned(),
        _ => says(&e.verdict),
    }
}

/// Each factor's levels and each pair of them.
pub(super) fn table(d: &ProveDocument, page: &mut Page) {
    if d.effects.is_empty() {
        return;
    }
    page.gap();
    let mut table = Table::new()
        .left("FACTOR")
        .left("LEVEL")
        .right("EFFECT (95% CI)")
        .right("P")
        .left("VERDICT");
    for e in &d.effects {
        table.row([
            Line::plain(&e.factor),
            Line::plain(&e.level),
            Line::plain(change(&e.verdict)),
            Line::plain(e.verdict.p.map_or("-".into(), chance)),
            Line::new().ink(ink(e.verdict.outcome), word(e)),
        ]);
    }
    page.table(&table, 0);
}
