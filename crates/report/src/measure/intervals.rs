//! The intervals of medians and rates, in words.

use model::measure::Interval;

use super::{
    numbers::{per_second, time_of},
    runs,
};
use crate::text::{Ink, Line, Page};

/// More are shown only when everything is asked for.
const MOST_METHODS: usize = 4;

/// A run's interval, where it has one.
pub type Of<'a, R> = &'a dyn Fn(&R) -> Option<Interval>;

/// What the intervals are, once for all runs: of their medians, and for a single one of its rate.
pub fn show<R>(runs: &[R], median: Of<'_, R>, rate: Of<'_, R>, page: &mut Page) {
    let found: Vec<Interval> = runs.iter().filter_map(median).collect();
    let Some(first) = found.first() else { return };
    let span = |i: &Interval, show: fn(f64) -> Line| {
        format!("{} to {}", show(i.low.max(0.0)).bare(), show(i.high.max(0.0)).bare())
    };
    let level = format!("{:.0}%", first.level * 100.0);
    let text = match runs {
        [one] => {
            let rate = rate(one).map(|i| format!(", the rate's {} a second", span(&i, per_second)));
            let median = span(first, time_of);
            format!(
                "The median's {level} interval is {median}{} ({}).",
                rate.unwrap_or_default(),
                first.method
            )
        }
        _ => {
            let all = found.iter().all(|i| i.method == first.method);
            let method = if all { format!(" ({})", first.method) } else { String::new() };
            format!("± is the reach of the median's {level} interval{method}.")
        }
    };
    page.line(Line::new().ink(Ink::Faint, text), 2);
    methods(runs, median, page);
}

/// Which batches each run's interval came from, where they differ.
fn methods<R>(runs: &[R], median: Of<'_, R>, page: &mut Page) {
    let found = runs.iter().enumerate().filter_map(|(n, r)| Some((n + 1, median(r)?.method)));
    let found = runs::alike(found);
    if found.len() < 2 {
        return;
    }
    let most = if page.look().verbose { usize::MAX } else { MOST_METHODS };
    for (method, about) in found.iter().take(most) {
        let text = format!("  {}{method}", runs::about(about, runs.len()));
        page.line(Line::new().ink(Ink::Faint, text), 4);
    }
    if found.len() > most {
        let text = format!("  and {} more (-v shows each)", found.len() - most);
        page.line(Line::new().ink(Ink::Faint, text), 4);
    }
}
