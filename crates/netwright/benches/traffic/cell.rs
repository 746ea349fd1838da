//! A cell: several programs that do the same, run in turn, and their ratios.

use std::{collections::BTreeMap, io};

use crate::{
    options::Options,
    room::go_on,
    table::{Row, Table},
};

/// What one run of a program gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Median round trip, nanoseconds.
    Median,
    /// Mean round trip, nanoseconds.
    Mean,
    /// Round trips a second.
    Trips,
    /// Bits a second.
    Bits,
    /// HTTP requests a second.
    Requests,
    /// CPU of the client's process for one, nanoseconds.
    CpuPerRequest,
    /// Bits for a second of CPU, both ends' processes.
    BitsPerCpu,
    /// CPU time of the client's process by transaction, nanoseconds.
    CpuPerTransaction,
    /// Transactions a second.
    Transactions,
}

/// What one run gave.
pub type Figures = BTreeMap<Metric, f64>;

/// A program that takes part.
pub struct Contender<'a> {
    /// Its name in the table.
    pub name: &'static str,
    pub run: Box<dyn Fn() -> io::Result<Figures> + 'a>,
}

/// What a ratio must be.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// At most this, or the benchmark fails.
    AtMost(f64),
    /// At least this, or the benchmark fails; and what is hoped for.
    AtLeast(f64, Option<f64>),
    Shown,
}

/// A ratio of the subject's figure to another's.
pub struct Compare {
    pub metric: Metric,
    /// Whose, above the line.
    pub subject: &'static str,
    /// Whose, below the line.
    pub other: &'static str,
    /// What it must be.
    pub target: Target,
}

/// Programs that do the same.
pub struct Cell<'a> {
    pub name: String,
    pub contenders: Vec<Contender<'a>>,
    /// What is compared; a pair of which one does not take part is left out.
    pub compare: Vec<Compare>,
}

impl Cell<'_> {
    /// Runs them in turn, there and back, until the repetitions are done and, while there is
    /// time, until every ratio that must hold lies clearly on one side. Prints.
    pub fn measure(&self, options: &Options, table: &mut Table) -> io::Result<()> {
        let mut rounds: Vec<BTreeMap<&str, Figures>> = Vec::new();
        let rows = loop {
            let mut order: Vec<&Contender> = self.contenders.iter().collect();
            if rounds.len() % 2 == 1 {
                order.reverse();
            }
            let mut round = BTreeMap::new();
            for contender in order {
                go_on()?;
                round.insert(contender.name, (contender.run)()?);
            }
            rounds.push(round);
            let rows: Vec<Row> = self.compare.iter().filter_map(|c| row(c, &rounds)).collect();
            let enough = rounds.len() >= options.rounds;
            let more = rounds.len() < options.most_rounds && options.time_for_more();
            if enough && !(more && rows.iter().any(Row::unclear)) {
                break rows;
            }
        };
        table.cell(&self.name, &rows);
        Ok(())
    }
}

fn row(compare: &Compare, rounds: &[BTreeMap<&str, Figures>]) -> Option<Row> {
    let of = |round: &BTreeMap<&str, Figures>, name| round.get(name)?.get(&compare.metric).copied();
    let pairs: Vec<(f64, f64)> = rounds
        .iter()
        .filter_map(|r| Some((of(r, compare.subject)?, of(r, compare.other)?)))
        .collect();
    let (subject, other) = pairs.iter().copied().unzip();
    let ratios = pairs.iter().map(|(s, o)| s / o).collect();
    (!pairs.is_empty()).then(|| Row {
        metric: compare.metric,
        subject: compare.subject,
        other: compare.other,
        target: compare.target,
        figures: Spread::of(subject),
        other_figures: Spread::of(other),
        ratios: Spread::of(ratios),
    })
}

/// Values, ascending.
#[derive(Debug, Clone)]
pub struct Spread(Vec<f64>);

impl Spread {
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The middle one, or between the two.
    pub fn median(&self) -> f64 {
        let n = self.0.len();
        let at = |i: usize| self.0.get(i).copied().unwrap_or(f64::NAN);
        if n % 2 == 1 { at(n / 2) } else { (at(n / 2 - 1) + at(n / 2)) / 2.0 }
    }

    pub fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    pub fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    /// Two of the values between which the median of many more would lie, in at least 95 of
    /// 100 such benchmarks: the binomial interval of order statistics (Conover, Practical
    /// Nonparametric Statistics, 3.2). With fewer than 6 values, the smallest and the largest.
    pub fn interval(&self) -> (f64, f64) {
        let n = self.0.len();
        let (mut below, mut term, mut skip) = (0.0, 0.5f64.powi(n as i32), 0);
        for i in 0..n / 2 {
            below += term;
            if 2.0 * below > 0.05 {
                break;
            }
            skip = i;
            term *= (n - i) as f64 / (i + 1) as f64;
        }
        let at = |i: usize| self.0.get(i).copied().unwrap_or(f64::NAN);
        (at(skip), at(n.saturating_sub(1 + skip)))
    }
}
