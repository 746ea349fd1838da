//! Reads a run's figures from the workload's JSON, text, exit code or duration.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Experiment,
    child::{EndedRun, last_line},
    error::Fault,
    metric::{Metric, Source},
    pipe_reader::MOST_BYTES,
    workload::Workload,
};

pub use crate::metric::{Goal, for_goal};

impl Source {
    /// Whether a run counts with an exit code other than 0.
    pub(crate) fn takes_exit_code(&self) -> bool {
        matches!(self, Self::ExitCode)
    }

    /// The value of one metric.
    ///
    /// # Errors
    /// What is missing, as the end of a line that begins with the workload.
    pub(crate) fn read(&self, ended: &EndedRun) -> Result<f64, String> {
        match self {
            Self::ExitCode => Ok(f64::from(ended.exit_code)),
            Self::Time => Ok(ended.took.as_secs_f64()),
            Self::Json(pointer) => {
                let document: Value = serde_json::from_str(&ended.said)
                    .map_err(|e| format!("printed no JSON: {e}"))?;
                let found = document.pointer(pointer).and_then(|v| Some((v, number(v)?)));
                let (value, figure) =
                    found.ok_or_else(|| format!("printed JSON without a number at {pointer}"))?;
                in_range(figure, value.as_str().unwrap_or(&value.to_string()))
            }
            Self::Regex(regex) => {
                let found = regex.captures(&ended.said).and_then(|c| c.get(1));
                let text = found.ok_or_else(|| format!("printed nothing like `{regex}`"))?;
                let text = text.as_str().trim();
                in_range(text.parse().unwrap_or(f64::NAN), text)
            }
        }
    }
}

/// Accepts a value that ratios can be formed of: 0, or a magnitude from 1e-100 to 1e100. `text` is
/// the printed form, for the error.
fn in_range(figure: f64, text: &str) -> Result<f64, String> {
    if figure == 0.0 || (1e-100..=1e100).contains(&figure.abs()) {
        return Ok(figure);
    }
    let text: String = text.trim().chars().take(100).collect();
    // `1e400` is valid JSON but not a finite number here.
    let why = if figure.is_finite() { " of a size from 1e-100 to 1e100" } else { "" };
    Err(format!("printed `{text}`, which is no figure{why}"))
}

/// The figures of an ended run, by metric. `at` names its combination for errors: `at threads 4`,
/// or nothing.
///
/// # Errors
/// Its exit code, or a missing figure.
pub(crate) fn of_run(
    experiment: &Experiment,
    workload: &Workload,
    (ended, complaint): (&EndedRun, &str),
    at: &str,
) -> Result<BTreeMap<String, f64>, Fault> {
    let asked = experiment.metrics.iter().any(|m| m.source.takes_exit_code());
    // Exit code 1 of our own measurement is an answer, not a failure.
    let ours = matches!(workload, Workload::Ours(_)) && ended.exit_code == 1;
    let blank = if at.is_empty() { "" } else { " " };
    if ended.exit_code != 0 && !asked && !ours {
        let (code, why) = (ended.exit_code, last_line(complaint));
        return Err(Fault::Failed(format!("failed{blank}{at} with exit code {code}{why}")));
    }
    let comma = if at.is_empty() { "" } else { ", " };
    let figure = |m: &Metric| {
        let read = m.source.read(ended);
        let missing = |why| format!("{why}{} (metric {}{comma}{at})", cut(ended), m.name);
        let read = read.map_err(|why| Fault::FigureMissing(missing(why)));
        read.map(|figure| (m.name.clone(), figure))
    };
    experiment.metrics.iter().map(figure).collect()
}

/// The end of an error message: how much output was not read.
fn cut(ended: &EndedRun) -> String {
    match ended.said.len() >= MOST_BYTES {
        true => format!(" in the first {} MiB, and no more is read", MOST_BYTES >> 20),
        false => String::new(),
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::spec::MetricSpec;

    fn ended(said: &str) -> EndedRun {
        EndedRun {
            said: said.into(),
            exit_code: 3,
            took: Duration::from_millis(1500),
            usage: crate::child::ChildUsage::default(),
        }
    }

    fn source(m: MetricSpec) -> Source {
        Source::check(&m).unwrap()
    }

    #[test]
    fn figures_are_found_in_json_text_codes_and_time() {
        let json = |path: &str| MetricSpec { json: Some(path.into()), ..MetricSpec::default() };
        let said = ended(r#"{"runs":[{"rtt_ns":{"p50":12.5},"n":"7"}]}"#);
        for path in ["runs.0.rtt_ns.p50", "runs[0].rtt_ns.p50", "/runs/0/rtt_ns/p50"] {
            assert_eq!(source(json(path)).read(&said), Ok(12.5));
        }
        assert_eq!(source(json("runs[0].n")).read(&said), Ok(7.0));
        assert!(source(json("runs.1.n")).read(&said).unwrap_err().contains("/runs/1/n"));
        let regex = MetricSpec { regex: Some(r"tps = ([0-9.]+)".into()), ..MetricSpec::default() };
        assert_eq!(source(regex.clone()).read(&ended("x\ntps = 81.5 (with)\n")), Ok(81.5));
        assert!(source(regex).read(&ended("nothing")).is_err());
        let any = MetricSpec { regex: Some(r"x (\S+)".into()), ..MetricSpec::default() };
        assert_eq!(source(any.clone()).read(&ended("x 7 x 8")), Ok(7.0), "the first");
        for odd in ["NaN", "1e400", "-inf", "y"] {
            let why = source(any.clone()).read(&ended(&format!("x {odd}"))).unwrap_err();
            assert_eq!(why, format!("printed `{odd}`, which is no figure"));
        }
        let odd = |text: &str| {
            format!("printed `{text}`, which is no figure of a size from 1e-100 to 1e100")
        };
        for text in ["1e308", "-1.5e101", "9e-101", "-1e-308"] {
            let why = source(any.clone()).read(&ended(&format!("x {text}"))).unwrap_err();
            assert_eq!(why, odd(text));
            for in_json in [format!("[{text}]"), format!("[\"{text}\"]")] {
                let why = source(json("0")).read(&ended(&in_json)).unwrap_err();
                assert_eq!(why.replace("e+", "e"), odd(text));
            }
        }
        for (text, figure) in [("1e100", 1e100), ("-1e-100", -1e-100), ("0", 0.0), ("-0.0", 0.0)] {
            assert_eq!(source(any.clone()).read(&ended(&format!("x {text}"))), Ok(figure));
        }
        let much = ended(&"y".repeat(MOST_BYTES));
        assert_eq!(cut(&much), " in the first 64 MiB, and no more is read");
        assert_eq!(cut(&ended("")), "");
        assert_eq!(Source::ExitCode.read(&ended("")), Ok(3.0));
        assert_eq!(Source::Time.read(&ended("")), Ok(1.5));
    }

    #[test]
    fn a_metric_says_exactly_where() {
        let none = MetricSpec::default();
        let both = MetricSpec { time: true, exit_code: true, ..MetricSpec::default() };
        let flat = MetricSpec { regex: Some("tps".into()), ..MetricSpec::default() };
        let open = MetricSpec { regex: Some("(".into()), ..MetricSpec::default() };
        for m in [none, both, flat, open] {
            assert!(Source::check(&m).is_err(), "{m:?}");
        }
    }
}
