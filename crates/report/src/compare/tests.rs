use model::{
    compare::{
        CompareDocument, CompareNote, Comparison, FloorAt, GroupFigures, GroupSummary, NoiseFloor,
        RunOrder,
    },
    prove::{Direction, Outcome},
};

use super::{markdown, text};
use crate::{TextStyle, testing::golden};

fn group(name: &str) -> GroupSummary {
    GroupSummary {
        name: name.into(),
        files: 10,
        runs: 10,
        programs: vec!["netwright measure rtt".into()],
    }
}

fn comparison(metric: &str, outcome: Outcome, medians: (f64, f64), change: [f64; 3]) -> Comparison {
    let figures = |median| GroupFigures { runs: 10, median, figures: vec![median; 10] };
    Comparison {
        case: "tcp, 64/64 B, 1 flow".into(),
        metric: metric.into(),
        unit: "ns".into(),
        direction: Direction::LowerIsBetter,
        before: figures(medians.0),
        after: figures(medians.1),
        outcome,
        effect: change[0],
        low: Some(change[1]),
        high: Some(change[2]),
        difference: false,
        p: if outcome == Outcome::Worse { 0.000_4 } else { 0.604 },
        noise_floor: None,
        within_limit: None,
    }
}

fn document() -> CompareDocument {
    CompareDocument {
        schema_version: 1,
        kind: "compare".into(),
        before: Some(group("before")),
        after: Some(group("after")),
        outcome: Some(Outcome::Worse),
        passed: false,
        limit: None,
        min_effect: None,
        order: RunOrder::OneAfterTheOther,
        comparisons: vec![
            comparison("rtt_p50_ns", Outcome::Worse, (50_300.0, 52_400.0), [0.043, 0.028, 0.055]),
            comparison(
                "rtt_p99_ns",
                Outcome::NoDifferenceShown,
                (67_100.0, 66_900.0),
                [-0.004, -0.031, 0.024],
            ),
        ],
        noise_floor: vec![],
        notes: vec![CompareNote::OneAfterTheOther {
            first: "before".into(),
            second: "after".into(),
        }],
    }
}

#[test]
fn the_verdict_comes_first() {
    let answer = "compare: worse · rtt_p50_ns +4.3% (95% CI +2.8% to +5.5%), p < 0.001";
    golden!("worse", answer, |style| text(&document(), style));
}

#[test]
fn long_names_leave_the_verdicts_whole() {
    let mut d = document();
    let names =
        ["server_cpu_ns_per_transaction_p50", "response_time_of_the_slowest_replica_p99_ms"];
    for (comparison, name) in d.comparisons.iter_mut().zip(names) {
        comparison.metric = name.into();
        comparison.noise_floor = Some(0.02);
    }
    let undecided = [0.021, -0.002, 0.043];
    d.comparisons.push(comparison("x", Outcome::Undecided, (1_050_300.0, 1_052_400.0), undecided));
    let answer = "compare: worse · server_cpu_ns_per_transaction_p50 +4.3%";
    golden!("long_names", answer, |style| text(&d, style));
}

#[test]
fn a_noise_floor_alone_is_a_table() {
    let floor = NoiseFloor {
        case: String::new(),
        metric: "requests_per_s".into(),
        unit: "1/s".into(),
        runs: 20,
        median: 828.96,
        difference: false,
        floors: [(4, 0.081), (6, 0.064), (10, 0.048), (20, 0.033)]
            .map(|(runs, effect)| FloorAt { runs, effect })
            .to_vec(),
    };
    let floor = CompareDocument {
        before: None,
        after: None,
        outcome: None,
        comparisons: vec![],
        notes: vec![],
        noise_floor: vec![floor],
        ..document()
    };
    golden!("floor", "Noise floor", |style| text(&floor, style));
}

#[test]
fn what_was_asked_is_answered_and_few_runs_are_said() {
    let mut d = document();
    d.limit = Some(0.05);
    d.comparisons[0].within_limit = Some(false);
    d.comparisons[1].within_limit = Some(true);
    let shown = |d: &CompareDocument| text(d, TextStyle { width: 200, ..TextStyle::default() });
    assert!(shown(&d).contains("Not shown within the limit of 5.0%: rtt_p50_ns."), "{}", shown(&d));
    d.comparisons[1].case = "tcp, 1024/1024 B, 1 flow".into();
    assert!(shown(&d).contains("\ntcp, 1024/1024 B, 1 flow:\n"), "{}", shown(&d));
    d.outcome = Some(Outcome::Undecided);
    d.comparisons.iter_mut().for_each(|c| {
        c.outcome = Outcome::Undecided;
        (c.low, c.high) = (None, None);
    });
    assert!(shown(&d).starts_with("compare: undecided: too few runs · "), "{}", shown(&d));
    d.comparisons.iter_mut().for_each(|c| c.noise_floor = Some(0.02));
    assert!(shown(&d).contains("FLOOR") && shown(&d).contains(" 2.0% "), "{}", shown(&d));
}

#[test]
fn markdown_is_a_table_and_hostile_names_stay_text() {
    let mut d = document();
    let said = markdown(&d);
    assert!(
        said.starts_with(
            "**worse**: rtt\\_p50\\_ns +4.3% (95% CI +2.8% to +5.5%), p &lt; 0.001\n\n|"
        )
    );
    assert!(said.contains(
        "| rtt\\_p99\\_ns | 67,100 | 66,900 | 10+10 | -0.4% (-3.1% to +2.4%) | 0.604 | no significant \
         difference (ruled out beyond 3.1%) |\n"
    ), "{said}");
    assert!(said.contains("- all runs of before were made before those of after"), "{said}");
    d.comparisons[0].metric = "a|b<img src=x>\x1b[31m@x".into();
    let said = markdown(&d);
    assert!(
        !said.contains("<img") && !said.contains('\x1b') && said.contains("a\\|b&lt;img"),
        "{said}"
    );
}
