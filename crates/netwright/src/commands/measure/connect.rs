//! `netwright measure connect`.

use model::measure::{ConnectDocument, ConnectRun, ConnectSpec};

use super::{SecretArgs, conduct, secret};
use crate::{
    args::OutputArgs,
    exit::{Done, Failure},
    output::note,
};

/// Says first when local ports would run out.
pub fn run(spec: &ConnectSpec, from: &SecretArgs, output: &OutputArgs) -> Result<Done, Failure> {
    let secret = secret(from)?;
    if let Some(why) = traffic::forecast_connect(spec).filter(|_| !output.talk.quiet) {
        note(&format!("netwright: {why}"));
    }
    conduct(
        output,
        |run| traffic::measure_connect(spec, secret.as_ref(), run),
        |document, _look| text(document),
    )
}

fn text(document: &ConnectDocument) -> String {
    document.runs.iter().map(run_text).collect()
}

fn run_text(run: &ConnectRun) -> String {
    let us = |ns: u64| ns as f64 / 1000.0;
    let mut text = format!(
        "{} at once: {:.0} connections/s ({} in {})\n",
        run.flows, run.connections_per_s, run.connections, run.window_ns
    );
    let mut times = |name: &str, q: &model::measure::Quantiles| {
        text += &format!(
            "  {name:<11} p50 {:.1} µs  p99 {:.1} µs  max {:.1} µs\n",
            us(q.p50),
            us(q.p99),
            us(q.max)
        );
    };
    times("connect", &run.connect_ns);
    if let Some(first) = &run.first_byte_ns {
        times("first byte", first);
    }
    for (why, n) in &run.failed {
        text += &format!("  {n} failed: {why}\n");
    }
    for warning in &run.warnings {
        text += &format!("  note: {warning}\n");
    }
    text
}
