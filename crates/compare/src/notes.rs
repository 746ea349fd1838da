//! What a reader must know beside the verdict.

use model::{
    compare::{CompareDocument, CompareNote as Note, Comparison, RunOrder},
    prove::Outcome,
};
use stats::trial::{block_series, two_groups, two_places};

use crate::{
    Group, Request,
    metrics::{Scale, cases, values},
    noise_floor,
};

/// The difference to look for where the operator names none.
const MATTERS: f64 = 0.05;

/// From so many runs on their order is searched for drift in evenly spaced ones only.
const MOST_IN_ORDER: usize = 1_000;

pub(crate) fn all(document: &mut CompareDocument, groups: (&Group, &Group), request: &Request) {
    let mut notes = Vec::new();
    compared(groups, &mut notes);
    order(document.order, groups, &mut notes);
    few_runs(document, &mut notes);
    for comparison in &document.comparisons {
        noise(comparison, request, &mut notes);
        of_group(comparison, &groups.0.name, &comparison.before.figures, &mut notes);
        of_group(comparison, &groups.1.name, &comparison.after.figures, &mut notes);
        constant(comparison, &mut notes);
        floor(comparison, request, &mut notes);
    }
    notes.extend(of_noise_floor(document, request));
    document.notes = notes;
}

fn compared((before, after): (&Group, &Group), notes: &mut Vec<Note>) {
    let (first, second) = (cases(&before.runs), cases(&after.runs));
    if let ([first], [second]) = (first.as_slice(), second.as_slice()) {
        if first != second && ![before.name.as_str(), after.name.as_str()].contains(first) {
            let (before, after) = ((*first).to_owned(), (*second).to_owned());
            notes.push(Note::DifferentCases { before, after });
        }
    } else {
        let only = |group: &Group, own: &[&str], other: &[&str]| {
            let missing = own.iter().filter(|c| !other.contains(c));
            let what: Vec<String> = missing.map(|c| (*c).to_owned()).collect();
            let group = group.name.clone();
            (!what.is_empty()).then_some(Note::OnlyInOneGroup { group, what })
        };
        notes.extend(only(before, &first, &second));
        notes.extend(only(after, &second, &first));
    }
    let shared = before.runs.iter().any(|r| r.figures.len() > 1 && after.runs.contains(r));
    if shared {
        notes.push(Note::SameRuns);
    }
}

fn order(order: RunOrder, (before, after): (&Group, &Group), notes: &mut Vec<Note>) {
    match order {
        RunOrder::Interleaved => {}
        RunOrder::Unknown => notes.push(Note::OrderUnknown),
        RunOrder::OneAfterTheOther => {
            let begin = |g: &Group| g.runs.iter().filter_map(|r| r.started_unix_s).next();
            let swapped = begin(before) > begin(after);
            let (first, second) = if swapped { (after, before) } else { (before, after) };
            let (first, second) = (first.name.clone(), second.name.clone());
            notes.push(Note::OneAfterTheOther { first, second });
        }
    }
}

/// Notes the smallest groups, where they can show no difference, however large it is.
fn few_runs(document: &CompareDocument, notes: &mut Vec<Note>) {
    let comparisons = document.comparisons.len();
    let few = |c: &&Comparison| !two_groups::can_show(c.before.runs, c.after.runs, comparisons);
    let least =
        document.comparisons.iter().filter(few).min_by_key(|c| c.before.runs + c.after.runs);
    notes.extend(least.map(|c| Note::FewRuns {
        before: c.before.runs,
        after: c.after.runs,
        comparisons,
        needed: two_groups::fewest_runs(comparisons),
    }));
}

fn named(c: &Comparison) -> String {
    if c.case.is_empty() { c.metric.clone() } else { format!("{} ({})", c.metric, c.case) }
}

/// Notes a figure too noisy for the difference that matters. An interval narrows with the square
/// root of the number of runs.
fn noise(c: &Comparison, request: &Request, notes: &mut Vec<Note>) {
    let (Some(low), Some(high), false) = (c.low, c.high, c.difference) else { return };
    let reached = (high - low) / 2.0;
    let wanted = request.min_effect.or(request.limit).unwrap_or(MATTERS);
    if c.outcome == Outcome::NoDifferenceShown && reached > wanted {
        let runs = c.before.runs.min(c.after.runs) as f64;
        let needed = (runs * (reached / wanted).powi(2)).ceil() as u64;
        notes.push(Note::TooNoisy { metric: named(c), wanted, reached, needed });
    }
}

/// Notes drift, neighbours that resemble one another, outlier runs and modes of one group.
fn of_group(c: &Comparison, group: &str, figures: &[f64], notes: &mut Vec<Note>) {
    let scale = if c.difference { Scale::Plain } else { Scale::Logarithms };
    let step = figures.len().div_ceil(MOST_IN_ORDER).max(1);
    let scaled: Vec<f64> = scale.scaled(figures).into_iter().step_by(step).collect();
    let (metric, group) = (named(c), group.to_owned());
    if let Some(trend) = block_series::trend(&scaled) {
        let (change, difference) = (scale.shown(trend), c.difference);
        notes.push(Note::Drifted {
            metric: metric.clone(),
            group: group.clone(),
            change,
            difference,
        });
    } else if let Some(correlation) = block_series::autocorrelation(&scaled) {
        notes.push(Note::Wandered { metric: metric.clone(), group: group.clone(), correlation });
    }
    if let Some(two) = two_places::split(&scaled) {
        let back = |x: f64| if c.difference { x } else { x.exp() };
        let (lower_share, low, high) = (1.0 - two.upper_share, back(two.low), back(two.high));
        notes.push(Note::TwoModes { metric, group, lower_share, low, high });
        return;
    }
    let outliers = block_series::outliers(&scaled);
    if !outliers.is_empty() && outliers.len() <= 5 && scaled.len() >= 6 {
        let runs = outliers.iter().map(|at| at * step + 1).collect();
        notes.push(Note::OutlierRuns { metric, group, runs });
    }
}

fn constant(c: &Comparison, notes: &mut Vec<Note>) {
    let mut all = c.before.figures.iter().chain(&c.after.figures);
    if let Some(first) = all.next()
        && all.all(|f| f == first)
        && *first != 0.0
    {
        notes.push(Note::NeverMoves { metric: named(c), figure: *first });
    }
}

fn floor(c: &Comparison, request: &Request, notes: &mut Vec<Note>) {
    if request.noise_floor.is_empty() {
        return;
    }
    let called = matches!(c.outcome, Outcome::Better | Outcome::Worse);
    match c.noise_floor {
        None => notes.push(Note::NoNoiseFloor { metric: named(c) }),
        Some(floor) if called && c.effect.abs() < floor => notes.push(Note::BelowNoiseFloor {
            metric: named(c),
            effect: c.effect,
            floor,
            difference: c.difference,
        }),
        Some(_) => {}
    }
}

/// Where the runs of the noise floor themselves differ from their first half to their second.
pub(crate) fn of_noise_floor(document: &CompareDocument, request: &Request) -> Vec<Note> {
    let moved = document.noise_floor.iter().filter_map(|floor| {
        let own = values(&request.noise_floor, &floor.case, &floor.metric);
        let scale = if floor.difference { Scale::Plain } else { Scale::Logarithms };
        let (metric, difference) = (floor.metric.clone(), floor.difference);
        let moved = noise_floor::moved(&own, scale)?;
        Some(Note::NoiseFloorMoves { metric, effect: moved, difference })
    });
    moved.collect()
}
