//! The confidence intervals of medians and rates, in words.

use model::measure::Interval;

use super::runs;
use crate::{
    text::{Ink, Line, Page},
    words,
};

/// With `-v` all are shown.
const MOST_METHODS: usize = 4;

/// A figure with its interval: `53.1 µs (95% CI 52.7–53.5 µs)`, `18,832/s (95% CI …)`.
pub fn figure(value: &Line, interval: Option<&Interval>, show: fn(f64) -> Line) -> String {
    let value = value.bare();
    let Some(i) = interval else { return value };
    let [low, high] = [i.low, i.high].map(|end| show(end.max(0.0)).bare());
    format!("{value} ({:.0}% CI {})", i.level * 100.0, words::interval(&low, &high))
}

/// A run's interval; `None` where it has none.
pub type IntervalOf<'a, R> = &'a dyn Fn(&R) -> Option<Interval>;

/// The meaning of `±` and the method of the intervals of `name`, once for all runs.
pub fn show<R>(runs: &[R], name: &str, interval: IntervalOf<'_, R>, page: &mut Page) {
    let found: Vec<Interval> = runs.iter().filter_map(interval).collect();
    let Some(first) = found.first() else { return };
    let text = match runs {
        // The answer shows both ends of the interval.
        [_] if !page.look().verbose => return,
        [_] => format!("CI method: {}.", first.method),
        _ => {
            let level = format!("{:.0}%", first.level * 100.0);
            let all = found.iter().all(|i| i.method == first.method);
            match all {
                true => format!("±: reach of the {level} CI ({name}: {}).", first.method),
                false => format!("±: reach of the {level} CI; {name} by run:"),
            }
        }
    };
    page.line(Line::new().ink(Ink::Faint, text), 2);
    methods(runs, interval, page);
}

/// The batches of each run's interval, where they differ.
fn methods<R>(runs: &[R], interval: IntervalOf<'_, R>, page: &mut Page) {
    let found = runs.iter().enumerate().filter_map(|(n, r)| Some((n + 1, interval(r)?.method)));
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
