use std::collections::BTreeMap;

use model::prove::{
    Best, Design, Direction, DuringRun, Evidence, LevelResult, MetricVerdict, Outcome,
    ProveDocument, ProveNote, Run, Verdict,
};

use super::text;
use crate::{TextStyle, testing::golden};

fn verdict(outcome: Outcome, effect: f64) -> Verdict {
    Verdict {
        outcome,
        effect: Some(effect),
        low: Some(effect - 0.01),
        high: Some(effect + 0.02),
        difference: false,
        method: "m".into(),
        blocks: 12,
        p: Some(0.0123),
    }
}

fn level(name: &str, settings: &[(&str, &str)], p50: f64) -> LevelResult {
    LevelResult {
        level: name.into(),
        settings: settings.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        medians: BTreeMap::from([("p50".into(), p50)]),
        runs: 24,
        against_first: None,
        against_best: None,
    }
}

fn document(design: Design) -> ProveDocument {
    ProveDocument {
        schema_version: 1,
        started_unix_s: 0,
        name: "x".into(),
        design,
        workload: "netwright measure rtt h".into(),
        goal: "p50".into(),
        verdict: verdict(Outcome::Worse, 0.05),
        verdict_of: "b against a".into(),
        limit: None,
        metrics: vec![],
        levels: vec![level("a", &[], 200_000.0), level("b", &[], 210_000.0)],
        best: None,
        effects: vec![],
        evidence: Evidence::default(),
        frozen_host: None,
        ended: "the result is conclusive".into(),
        discarded_runs: 0,
        notes: vec![ProveNote::Other { code: "drift".into(), message: "drifted".into() }],
        runs: vec![],
    }
}

/// The runs of 12 blocks of two levels, each level twice a block.
fn runs() -> Vec<Run> {
    let run = |n: usize| Run {
        block: n / 4,
        level: usize::from(matches!(n % 4, 1 | 2)),
        took_s: 2.1,
        figures: BTreeMap::from([(
            "p50".into(),
            if matches!(n % 4, 1 | 2) { 210e3 } else { 200e3 },
        )]),
        others_cpus: Some(0.1),
        steal_share: Some(0.0),
        host: DuringRun::default(),
        counters: BTreeMap::new(),
        work: None,
        discarded: None,
    };
    (0..48).map(run).collect()
}

const LOOK: TextStyle = TextStyle { width: 100, colour: false, verbose: false };

#[test]
fn a_change_is_said_with_its_interval() {
    let mut d = document(Design::Ab);
    d.metrics = vec![MetricVerdict {
        metric: "p50".into(),
        direction: Direction::LowerIsBetter,
        guard: false,
        verdict: d.verdict.clone(),
    }];
    let said = text(&d, LOOK);
    for part in [
        "x: worse · p50 +5.0% (95% CI +4.0% to +7.0%), p 0.012",
        "12 blocks in random mirrored order, 0 runs; the result is conclusive.",
        "b      210,000",
        "CAVEATS\n  drifted",
    ] {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
    d.verdict = verdict(Outcome::NoDifferenceShown, 0.001);
    assert!(text(&d, LOOK).contains("no significant difference (ruled out beyond 2.1%)"));
}

#[test]
fn long_names_of_levels_are_letters_in_tables_with_one_legend() {
    let mut d = document(Design::Ab);
    let long =
        "sysctl.net.ipv4.tcp_rmem=4096 131072 33554432, sysctl.net.ipv4.tcp_wmem=4096 16384 1";
    d.levels = vec![level("as it is", &[], 300.0), level(long, &[], 200.0)];
    d.metrics = vec![MetricVerdict {
        metric: "p50".into(),
        direction: Direction::LowerIsBetter,
        guard: false,
        verdict: d.verdict.clone(),
    }];
    d.evidence = Evidence {
        first: "as it is".into(),
        second: long.into(),
        per: "run".into(),
        blocks: 6,
        judged: 1,
        moved: vec![model::prove::CorrelatedCounter {
            counter: "tcp.retransmits".into(),
            first: 1.0,
            second: 2.0,
            effect: 1.0,
            low: None,
            high: None,
            difference: false,
            p: 0.01,
        }],
        why_not: None,
    };
    let said = text(&d, LOOK);
    assert_eq!(said.matches(long.split(',').next().unwrap()).count(), 1, "{said}");
    for part in
        ["A      300    24\n", "A: as it is\n", "B: sysctl.net.ipv4.tcp_rmem=4096", "  A     B"]
    {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
    assert!(said.lines().all(|l| l.chars().count() <= LOOK.width), "{said}");
}

#[test]
fn a_matrix_is_a_map_and_a_sweep_a_curve() {
    let mut d = document(Design::Matrix);
    let at = |c: &str, p: &str, v| level(&format!("{c}/{p}"), &[("cpu", c), ("peer_cpu", p)], v);
    d.levels = vec![at("0", "0", 300.0), at("0", "1", 200.0)];
    d.levels[0].against_best = Some(verdict(Outcome::Worse, 0.5));
    d.best = Some(Best {
        level: "0/1".into(),
        smallest_within_noise: "0/1".into(),
        within_noise: vec!["0/1".into()],
    });
    let said = text(&d, LOOK);
    for part in ["server on 0", "300 +50.0%", "200 best", "Best: 0/1, better than every other."] {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
    assert!(said.contains("Next best: 0/0, +50.0% (95% CI "), "{said}");
    assert!(said.contains("Each cell: p50 and its distance from the best;"), "{said}");
    let mut of_a_rate = d.clone();
    of_a_rate.levels[0].against_best = Some(verdict(Outcome::Worse, -0.642));
    assert!(text(&of_a_rate, LOOK).contains("300 -64.2%"), "{}", text(&of_a_rate, LOOK));
    let assignment = |class: &str, cpu: &str, irq: &str, v| {
        level(cpu, &[("class", class), ("cpu", cpu), ("irq_cpu", irq)], v)
    };
    let by_class = ProveDocument {
        levels: vec![
            assignment("same CPU", "3", "3", 300.0),
            assignment("other node", "40", "7", 200.0),
        ],
        ..d.clone()
    };
    let said = text(&by_class, LOOK);
    for part in ["interrupts on 3", "interrupts on 7", "CPU 40: 200 best", "same CPU"] {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
    let first_best = ProveDocument {
        verdict: verdict(Outcome::NoDifferenceShown, 0.0),
        best: d.best.clone().map(|best| Best { level: "0/0".into(), ..best }),
        ..d.clone()
    };
    let said = text(&first_best, LOOK);
    assert!(said.contains("no other level is better than the first"), "{said}");
    d.design = Design::Sweep;
    d.levels[1].against_first = Some(verdict(Outcome::Better, -0.3));
    let said = text(&d, LOOK);
    for part in ["####################", "50.0% worse", "the best", "-30.0% (-31.0% to -28.0%)"] {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
}

#[test]
fn the_first_line_of_several_factors_says_what_is_shown_of_each() {
    let mut d = document(Design::Factorial);
    let effect = |factor: &str, level: &str, outcome, effect| model::prove::FactorEffect {
        factor: factor.into(),
        level: level.into(),
        verdict: verdict(outcome, effect),
    };
    d.verdict_of = "threads 8 against threads 4, over the other factors' levels".into();
    d.effects = vec![
        effect("threads", "8", Outcome::Worse, 0.05),
        effect("cache", "on", Outcome::NoDifferenceShown, 0.0),
        effect("order", "b", Outcome::Worse, 0.03),
        effect("threads × cache", "8 × on", Outcome::Better, -0.4),
    ];
    let said = text(&d, TextStyle { width: 300, ..LOOK });
    let first = said.lines().next().unwrap();
    assert_eq!(
        first,
        "x: worse: threads 8 against threads 4, over the other factors' levels · \
         p50 +5.0% (95% CI +4.0% to +7.0%), p 0.012; order b worse, +3.0% (95% CI +2.0% to +5.0%); \
         threads × cache 8 × on: they depend on one another, -40.0% (95% CI -41.0% to -38.0%)"
    );
}

#[test]
fn what_was_held_still_and_what_not_is_said() {
    let held = |knob: &str, old: &str, new: &str, settings| model::prove::HeldSetting {
        knob: knob.into(),
        settings,
        old: old.into(),
        new: new.into(),
        until: None,
    };
    let mut d = document(Design::Ab);
    d.frozen_host = Some(model::prove::FrozenHost {
        held: vec![
            model::prove::HeldSetting {
                until: Some("irqbalance does not run here".into()),
                ..held("irqbalance.paused", "off", "on", 1)
            },
            held("cpu.governor", "performance", "performance", 4),
        ],
        not_frozen: vec![model::prove::NotHeld { knob: "x".into(), why: "there is none".into() }],
    });
    let said = text(&d, TextStyle { width: 200, ..LOOK });
    for line in [
        "Frozen, then restored: irqbalance.paused on (was off); cpu.governor (4 of them) was \
         performance already.\n",
        "Not frozen until the end: irqbalance does not run here.\n",
        "Not frozen: x: there is none.\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn what_no_run_has_reported_is_no_zero_and_no_best() {
    for design in [Design::Ab, Design::Sweep, Design::Matrix] {
        let mut d = document(design);
        d.verdict = Verdict {
            outcome: Outcome::Undecided,
            effect: None,
            low: None,
            high: None,
            blocks: 0,
            p: None,
            ..d.verdict
        };
        d.metrics = vec![MetricVerdict {
            metric: "p50".into(),
            direction: Direction::LowerIsBetter,
            guard: false,
            verdict: d.verdict.clone(),
        }];
        d.levels.iter_mut().for_each(|l| l.medians.clear());
        let said = text(&d, LOOK);
        assert!(!said.contains("0.0") && !said.contains("-  the best"), "{said}");
        assert!(said.starts_with("x: undecided: no block is complete yet\n"), "{said}");
        assert!(design == Design::Matrix || said.contains("a  "), "{said}");
    }
}

#[test]
fn the_guard_that_is_worse_is_named_at_once() {
    let mut d = document(Design::Ab);
    d.verdict = verdict(Outcome::GuardWorse, 0.1);
    let guard = |outcome| MetricVerdict {
        metric: "p99".into(),
        direction: Direction::LowerIsBetter,
        guard: true,
        verdict: verdict(outcome, 0.3),
    };
    d.metrics = vec![guard(Outcome::Worse)];
    assert!(text(&d, LOOK).starts_with("x: not better: worse in p99 "), "{}", text(&d, LOOK));
    d.metrics = vec![guard(Outcome::NoDifferenceShown)];
    assert!(text(&d, LOOK).contains("or not shown within its limit"), "{}", text(&d, LOOK));
}

#[test]
fn the_verdict_stands_in_the_first_line_at_both_widths() {
    let mut d = document(Design::Ab);
    d.runs = runs();
    d.workload = "netwright measure rtt db1 --duration 2s".into();
    d.notes = vec![ProveNote::Drifted { metric: "p50".into(), change: 0.012, difference: false }];
    d.metrics = vec![MetricVerdict {
        metric: "p50".into(),
        direction: Direction::LowerIsBetter,
        guard: false,
        verdict: d.verdict.clone(),
    }];
    golden!("ab", "x: worse · p50 +5.0% (95% CI +4.0% to +7.0%)", |style| text(&d, style));
    d.design = Design::Sweep;
    d.levels[1].against_first = Some(verdict(Outcome::Worse, 0.05));
    d.levels[1].against_best = Some(verdict(Outcome::Worse, 0.05));
    d.best = Some(Best {
        level: "a".into(),
        smallest_within_noise: "a".into(),
        within_noise: vec!["a".into()],
    });
    golden!("sweep", "x: worse", |style| text(&d, style));
}
