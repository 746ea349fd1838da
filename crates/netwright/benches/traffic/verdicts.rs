//! The tables of `netwright compare` over the runs of the cells, for a pull request.

use std::collections::BTreeMap;

use compare::{Group, Request};
use model::compare::{BenchmarkFigure, BenchmarkRun};

use crate::cell::{Compare, Figures, Metric};

/// The runs of one pair of programs: the other's, ours.
type Runs = (Vec<BenchmarkRun>, Vec<BenchmarkRun>);

/// The runs of each pair of programs, the other before ours.
#[derive(Default)]
pub struct Verdicts {
    pairs: BTreeMap<(&'static str, &'static str), Runs>,
}

impl Verdicts {
    /// Takes the rounds of a cell.
    pub fn take(&mut self, cell: &str, compare: &[Compare], rounds: &[BTreeMap<&str, Figures>]) {
        for c in compare {
            let (before, after) = self.pairs.entry((c.other, c.subject)).or_default();
            for round in rounds {
                let of = |name: &str| round.get(name)?.get(&c.metric).copied();
                if let Some((other, subject)) = of(c.other).zip(of(c.subject)) {
                    before.push(run(c.other, cell, c.metric, other));
                    after.push(run(c.subject, cell, c.metric, subject));
                }
            }
        }
    }

    /// Prints a table for each pair of programs.
    pub fn print(self) {
        println!("\nThe same runs as `netwright compare` judges them, for a pull request:\n");
        let measured = self.pairs.into_iter().filter(|(_, (before, _))| !before.is_empty());
        for ((other, subject), (before, after)) in measured {
            let group = |name: &str, runs: Vec<BenchmarkRun>| Group {
                name: name.to_owned(),
                files: runs.len(),
                runs,
            };
            let groups = Some((group(other, before), group(subject, after)));
            match compare::compare(&Request { groups, ..Request::default() }) {
                Ok(document) => println!("{}", report::compare::markdown(&document)),
                Err(_) => println!("{subject} beside {other}: no common figure"),
            }
        }
    }
}

fn run(program: &str, cell: &str, metric: Metric, value: f64) -> BenchmarkRun {
    let figure = match metric {
        Metric::Median => BenchmarkFigure::lower("rtt_p50_ns", "ns", value),
        Metric::Mean => BenchmarkFigure::lower("rtt_mean_ns", "ns", value),
        Metric::CpuPerRequest | Metric::CpuPerTransaction => {
            BenchmarkFigure::lower("cpu_ns_per_unit", "ns", value)
        }
        Metric::Trips | Metric::Requests | Metric::Transactions => {
            BenchmarkFigure::higher("transactions_per_s", "1/s", value)
        }
        Metric::Bits => BenchmarkFigure::higher("bits_per_s", "bit/s", value),
        Metric::BitsPerCpu => BenchmarkFigure::higher("bits_per_cpu_s", "bit/s", value),
    };
    BenchmarkRun {
        program: program.to_owned(),
        case: cell.to_owned(),
        started_unix_s: None,
        figures: vec![figure.main()],
    }
}
