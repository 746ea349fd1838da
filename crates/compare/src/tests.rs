use model::compare::{BenchmarkFigure, CompareNote};

use super::*;

fn run(at: Option<f64>, p50: f64, rate: f64) -> BenchmarkRun {
    BenchmarkRun {
        program: "wrk".into(),
        case: "http://h/".into(),
        started_unix_s: at,
        figures: vec![
            BenchmarkFigure::lower("latency_p50_ns", "ns", p50).main(),
            BenchmarkFigure::higher("requests_per_s", "1/s", rate).main(),
            BenchmarkFigure::lower("latency_max_ns", "ns", 9.0 * p50),
        ],
    }
}

fn group(name: &str, runs: Vec<BenchmarkRun>) -> Group {
    Group { name: name.into(), files: runs.len(), runs }
}

/// Ten runs each, of which the second group's take this share longer.
fn two(longer: f64) -> Request {
    let at = |i: usize| 100.0 + (i * 7 % 10) as f64;
    let runs = |factor: f64, from: f64| -> Vec<BenchmarkRun> {
        (0..10).map(|i| run(Some(from + i as f64), at(i) * factor, 1e5 / at(i) / factor)).collect()
    };
    let groups = (group("old", runs(1.0, 0.0)), group("new", runs(1.0 + longer, 100.0)));
    Request { groups: Some(groups), ..Request::default() }
}

#[test]
fn a_change_is_judged_in_each_metric_by_its_direction() {
    let d = compare(&two(0.2)).unwrap();
    assert_eq!((d.outcome, d.passed), (Some(Outcome::Worse), false));
    let names: Vec<&str> = d.comparisons.iter().map(|c| c.metric.as_str()).collect();
    assert_eq!(names, ["latency_p50_ns", "requests_per_s"]);
    let [time, rate] = d.comparisons.as_slice() else { panic!() };
    assert!((time.effect - 0.2).abs() < 1e-9 && (rate.effect - (1.0 / 1.2 - 1.0)).abs() < 1e-9);
    assert!(time.low.unwrap() > 0.1 && rate.high.unwrap() < -0.1);
    assert_eq!((time.outcome, rate.outcome), (Outcome::Worse, Outcome::Worse));
    assert_eq!(time.before.median, 104.5);
    assert_eq!(compare(&two(-0.2)).unwrap().outcome, Some(Outcome::Better));
    let none = compare(&two(0.0)).unwrap();
    assert_eq!((none.outcome, none.passed), (Some(Outcome::NoDifferenceShown), true));
}

#[test]
fn a_limit_asks_for_a_proof() {
    let judged = |longer: f64, limit: f64| {
        let d = compare(&Request { limit: Some(limit), ..two(longer) }).unwrap();
        (d.outcome.unwrap(), d.passed)
    };
    // Worse, and shown to be worse by less than the limit.
    assert_eq!(judged(0.1, 0.25), (Outcome::Worse, true));
    assert_eq!(judged(0.1, 0.1), (Outcome::Worse, false));
    // No difference is shown, and none as small as the limit is ruled out.
    assert_eq!(judged(0.0, 0.01), (Outcome::NoDifferenceShown, false));
}

#[test]
fn the_order_of_the_runs_is_said() {
    let d = compare(&two(0.2)).unwrap();
    assert_eq!(d.order, RunOrder::OneAfterTheOther);
    let first = |n: &CompareNote| matches!(n, CompareNote::OneAfterTheOther { first, .. } if first == "old");
    assert!(d.notes.iter().any(first), "{:?}", d.notes);
    let mut request = two(0.2);
    let (_, after) = request.groups.as_mut().unwrap();
    after.runs.iter_mut().enumerate().for_each(|(i, r)| r.started_unix_s = Some(i as f64 + 0.5));
    assert_eq!(compare(&request).unwrap().order, RunOrder::Interleaved);
    let (before, _) = request.groups.as_mut().unwrap();
    before.runs[3].started_unix_s = None;
    let d = compare(&request).unwrap();
    assert!(d.order == RunOrder::Unknown && d.notes.contains(&CompareNote::OrderUnknown));
}

#[test]
fn too_few_runs_are_said_with_how_many_suffice() {
    let mut request = two(0.2);
    let (before, after) = request.groups.as_mut().unwrap();
    before.runs.truncate(3);
    after.runs.truncate(3);
    let d = compare(&request).unwrap();
    assert_eq!((d.outcome, d.passed), (Some(Outcome::Undecided), false));
    assert_eq!(d.comparisons[0].low, None);
    let few = CompareNote::FewRuns { before: 3, after: 3, comparisons: 2, needed: 5 };
    assert!(d.notes.contains(&few), "{:?}", d.notes);
}

#[test]
fn drift_modes_and_outliers_of_a_group_are_said() {
    let noted = |figure: &dyn Fn(usize) -> f64| {
        let mut request = two(0.0);
        let (before, _) = request.groups.as_mut().unwrap();
        before.runs = (0..20).map(|i| run(Some(i as f64), figure(i), 7.0)).collect();
        compare(&request).unwrap().notes
    };
    let noise = |i: usize| 1.0 + 0.01 * (i * 7 % 11) as f64;
    let has = |notes: &[CompareNote], what: fn(&CompareNote) -> bool| notes.iter().any(what);
    let drift = noted(&|i| noise(i) * 1.05f64.powi(i as i32));
    assert!(has(&drift, |n| matches!(n, CompareNote::Drifted { change, .. } if *change > 1.0)));
    let modes = noted(&|i| noise(i) * if i * 5 % 7 < 3 { 3.0 } else { 1.0 });
    assert!(has(&modes, |n| matches!(n, CompareNote::TwoModes { .. })), "{modes:?}");
    let outlier = noted(&|i| noise(i) * if i == 4 { 5.0 } else { 1.0 });
    assert!(has(&outlier, |n| matches!(n, CompareNote::OutlierRuns { runs, .. } if runs == &[5])));
    let steady = noted(&noise);
    assert!(!has(&steady, |n| matches!(
        n,
        CompareNote::Drifted { .. } | CompareNote::TwoModes { .. }
    )));
}

#[test]
fn metrics_are_chosen_and_what_is_not_there_is_said() {
    let choose = |metric: &str, direction| {
        let choices = vec![Choice { metric: metric.into(), direction }];
        compare(&Request { choices, ..two(0.2) })
    };
    let max = choose("latency_max_ns", None).unwrap();
    assert_eq!((max.comparisons.len(), max.outcome), (1, Some(Outcome::Worse)));
    let turned = choose("latency_max_ns", Some(Direction::HigherIsBetter)).unwrap();
    assert_eq!(turned.outcome, Some(Outcome::Better));
    assert!(matches!(choose("x", None), Err(NoMetric::NotThere { known, .. }) if known.len() == 3));
    assert_eq!(compare(&Request { all_metrics: true, ..two(0.2) }).unwrap().comparisons.len(), 3);
    let mut table = two(0.2);
    let (before, after) = table.groups.as_mut().unwrap();
    for f in before.runs.iter_mut().chain(&mut after.runs).flat_map(|r| &mut r.figures) {
        f.direction = None;
    }
    assert!(
        matches!(compare(&table), Err(NoMetric::NoDirection { metrics }) if metrics.len() == 3)
    );
}

#[test]
fn cases_are_compared_with_their_like() {
    let mut request = two(0.2);
    let (before, after) = request.groups.as_mut().unwrap();
    before.runs.iter_mut().for_each(|r| r.case = "a".into());
    after.runs.iter_mut().for_each(|r| r.case = "b".into());
    let d = compare(&request).unwrap();
    let different = CompareNote::DifferentCases { before: "a".into(), after: "b".into() };
    assert!(d.notes.contains(&different) && d.comparisons.len() == 2);
    let (before, _) = request.groups.as_mut().unwrap();
    let other: Vec<BenchmarkRun> =
        before.runs.iter().map(|r| BenchmarkRun { case: "b".into(), ..r.clone() }).collect();
    before.runs.extend(other);
    let d = compare(&request).unwrap();
    assert!(d.comparisons.iter().all(|c| c.case == "b") && d.comparisons.len() == 2);
    let only = CompareNote::OnlyInOneGroup { group: "old".into(), what: vec!["a".into()] };
    assert!(d.notes.contains(&only), "{:?}", d.notes);
}

/// The floor against the truth of a normal host: the Hodges–Lehmann estimate of two groups of n
/// varies by about the root of 2 π / 3 n of a run's deviation.
#[test]
fn the_noise_floor_is_that_of_the_noise() {
    let deviation = 0.03;
    let mut random = stats::random::SplitMix64::new(8);
    let mut normal = move || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    let runs: Vec<BenchmarkRun> =
        (0..100).map(|_| run(None, (deviation * normal()).exp(), 1.0)).collect();
    let d = compare(&Request { noise_floor: runs.clone(), ..Request::default() }).unwrap();
    let floor = &d.noise_floor[0];
    assert_eq!((d.outcome, d.passed, floor.runs), (None, true, 100));
    for at in &floor.floors {
        let truth = 1.96 * deviation * (2.0 * std::f64::consts::PI / 3.0 / at.runs as f64).sqrt();
        assert!((at.effect / truth - 1.0).abs() < 0.25, "{at:?} {truth}");
    }
    assert!(d.notes.is_empty(), "{:?}", d.notes);
    // A host that becomes slower says so itself.
    let slower = runs
        .iter()
        .enumerate()
        .map(|(i, r)| run(None, r.figures[0].value * 1.003f64.powi(i as i32), 1.0));
    let d = compare(&Request { noise_floor: slower.collect(), ..Request::default() }).unwrap();
    let moves = |n: &CompareNote| matches!(n, CompareNote::NoiseFloorMoves { effect, .. } if (0.1..0.25).contains(effect));
    assert!(d.notes.iter().any(moves), "{:?}", d.notes);
}

#[test]
fn a_change_below_the_noise_floor_is_named() {
    let noisy: Vec<BenchmarkRun> =
        (0..30).map(|i| run(None, 100.0 + f64::from(i * 13 % 30) * 10.0, 1e3)).collect();
    let d = compare(&Request { noise_floor: noisy, ..two(0.2) }).unwrap();
    assert!(d.comparisons[0].noise_floor.unwrap() > 0.2, "{:?}", d.comparisons[0]);
    let below = |n: &CompareNote| matches!(n, CompareNote::BelowNoiseFloor { metric, .. } if metric.starts_with("latency_p50"));
    assert!(d.notes.iter().any(below), "{:?}", d.notes);
}
