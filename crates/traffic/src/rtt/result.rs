//! Combines the threads' records into one run of the result document.

use std::collections::BTreeMap;

use model::{
    CpuId, Nanos, Warning,
    measure::{Mode, RttRun, RttSpec, Transport},
};
use stats::{Estimate, Histogram};

use super::sums::Sums;
use crate::{
    control::message::{Test, TestKind},
    engine::{
        assignments::Assignments,
        backlog::{Backlog, ScheduleLeft},
        confidence::{self, Next},
        ends,
        ran_on::UNKNOWN_CPU,
        rtt_recorder::Placed,
    },
};

/// Status line while a run is in progress.
pub fn progress_text(spec: &RttSpec, bytes: u64, flows: u32, rounds: usize) -> String {
    let again = match (spec.common.confidence_per_mille, rounds) {
        (Some(_), n) => format!(", round {}", n + 1),
        _ => String::new(),
    };
    let s = if flows == 1 { "" } else { "s" };
    format!("rtt {bytes} B, {flows} flow{s}{again}")
}

/// Whether the rounds reach the requested precision of the median round trip.
pub fn next(spec: &RttSpec, sums: &Sums, took_ns: u64) -> Next {
    confidence::next(&spec.common, &[sums.estimates().0], took_ns)
}

pub fn rtt_run(
    spec: &RttSpec,
    test: &Test,
    assignments: &Assignments,
    same_host: bool,
    sums: Sums,
) -> RttRun {
    let all = sums.total();
    let open = |h: &Histogram| spec.rate_per_s.map(|_| h.quantiles());
    let (request_bytes, response_bytes) = match test.kind {
        TestKind::Rtt { request_bytes, response_bytes, .. } => (request_bytes, response_bytes),
        _ => (0, 0),
    };
    let per_s = sums.answered as f64 * 1e9 / sums.window_ns.max(1) as f64;
    let (p50, rate) = sums.estimates();
    let engine = sums.engine();
    let mut warnings = sums.ends.warnings();
    warnings.extend(p50.as_ref().and_then(doubt));
    warnings.extend(behind(spec, test.flows, per_s, &sums));
    let placement = sums.ends.placement(assignments, same_host);
    warnings.extend(sums.ends.others(&placement));
    if test.transport == Transport::Udp {
        warnings.extend(sums.ends.no_room(sums.lost, same_host, true, true));
    }
    warnings.extend(sums.ends.spinning_on_one_cpu(test, spec.common.wait, same_host));
    RttRun {
        transport: test.transport,
        request_bytes,
        response_bytes,
        flows: test.flows,
        threads: spec.common.threads,
        queue_depth: spec.queue_depth,
        wait: spec.common.wait,
        peer_wait: spec.common.peer_wait,
        placement,
        engine,
        window_ns: Nanos(sums.window_ns),
        trimmed_ns: Nanos(spec.common.warmup_ns.0 + spec.common.cooldown_ns.0),
        rtt_ns: all.quantiles(),
        rtt_from_send_ns: open(&sums.from_send),
        send_lag_ns: open(&sums.lag),
        rtt_p50_interval_ns: p50.map(|e| e.interval),
        modes: modes(&all, sums.by_placement, same_host, sums.clock_step_ns),
        peer_service_ns: sums.peer_service_time_ns,
        transactions: sums.answered,
        transactions_per_s: per_s,
        transactions_per_s_interval: rate.map(|e| e.interval),
        target_per_s: spec.rate_per_s,
        schedule_lag_ns: spec.rate_per_s.map(|_| Nanos(sums.schedule_lag_ns)),
        not_started: sums.not_started,
        lost: sums.lost,
        late: sums.late,
        cpu: sums.ends.cpu(ends::at_rate(per_s)),
        evidence: sums.ends.evidence(),
        warnings,
    }
}

/// The modes of the distribution, each with the CPUs of both ends.
fn modes(
    all: &Histogram,
    by_placement: BTreeMap<Placed, Histogram>,
    same_host: bool,
    clock_step_ns: u64,
) -> Vec<Mode> {
    let cpu = |n: u16| (n != UNKNOWN_CPU).then_some(CpuId(n.into()));
    let key = |p: Placed| Some((cpu(p.local)?, cpu(p.peer)));
    let parts: Vec<_> =
        by_placement.into_iter().filter_map(|(placed, h)| Some((key(placed)?, h))).collect();
    stats::modes::describe(all, &parts, same_host, clock_step_ns)
}

/// A warning if the schedule was not kept.
fn behind(spec: &RttSpec, flows: u32, per_s: f64, sums: &Sums) -> Option<Warning> {
    Backlog {
        what: "round trips",
        places: "--flows or --queue-depth",
        rate_per_s: spec.rate_per_s?,
        per_s,
        at_once: u64::from(flows) * u64::from(spec.queue_depth),
        left: ScheduleLeft { schedule_lag_ns: sums.schedule_lag_ns, not_started: sums.not_started },
        window_ns: sums.window_ns,
    }
    .warning()
}

/// A warning if the confidence interval itself is doubtful.
fn doubt(median: &Estimate) -> Option<Warning> {
    if let Some(trend) = median.trend {
        return Some(Warning::MedianDrifts { trend });
    }
    (!median.independent).then_some(Warning::BatchesResemble)
}
