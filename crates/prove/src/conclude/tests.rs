use std::collections::BTreeMap;

use model::prove::{Design, Discarded, Outcome, ProveNote, Run};
use stats::{random::SplitMix64, trial::order};

use super::{Ending, conclude};
use crate::{Experiment, record::RecordHead, spec};

const METRICS: &str = r#"
[[metric]]
name = "ms"
json = "ms"
better = "lower"
[[metric]]
name = "errors"
json = "errors"
better = "lower"
guard = true
"#;

fn experiment(text: &str) -> Experiment {
    Experiment::check(spec::parse(text).unwrap(), "x").unwrap()
}

/// Runs of this many blocks with noise of 2%, each level with the given mean.
fn runs(experiment: &Experiment, blocks: usize, ms: impl Fn(usize) -> (f64, f64)) -> Vec<Run> {
    runs_of(experiment, blocks, 5, ms)
}

fn runs_of(
    experiment: &Experiment,
    blocks: usize,
    seed: u64,
    ms: impl Fn(usize) -> (f64, f64),
) -> Vec<Run> {
    let mut random = SplitMix64::new(seed);
    let levels = experiment.cells.len();
    (0..blocks)
        .flat_map(|b| order::of_block(levels, 1, b).into_iter().map(move |l| (b, l)))
        .map(|(block, level)| {
            let (ms, errors) = ms(level);
            let noise = 1.0 + 0.02 * (random.unit() - 0.5);
            Run {
                block,
                level,
                took_s: 1.0,
                figures: BTreeMap::from([("ms".into(), ms * noise), ("errors".into(), errors)]),
                others_cpus: None,
                steal_share: None,
                host: model::prove::DuringRun::default(),
                counters: BTreeMap::new(),
                work: None,
                discarded: None,
            }
        })
        .collect()
}

fn begun(experiment: &Experiment) -> RecordHead {
    RecordHead { started_unix_s: 0, name: "x".into(), spec: experiment.spec.clone(), seed: 1 }
}

fn said(experiment: &Experiment, runs: &[Run]) -> model::prove::ProveDocument {
    conclude(experiment, &begun(experiment), runs, &Ending::at_end())
}

#[test]
fn two_levels_are_compared_and_a_guard_of_zeros_by_difference() {
    let ab = experiment(&format!(
        "command = \"w {{v}}\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n{METRICS}"
    ));
    let found = said(&ab, &runs(&ab, 8, |l| (if l == 0 { 100.0 } else { 90.0 }, 0.0)));
    assert_eq!((found.design, found.verdict.outcome), (Design::Ab, Outcome::Better));
    assert!((found.verdict.effect.unwrap() + 0.1).abs() < 0.02, "{:?}", found.verdict);
    assert!(found.metrics[1].verdict.difference);
    let harmed = said(&ab, &runs(&ab, 8, |l| (100.0 - 10.0 * l as f64, 3.0 * l as f64)));
    assert_eq!(harmed.verdict.outcome, Outcome::GuardWorse);
    assert_eq!(harmed.metrics[1].verdict.effect, Some(3.0));
}

#[test]
fn blocks_that_were_cut_and_runs_that_were_disturbed_do_not_count() {
    let ab = experiment(&format!(
        "command = \"w {{v}}\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n{METRICS}"
    ));
    let mut all = runs(&ab, 8, |_| (100.0, 0.0));
    all.truncate(30);
    let mut disturbed = all[0].clone();
    disturbed.figures.insert("ms".into(), 1e9);
    disturbed.discarded = Some(Discarded::OthersBusy { cpus: 2.0, usual_cpus: 0.0 });
    all.push(disturbed);
    let found = said(&ab, &all);
    assert_eq!((found.verdict.blocks, found.discarded_runs), (7, 1));
    assert_eq!(found.verdict.outcome, Outcome::NoDifferenceShown);
    assert!(found.verdict.high.unwrap() < 0.05, "{:?}", found.verdict);
    assert_eq!(said(&ab, &all[..12]).verdict.outcome, Outcome::Undecided);
}

#[test]
fn six_blocks_of_six_levels_are_undecided_however_far_apart_and_it_says_what_would_do() {
    let sweep = experiment(&format!(
        "command = \"w {{v}}\"\nruns = 72\n[[factor]]\nname = \"v\"\nlevels = [1, 2, 3, 4, 5, 6]\n{METRICS}"
    ));
    let found = |blocks, first_is_best: bool| {
        let truth = |l: usize| if first_is_best { l + 1 } else { 6 - l } as f64 * 100.0;
        said(&sweep, &runs(&sweep, blocks, |l| (truth(l), 0.0)))
    };
    let few = found(6, false);
    assert_eq!((few.verdict.outcome, &few.best), (Outcome::Undecided, &None));
    let note = few.notes.iter().find(|n| matches!(n, ProveNote::FewBlocks { .. })).unwrap();
    let note = note.to_string();
    assert!(note.contains("too few for 5 comparisons"), "{note}");
    assert!(note.contains("8 can tell them apart (--runs 96)"), "{note}");
    let first = found(6, true);
    assert_eq!(first.best.unwrap().within_noise, ["1"], "the undecided are not within the noise");
    let enough = found(8, false);
    assert_eq!(enough.verdict.outcome, Outcome::Better);
    assert_eq!(enough.best.unwrap().within_noise, ["6"]);
    let few_blocks = |n: &ProveNote| matches!(n, ProveNote::FewBlocks { .. });
    assert!(!enough.notes.iter().any(few_blocks), "{:?}", enough.notes);
    assert_eq!(found(3, true).verdict.outcome, Outcome::Undecided, "too few for anything");
}

#[test]
fn a_sweep_names_the_smallest_level_within_the_noise_of_the_best() {
    let sweep = experiment(&format!(
        "command = \"w {{v}}\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2, 4, 8]\n{METRICS}"
    ));
    let truth = [200.0, 120.0, 100.0, 100.0];
    let found = |seed| said(&sweep, &runs_of(&sweep, 12, seed, |l| (truth[l], 0.0)));
    let one = found(6);
    assert_eq!((one.design, one.verdict.outcome), (Design::Sweep, Outcome::Better));
    assert!((one.verdict.effect.unwrap() + 0.5).abs() < 0.03, "{:?}", one.verdict);
    // Of two equal levels, one is called worse in one of twenty experiments.
    let apart: Vec<u64> =
        (0..200).filter(|s| found(*s).best.unwrap().within_noise != ["4", "8"]).collect();
    assert!(apart.len() <= 20, "{apart:?}");
}

#[test]
fn factors_and_what_they_do_together_are_distinguished() {
    let text = "command = \"w {a} {b}\"\n[[factor]]\nname = \"a\"\nlevels = [0, 1]\n\
                [[factor]]\nname = \"b\"\nlevels = [0, 1]\n";
    let both = experiment(&format!("{text}{METRICS}"));
    assert_eq!(both.design, Design::Factorial);
    // Cells: 00, 01, 10, 11. Each factor alone gains 10%, both together 40%.
    let truth = [100.0, 90.0, 90.0, 60.0];
    let found = said(&both, &runs(&both, 12, |l| (truth[l], 0.0)));
    let effects: Vec<(&str, f64)> =
        found.effects.iter().map(|e| (e.factor.as_str(), e.verdict.effect.unwrap())).collect();
    let (alone, together) =
        ((0.9f64 * 60.0 / 90.0).sqrt() - 1.0, 60.0 * 100.0 / (90.0 * 90.0) - 1.0);
    for ((name, found), (truth_name, truth)) in
        effects.iter().zip([("a", alone), ("b", alone), ("a × b", together)])
    {
        assert!(*name == truth_name && (found - truth).abs() < 0.02, "{effects:?} {truth}");
    }
    assert_eq!(found.best.unwrap().level, "a 1, b 1");
}

#[test]
fn before_the_first_block_and_where_the_first_level_is_the_best_no_change_is_reported() {
    let ab = experiment(&format!(
        "command = \"w {{v}}\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n{METRICS}"
    ));
    let found = said(&ab, &runs(&ab, 1, |_| (100.0, 0.0))[..3]);
    assert_eq!((found.verdict.blocks, found.verdict_of.as_str()), (0, ""));
    let nothing = |v: &model::prove::Verdict| v.effect.is_none() && v.p.is_none();
    assert!(nothing(&found.verdict) && found.metrics.iter().all(|m| nothing(&m.verdict)));
    let sweep = experiment(&format!(
        "command = \"w {{v}}\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2, 3]\n{METRICS}"
    ));
    let found = said(&sweep, &runs(&sweep, 12, |l| ([100.0, 120.0, 130.0][l], 0.0)));
    assert!(found.best.unwrap().level == "1" && nothing(&found.verdict), "{:?}", found.verdict);
}

#[test]
fn a_factor_that_is_shown_to_do_harm_is_in_the_verdict_where_no_combination_is_better() {
    for design in ["full-factorial", "one-at-a-time"] {
        let text = format!(
            "command = \"w {{a}} {{b}}\"\ndesign = \"{design}\"\n[[factor]]\nname = \"a\"\n\
             levels = [0, 1]\n[[factor]]\nname = \"b\"\nlevels = [0, 1]\n{METRICS}"
        );
        let e = experiment(&text);
        // a = 1 costs 5%, b nothing: the best combination is the first, or indistinguishable from
        // it.
        let slow: Vec<bool> = e.cells.iter().map(|c| c.levels[0] == 1).collect();
        for seed in 1..6 {
            let found =
                said(&e, &runs_of(&e, 14, seed, |l| (if slow[l] { 105.0 } else { 100.0 }, 0.0)));
            let v = &found.verdict;
            assert_eq!(v.outcome, Outcome::Worse, "{design} {seed}: {v:?}");
            assert!((v.effect.unwrap() - 0.05).abs() < 0.015, "{design} {seed}: {v:?}");
            assert!(found.verdict_of.starts_with("a 1 against a 0, "), "{}", found.verdict_of);
            // The correlated counters are for the same two levels.
            assert_eq!((&*found.evidence.first, &*found.evidence.second), ("a 0, b 0", "a 1, b 0"));
        }
    }
}

#[test]
fn factors_that_do_nothing_are_seldom_called_better_or_worse() {
    let text = "command = \"w {a} {b}\"\n[[factor]]\nname = \"a\"\nlevels = [0, 1]\n\
                [[factor]]\nname = \"b\"\nlevels = [0, 1]\n";
    let e = experiment(&format!("{text}{METRICS}"));
    let shown = |seed: &u64| {
        let found = said(&e, &runs_of(&e, 14, *seed, |_| (100.0, 0.0))).verdict.outcome;
        matches!(found, Outcome::Better | Outcome::Worse)
    };
    let wrong = (0..200).filter(shown).count();
    assert!((1..=10).contains(&wrong), "{wrong} of 200");
}

#[test]
fn levels_of_three_that_depend_on_another_factor_are_named() {
    let text = "command = \"w {a} {b} {c}\"\n[[factor]]\nname = \"a\"\nlevels = [0, 1, 2]\n\
                [[factor]]\nname = \"b\"\nlevels = [0, 1]\n[[factor]]\nname = \"c\"\nlevels = [0, 1]\n";
    let e = experiment(&format!("{text}{METRICS}"));
    // a = 1 gains 10%, b = 1 gains 20%, a = 2 with b = 1 another 30%; c has no effect.
    let truth = |cell: usize| {
        let (a, b) = (cell / 4, cell / 2 % 2);
        let of = |there: bool, by: f64| if there { by } else { 1.0 };
        100.0 * of(a == 1, 0.9) * of(b == 1, 0.8) * of(a == 2 && b == 1, 0.7)
    };
    let found = said(&e, &runs(&e, 16, |cell| (truth(cell), 0.0)));
    let of = |factor: &str, level: &str| {
        let it = found.effects.iter().find(|f| f.factor == factor && f.level == level);
        let v = &it.unwrap_or_else(|| panic!("{factor} {level}: {:?}", found.effects)).verdict;
        assert!(v.low.is_some_and(|low| Some(low) <= v.effect), "{v:?}");
        (v.outcome, v.effect.unwrap())
    };
    for (factor, level, wanted, outcome) in [
        ("a", "1", 0.9 - 1.0, Outcome::Better),
        ("a", "2", 0.7f64.sqrt() - 1.0, Outcome::Better),
        ("b", "1", 0.8 * 0.7f64.cbrt() - 1.0, Outcome::Better),
        ("a × b", "1 × 1", 0.0, Outcome::NoDifferenceShown),
        ("a × b", "2 × 1", 0.7 - 1.0, Outcome::Better),
        ("a × c", "2 × 1", 0.0, Outcome::NoDifferenceShown),
    ] {
        let (said, effect) = of(factor, level);
        assert!((effect - wanted).abs() < 0.02, "{factor} {level}: {effect}, not {wanted}");
        assert_eq!(said, outcome, "{factor} {level}");
    }
    assert_eq!(found.effects.len(), 4 + 2 + 2 + 1);
    assert!(found.notes.contains(&ProveNote::OnlyPairsTested), "{:?}", found.notes);
}

#[test]
fn one_factor_at_a_time_runs_each_level_beside_the_first_and_says_what_is_untested() {
    let text = "command = \"w {a} {b}\"\ndesign = \"one-at-a-time\"\n[[factor]]\nname = \"a\"\n\
                levels = [0, 1, 2]\n[[factor]]\nname = \"b\"\nlevels = [0, 1]\n";
    let e = experiment(&format!("{text}{METRICS}"));
    let names: Vec<String> = e.cells.iter().map(|c| c.name(&e.factors)).collect();
    assert_eq!(names, ["a 0, b 0", "a 1, b 0", "a 2, b 0", "a 0, b 1"]);
    let truth = [100.0, 90.0, 100.0, 80.0];
    let found = said(&e, &runs(&e, 12, |cell| (truth[cell], 0.0)));
    assert_eq!(found.design, Design::OneAtATime);
    let effects: Vec<_> = found
        .effects
        .iter()
        .map(|f| (f.factor.as_str(), f.level.as_str(), f.verdict.outcome))
        .collect();
    let (better, same) = (Outcome::Better, Outcome::NoDifferenceShown);
    assert_eq!(effects, [("a", "1", better), ("a", "2", same), ("b", "1", better)]);
    for (effect, wanted) in found.effects.iter().zip([-0.1, 0.0, -0.2]) {
        assert!((effect.verdict.effect.unwrap() - wanted).abs() < 0.02, "{effect:?}");
    }
    assert_eq!(found.best.unwrap().level, "a 0, b 1");
    assert!(found.notes.contains(&ProveNote::InteractionsUntested), "{:?}", found.notes);
}

/// Every run has 30 correlated counters that do not depend on the level, and one, `moves`, that
/// does; `odd` went backwards once.
fn counted(mut runs: Vec<Run>, share: f64) -> Vec<Run> {
    let mut random = SplitMix64::new(11);
    for run in &mut runs {
        let busy = 1.0 + 0.1 * random.unit();
        for i in 0..30 {
            let grown = 1_000.0 * busy * (1.0 + 0.02 * random.unit());
            run.counters.insert(format!("c{i}"), Some(grown as u64));
        }
        let level = 1.0 + share * run.level as f64;
        run.counters.insert("moves".into(), Some((1_000.0 * busy * level) as u64));
        run.counters.insert("odd".into(), (run.block != 2).then_some(5));
        run.work = Some(busy);
    }
    runs
}

#[test]
fn the_one_counter_that_moved_is_named_with_its_effect_and_none_where_none_did() {
    let e = experiment(&format!(
        "command = \"w {{v}}\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n{METRICS}"
    ));
    let reported =
        |share| said(&e, &counted(runs(&e, 10, |l| (100.0 + l as f64, 0.0)), share)).evidence;
    let found = reported(0.05);
    assert_eq!(found.judged, 31, "what is not known is skipped");
    let [moved] = found.moved.as_slice() else { panic!("{:?}", found.moved) };
    assert_eq!((moved.counter.as_str(), moved.difference), ("moves", false));
    assert!((moved.effect - 0.05).abs() < 0.01 && moved.low < Some(0.05), "{moved:?}");
    assert!(moved.first > 900.0 && moved.p <= 0.05);
    assert_eq!((found.first.as_str(), found.per.as_str()), ("1", "run"));
    assert_eq!(reported(0.0).moved, []);
}

#[test]
fn too_few_blocks_or_no_counters_name_nothing_and_say_why() {
    let e = experiment(&format!(
        "command = \"w {{v}}\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n{METRICS}"
    ));
    let few = said(&e, &counted(runs(&e, 5, |_| (100.0, 0.0)), 1.0)).evidence;
    assert!(few.moved.is_empty() && few.why_not.unwrap().contains("6 blocks"));
    let none = said(&e, &runs(&e, 9, |_| (100.0, 0.0))).evidence;
    assert_eq!(none.why_not.as_deref(), Some("no counters were read"));
}

#[test]
fn a_figure_too_noisy_to_decide_is_said_with_the_blocks_that_would() {
    let e = experiment(&format!(
        "command = \"w {{v}}\"\nmin_effect = \"1%\"\n[[factor]]\nname = \"v\"\n\
         levels = [1, 2]\n{METRICS}"
    ));
    let mut noisy = runs(&e, 8, |_| (100.0, 0.0));
    let mut random = SplitMix64::new(4);
    for run in &mut noisy {
        run.figures.insert("ms".into(), 100.0 * (1.0 + random.unit()));
    }
    let found = said(&e, &noisy);
    assert_eq!(found.verdict.outcome, Outcome::NoDifferenceShown);
    let too_noisy = |n: &&ProveNote| matches!(n, ProveNote::TooNoisy { .. });
    let note = found.notes.iter().find(too_noisy);
    let note = note.unwrap_or_else(|| panic!("{:?}", found.notes)).to_string();
    assert!(note.starts_with("too noisy to distinguish 1% from no effect"), "{note}");
    let words: Vec<&str> = note.split(' ').collect();
    let needed = words.windows(2).find(|w| w[0] == "about").and_then(|w| w[1].parse::<f64>().ok());
    // Intervals of a quarter need some hundred times as many runs for a hundredth.
    assert!(needed.unwrap() > 8.0 * 50.0, "{note}");
    let undisturbed = said(&e, &runs(&e, 40, |_| (100.0, 0.0)));
    assert!(!undisturbed.notes.iter().any(|n| too_noisy(&n)), "{:?}", undisturbed.notes);
}

#[test]
fn a_guard_that_is_worse_forbids_better_in_every_design() {
    let factor =
        |name: &str, levels: &str| format!("[[factor]]\nname = \"{name}\"\nlevels = {levels}\n");
    let sweep =
        experiment(&format!("command = \"w {{n}}\"\n{}{METRICS}", factor("n", "[8, 6, 4]")));
    let two = experiment(&format!(
        "command = \"w {{a}} {{b}}\"\n{}{}{METRICS}",
        factor("a", "[1, 2]"),
        factor("b", "[1, 2]")
    ));
    for (experiment, fast) in [(&sweep, 1), (&two, 2)] {
        let said_of = |errors: f64| {
            let ms = |level| if level == fast { (10.0, errors) } else { (12.0, 0.0) };
            said(experiment, &runs(experiment, 16, ms))
        };
        let d = said_of(5.0);
        assert_eq!(d.verdict.outcome, Outcome::GuardWorse);
        let [errors] = &d.metrics[..] else { panic!("{:?}", d.metrics) };
        assert!(errors.guard && errors.verdict.outcome == Outcome::Worse, "{errors:?}");
        assert_eq!(said_of(0.0).verdict.outcome, Outcome::Better);
    }
}

#[test]
fn the_smallest_setting_is_the_smallest_number() {
    let of = |levels: &[&str]| {
        let levels: Vec<String> = levels.iter().map(|l| (*l).to_owned()).collect();
        super::lowest(&levels).map(str::to_owned)
    };
    assert_eq!(of(&["8", "6", "4"]).as_deref(), Some("4"));
    assert_eq!(of(&["10", "9"]).as_deref(), Some("9"));
    assert_eq!(of(&["wide", "4"]).as_deref(), Some("wide"));
    assert_eq!(of(&[]), None);
}
