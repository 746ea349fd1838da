//! The queries, in PromQL, and their answers.

use model::Severity;
use parse::prometheus_json::{InstantSeries, InstantVector};

/// What a query asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Targets of the jobs that have an exporter, and whether they answer; none that is a mesh.
    Up,
    /// Exporters of the last hour.
    Known,
    /// Exporters of now, with their versions.
    Builds,
    /// Numbers of findings by severity.
    Counts,
    Findings,
    /// The change of each finding.
    Changes,
    /// Values that are no longer those that `tune` wrote.
    Drift,
    /// Exporters whose last interval ended long ago.
    Stalled,
}

/// The series of all parts, as they come in.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    parts: Vec<(Part, Vec<InstantSeries>)>,
    pub(super) warnings: Vec<String>,
}

impl Answers {
    /// Adds the answer to one query.
    pub fn add(&mut self, part: Part, vector: InstantVector) {
        self.parts.push((part, vector.series));
        self.warnings.extend(vector.warnings);
    }

    /// Whether there is no exporter in the answers.
    pub fn is_empty(&self) -> bool {
        [Part::Up, Part::Known, Part::Builds].iter().all(|p| self.of(*p).next().is_none())
    }

    pub(super) fn of(&self, part: Part) -> impl Iterator<Item = &InstantSeries> {
        self.parts.iter().filter(move |(p, _)| *p == part).flat_map(|(_, series)| series)
    }
}

/// An exporter without a new interval for so long is stalled, in seconds; as the alert
/// `NetwrightExporterStalled`.
const STALLED_S: u32 = 300;

/// All queries. `matchers` are further label matchers in PromQL, such as `dc="ams"`; empty for all hosts.
pub fn queries(matchers: &str, least: Severity) -> Vec<(Part, String)> {
    let of = |name: &str, more: &str| {
        let all: Vec<&str> = [matchers, more].into_iter().filter(|m| !m.is_empty()).collect();
        format!("{name}{{{}}}", all.join(","))
    };
    let severities = match least {
        Severity::Info => "",
        Severity::Warning => "severity=~\"warning|critical\"",
        Severity::Critical => "severity=\"critical\"",
    };
    // `netwright mesh` has a build, too, but no findings.
    let build = of("netwright_build_info", "command=\"export\"");
    let (mesh, up) = (of("netwright_build_info", "command=\"mesh\""), of("up", ""));
    let ended = of("netwright_last_interval_timestamp_seconds", "");
    vec![
        (
            Part::Up,
            format!(
                "{up} and on (job) last_over_time({build}[1h]) unless on (job, instance) \
                 last_over_time({mesh}[1h])"
            ),
        ),
        (Part::Known, format!("count by (instance) (last_over_time({build}[1h]))")),
        (Part::Builds, build),
        (Part::Counts, of("netwright_findings", "")),
        (Part::Findings, format!("{} == 1", of("netwright_finding", severities))),
        (Part::Changes, format!("{} == 1", of("netwright_finding_change", ""))),
        (Part::Drift, format!("{} == 1", of("netwright_change_drifted", ""))),
        (Part::Stalled, format!("time() - {ended} > {STALLED_S}")),
    ]
}
