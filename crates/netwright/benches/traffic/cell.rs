//! A cell: several programs for the same task, run in turn, and the ratios of their figures.

use std::{collections::BTreeMap, io};

use crate::{
    options::Options,
    room::go_on,
    table::{Row, Table},
};

/// The metric of a figure, with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Median round trip, nanoseconds.
    Median,
    /// Mean round trip, nanoseconds.
    Mean,
    /// Round trips a second.
    Trips,
    /// Bits per second of the stream.
    Bits,
    /// HTTP requests a second.
    Requests,
    /// CPU time of the client's process per request, nanoseconds.
    CpuPerRequest,
    /// Bits per second of CPU time, processes of both ends.
    BitsPerCpu,
    /// CPU time of the client's process per transaction, nanoseconds.
    CpuPerTransaction,
    /// Database transactions per second.
    Transactions,
}

/// The figures of one run.
pub type Figures = BTreeMap<Metric, f64>;

/// A program in the comparison.
pub struct Contender<'a> {
    /// Its name in the table.
    pub name: &'static str,
    pub run: Box<dyn Fn() -> io::Result<Figures> + 'a>,
}

/// The target of a ratio.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// At most this, or the benchmark fails.
    AtMost(f64),
    /// At least this, or the benchmark fails; and the desired value.
    AtLeast(f64, Option<f64>),
    Shown,
}

/// A ratio between the figures of two programs.
pub struct Compare {
    pub metric: Metric,
    /// The program in the numerator.
    pub subject: &'static str,
    /// The program in the denominator.
    pub other: &'static str,
    /// What the ratio must be.
    pub target: Target,
}

/// Programs for the same task.
pub struct Cell<'a> {
    pub name: String,
    pub contenders: Vec<Contender<'a>>,
    /// The ratios; a pair without one of its programs is left out.
    pub compare: Vec<Compare>,
}

impl Cell<'_> {
    /// Runs the programs in turn, forwards and backwards, for the given repetitions. While there is
    /// time it continues until every mandatory ratio is clearly above or below its target. Prints
    /// the results.
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
        table.verdicts.take(&self.name, &self.compare, &rounds);
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

/// The values of all repetitions, in ascending order.
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

    /// The middle value, or the mean of the two middle ones.
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

    /// The 95% confidence interval of the median by order statistics (binomial; Conover, Practical
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
