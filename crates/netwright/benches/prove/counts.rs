//! The results of experiments in a file, one per line, so that hours of them can be split into
//! several sittings.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
};

use model::prove::{Outcome, ProveDocument};
use serde::{Deserialize, Serialize};
use stats::rate::wilson;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthKind {
    /// Both servers have the same service time.
    Alike,
    /// The second serves 5% longer.
    Slower,
    Faster,
    /// The second serves 2% longer.
    SlightlySlower,
    SlightlyFaster,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub kind: TruthKind,
    /// The experiment's verdict.
    pub outcome: Outcome,
    /// Whether the interval holds 0.
    pub holds_0: bool,
    /// Whether a counter is named as correlated.
    pub named: bool,
    /// How long it took, seconds.
    pub took_s: f64,
    /// The load average of the last minute before its end.
    pub load: f64,
}

impl Trial {
    /// Takes the fields from a document of `prove`.
    pub fn of(kind: TruthKind, said: &ProveDocument, took_s: f64) -> Self {
        let (low, high) = (said.verdict.low.unwrap_or(-1.0), said.verdict.high.unwrap_or(1.0));
        let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            kind,
            outcome: said.verdict.outcome,
            holds_0: low <= 0.0 && 0.0 <= high,
            named: !said.evidence.moved.is_empty(),
            took_s,
            load: text.split_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or(-1.0),
        }
    }

    fn is(&self, outcome: Outcome) -> bool {
        self.outcome == outcome
    }
}

/// All results, and the file that they are appended to.
pub struct BenchCounts {
    /// The results in order.
    pub trials: Vec<Trial>,
    file: Option<File>,
}

impl BenchCounts {
    /// Reads the file to continue it. Its first line has the options.
    ///
    /// # Errors
    /// The options differ.
    pub fn open(path: Option<&Path>, made: &str) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self { trials: vec![], file: None }) };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let mut lines = text.lines();
        match lines.next() {
            None => writeln!(file, "{made}")?,
            Some(first) if first == made => {}
            Some(first) => {
                let path = path.display();
                return Err(io::Error::other(format!("{path}: is of {first:?}, not of {made:?}")));
            }
        }
        // An incomplete last line is ignored.
        let trials = lines.map_while(|l| serde_json::from_str(l).ok()).collect();
        Ok(Self { trials, file: Some(file) })
    }

    pub fn take(&mut self, trial: Trial) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", serde_json::to_string(&trial)?)?;
        }
        self.trials.push(trial);
        Ok(())
    }

    /// The number of experiments of these kinds.
    pub fn count(&self, kinds: &[TruthKind]) -> usize {
        self.of(kinds).len()
    }

    fn of(&self, kinds: &[TruthKind]) -> Vec<&Trial> {
        self.trials.iter().filter(|t| kinds.contains(&t.kind)).collect()
    }

    /// The rates so far, with Wilson's intervals.
    pub fn show(&self) {
        let loads = sorted(self.trials.iter().map(|t| t.load).collect());
        println!("load {} (median {:.1})", ends(&loads), middle(&loads));
        let alike = self.of(&[TruthKind::Alike]);
        if alike.is_empty() {
            return;
        }
        let reported = |t: &&&Trial| t.is(Outcome::Better) || t.is(Outcome::Worse);
        println!("alike");
        rate("called better or worse", alike.iter().filter(reported).count(), alike.len());
        rate("interval holds 0", alike.iter().filter(|t| t.holds_0).count(), alike.len());
        rate("a counter is named", alike.iter().filter(|t| t.named).count(), alike.len());
        self.power("5% of service", TruthKind::Slower, TruthKind::Faster);
        self.power("2% of service", TruthKind::SlightlySlower, TruthKind::SlightlyFaster);
    }

    fn power(&self, what: &str, slower: TruthKind, faster: TruthKind) {
        let all = self.of(&[slower, faster]);
        if all.is_empty() {
            return;
        }
        let count = |of_slower: Outcome, of_faster: Outcome| {
            let hit = |t: &&&Trial| t.is(if t.kind == slower { of_slower } else { of_faster });
            all.iter().filter(hit).count()
        };
        let took = sorted(all.iter().map(|t| t.took_s).collect());
        println!("{what}: {} s each (median {:.0})", ends(&took), middle(&took));
        rate("found", count(Outcome::Worse, Outcome::Better), all.len());
        rate("with the wrong sign", count(Outcome::Better, Outcome::Worse), all.len());
    }
}

fn rate(what: &str, hits: usize, of: usize) {
    let (p, low, high) = wilson(hits, of);
    println!(
        "  {what:<24} {hits} of {of}: {:.1}% ({:.1}% to {:.1}%)",
        100.0 * p,
        100.0 * low,
        100.0 * high
    );
}

fn sorted(mut all: Vec<f64>) -> Vec<f64> {
    all.sort_by(f64::total_cmp);
    all
}

fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn ends(sorted: &[f64]) -> String {
    match (sorted.first(), sorted.last()) {
        (Some(least), Some(most)) => format!("{least:.0} to {most:.0}"),
        _ => "none".into(),
    }
}
