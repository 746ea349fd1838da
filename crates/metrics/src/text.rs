//! The two text formats that scrapers read.
//!
//! **Source**: OpenMetrics 1.0 (<https://github.com/prometheus/OpenMetrics>), and Prometheus' text
//! format 0.0.4 (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::fmt::Write;

use crate::family::{Family, Histogram, Kind, Series, Summary, Value};

/// How a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0, with units.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

impl Format {
    /// The format for a request's `Accept` header: OpenMetrics where it is named with a weight above
    /// zero, otherwise the older format, which every scraper reads.
    pub fn accepted(header: &str) -> Self {
        let wants = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let weight =
                parts.find_map(|p| p.strip_prefix("q=")).map_or(Ok(1.0), str::parse::<f64>);
            kind.eq_ignore_ascii_case("application/openmetrics-text")
                && weight.is_ok_and(|w| w > 0.0)
        };
        if header.split(',').any(wants) { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Families as a page. A family without series is left out.
pub fn page(families: &[Family], format: Format) -> String {
    let mut out = String::with_capacity(64 << 10);
    for family in families.iter().filter(|f| !f.series.is_empty()) {
        head(&mut out, family, format);
        for series in &family.series {
            one(&mut out, family, series);
        }
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn head(out: &mut String, family: &Family, format: Format) {
    let Family { name, unit, help, .. } = family;
    let open = format == Format::OpenMetrics;
    let (suffix, kind) = match (family.kind, open) {
        (Kind::Counter, true) => ("", "counter"),
        (Kind::Counter, false) => ("_total", "counter"),
        (Kind::Gauge, _) => ("", "gauge"),
        (Kind::Histogram, _) => ("", "histogram"),
        (Kind::Summary, _) => ("", "summary"),
        (Kind::Info, true) => ("", "info"),
        (Kind::Info, false) => ("_info", "gauge"),
    };
    let _ = writeln!(out, "# HELP {name}{suffix} {}", escaped(help, open));
    let _ = writeln!(out, "# TYPE {name}{suffix} {kind}");
    if open && !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name}{suffix} {unit}");
    }
}

fn one(out: &mut String, family: &Family, series: &Series) {
    let suffix = match family.kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram | Kind::Summary => "",
    };
    match &series.value {
        Value::Count(n) => line(out, (family.name, suffix), series, NONE, &n.to_string()),
        Value::Number(n) => line(out, (family.name, suffix), series, NONE, &number(*n)),
        Value::Histogram(h) => histogram(out, family.name, series, h),
        Value::Summary(s) => summary(out, family.name, series, s),
    }
}

fn histogram(out: &mut String, name: &str, series: &Series, h: &Histogram) {
    for (bound, count) in &h.buckets {
        let bound = number(*bound);
        line(out, (name, "_bucket"), series, ("le", &bound), &count.to_string());
    }
    line(out, (name, "_bucket"), series, ("le", "+Inf"), &h.count.to_string());
    line(out, (name, "_sum"), series, NONE, &number(h.sum));
    line(out, (name, "_count"), series, NONE, &h.count.to_string());
}

fn summary(out: &mut String, name: &str, series: &Series, s: &Summary) {
    for (share, value) in &s.quantiles {
        line(out, (name, ""), series, ("quantile", &number(*share)), &number(*value));
    }
    line(out, (name, "_sum"), series, NONE, &number(s.sum));
    line(out, (name, "_count"), series, NONE, &s.count.to_string());
}

/// No label besides those of the series.
const NONE: (&str, &str) = ("", "");

fn line(out: &mut String, name: (&str, &str), series: &Series, more: (&str, &str), value: &str) {
    out.push_str(name.0);
    out.push_str(name.1);
    let labels = series.labels.iter().map(|(name, value)| (*name, value.as_str()));
    let mut before = '{';
    for (name, value) in labels.chain((more != NONE).then_some(more)) {
        let _ = write!(out, "{before}{name}=\"{}\"", escaped(value, true));
        before = ',';
    }
    if before == ',' {
        out.push('}');
    }
    let _ = writeln!(out, " {value}");
}

/// The number as both formats write it; a whole one keeps its point, as OpenMetrics wants of bounds.
fn number(n: f64) -> String {
    if n.is_nan() {
        "NaN".to_owned()
    } else if n.is_infinite() {
        if n > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        format!("{n:?}")
    }
}

/// The text with what would end it or its line escaped.
fn escaped(text: &str, quotes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families() -> Vec<Family> {
        let mut counter = Family::counter("netwright_softirq_seconds", "Time.");
        counter.number(&[("cpu", "0"), ("context", "a\"b\\c\nd")], Some(1.5));
        let mut histogram = Family::new(Kind::Histogram, "netwright_wait_seconds", "Waits.");
        let waits = Histogram { buckets: vec![(1.024e-6, 1), (1.0, 3)], sum: 0.5, count: 4 };
        histogram.add(&[("stage", "stack")], Value::Histogram(waits));
        let mut info = Family::new(Kind::Info, "netwright_build", "The program.");
        info.add(&[("version", "1")], Value::Count(1));
        let empty = Family::gauge("netwright_nothing", "Left out.");
        vec![counter, histogram, info, empty]
    }

    #[test]
    fn both_formats_are_as_their_documents_say() {
        let open = page(&families(), Format::OpenMetrics);
        let expected = r#"# HELP netwright_softirq_seconds Time.
# TYPE netwright_softirq_seconds counter
# UNIT netwright_softirq_seconds seconds
netwright_softirq_seconds_total{cpu="0",context="a\"b\\c\nd"} 1.5
# HELP netwright_wait_seconds Waits.
# TYPE netwright_wait_seconds histogram
# UNIT netwright_wait_seconds seconds
netwright_wait_seconds_bucket{stage="stack",le="1.024e-6"} 1
netwright_wait_seconds_bucket{stage="stack",le="1.0"} 3
netwright_wait_seconds_bucket{stage="stack",le="+Inf"} 4
netwright_wait_seconds_sum{stage="stack"} 0.5
netwright_wait_seconds_count{stage="stack"} 4
# HELP netwright_build The program.
# TYPE netwright_build info
netwright_build_info{version="1"} 1
# EOF
"#;
        assert_eq!(open, expected);
        let old = page(&families(), Format::Prometheus);
        assert!(old.contains("# TYPE netwright_softirq_seconds_total counter\n"), "{old}");
        assert!(old.contains("# TYPE netwright_build_info gauge\n"), "{old}");
        assert!(!old.contains("# UNIT") && !old.contains("# EOF"), "{old}");
        let series = |page: &str| {
            page.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(series(&open), series(&old), "the series are the same");
    }

    #[test]
    fn the_header_of_prometheus_gets_openmetrics_and_a_browser_text() {
        let of = Format::accepted;
        let prometheus = "application/openmetrics-text;version=1.0.0,\
                          application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(of(prometheus), Format::OpenMetrics);
        for other in ["", "*/*", "text/html", "application/openmetrics-text;q=0", ";q=,,"] {
            assert_eq!(of(other), Format::Prometheus, "{other}");
        }
    }
}
