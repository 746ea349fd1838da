//! A run of a benchmark, whatever program made it.

use crate::prove::Direction;

/// One run, as its program reported it.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchmarkRun {
    /// The program: `wrk`, `netwright measure rtt`.
    pub program: String,
    /// What was measured, as the program says; empty where it says nothing.
    pub case: String,
    /// Start, seconds since 1970, where the file has it.
    pub started_unix_s: Option<f64>,
    pub figures: Vec<BenchmarkFigure>,
}

/// A figure of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchmarkFigure {
    /// Its name; a time or a rate has its unit in it.
    pub name: String,
    /// `ns`, `1/s`, `bit/s`; empty where it is unknown.
    pub unit: &'static str,
    /// Whether more or less of it is better, where the program's figures have a meaning.
    pub direction: Option<Direction>,
    /// Whether it is compared where the operator names no metric.
    pub main: bool,
    pub value: f64,
}

impl BenchmarkFigure {
    /// A figure of which less is better.
    pub fn lower(name: impl Into<String>, unit: &'static str, value: f64) -> Self {
        let direction = Some(Direction::LowerIsBetter);
        Self { name: name.into(), unit, direction, main: false, value }
    }

    /// A figure of which more is better.
    pub fn higher(name: impl Into<String>, unit: &'static str, value: f64) -> Self {
        let direction = Some(Direction::HigherIsBetter);
        Self { name: name.into(), unit, direction, main: false, value }
    }

    /// The same, compared where the operator names no metric.
    #[must_use]
    pub fn main(self) -> Self {
        Self { main: true, ..self }
    }
}
