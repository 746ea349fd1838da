//! What runs against foreign servers have in common: HTTP, PostgreSQL and Redis.

use std::collections::BTreeMap;

use model::{
    Bytes,
    measure::{HttpRun, Interval, PgRun, Quantiles, RedisRun, TlsRun, Wait},
    units::grouped,
};

use super::{
    Run,
    head::{self, waits},
    intervals,
    numbers::{deviation, largest, none, per_second, quantile, time_of, width},
    rest,
    runs::{Aspect, Value, about, flows},
    sweep,
};
use crate::{
    text::{Ink, Line, Page},
    words::many,
};

/// Requests or transactions, each with its latency.
pub trait Served: Run {
    /// Per second of the window.
    fn per_s(&self) -> f64;
    fn per_s_interval(&self) -> Option<&Interval>;
    /// Open loop: latency from the scheduled time.
    fn latency(&self) -> &Quantiles;
    fn median_interval(&self) -> Option<&Interval>;
    /// Open loop: latency from sending.
    fn since_send(&self) -> Option<&Quantiles>;
    /// Open loop: how late each request began.
    fn lag(&self) -> Option<&Quantiles>;
    /// The time to connect.
    fn connect(&self) -> &Quantiles;
    /// The negotiated TLS parameters.
    fn tls(&self) -> Option<&TlsRun>;
    /// The time of TLS handshakes.
    fn handshake(&self) -> Option<&Quantiles>;
    fn failed(&self) -> u64;
    /// The number of failures, by cause.
    fn failures(&self) -> &BTreeMap<String, u64>;
    fn reconnects(&self) -> u64;
}

macro_rules! served {
    ($name:ty) => {
        impl Served for $name {
            fn per_s(&self) -> f64 {
                self.transactions_per_s
            }
            fn per_s_interval(&self) -> Option<&Interval> {
                self.transactions_per_s_interval.as_ref()
            }
            fn latency(&self) -> &Quantiles {
                &self.latency_ns
            }
            fn median_interval(&self) -> Option<&Interval> {
                self.latency_p50_interval_ns.as_ref()
            }
            fn since_send(&self) -> Option<&Quantiles> {
                self.latency_from_send_ns.as_ref()
            }
            fn lag(&self) -> Option<&Quantiles> {
                self.send_lag_ns.as_ref()
            }
            fn connect(&self) -> &Quantiles {
                &self.connect_ns
            }
            fn tls(&self) -> Option<&TlsRun> {
                self.tls.as_ref()
            }
            fn handshake(&self) -> Option<&Quantiles> {
                self.tls_handshake_ns.as_ref()
            }
            fn failed(&self) -> u64 {
                self.failed
            }
            fn failures(&self) -> &BTreeMap<String, u64> {
                &self.failures
            }
            fn reconnects(&self) -> u64 {
                self.reconnects
            }
        }
    };
}

served!(HttpRun);
served!(PgRun);
served!(RedisRun);

/// How the client waits; the server's way is unknown.
pub fn wait<R: Served>() -> Aspect<R> {
    Aspect {
        head: "WAIT",
        cell: |r| waits(r.waits()),
        said: |r| match r.waits().0 {
            Wait::Block => String::new(),
            other => format!("{} at the client", head::wait(other)),
        },
    }
}

pub fn rates<R: Served>() -> Vec<Value<R>> {
    vec![
        Value { head: "PER S", cell: |r| some_rate(r, r.per_s()) },
        Value { head: "±", cell: |r| width(r.per_s_interval()) },
    ]
}

/// A dash where nothing was measured: a 0 would be a result.
pub fn some_rate<R: Served>(r: &R, per_s: f64) -> Line {
    if r.units() == 0 { none() } else { per_second(per_s) }
}

/// The quantiles; of a single run also the 75th percentile, where a sweep has the interval.
pub fn latencies<R: Served>(runs: &[R]) -> Vec<Value<R>> {
    let second = match runs {
        [_] => Value { head: "P75", cell: |r: &R| quantile(r.latency(), 0.75, |q| q.p75) },
        _ => Value { head: "±", cell: |r: &R| width(r.median_interval()) },
    };
    vec![
        Value { head: "LATENCY P50", cell: |r| quantile(r.latency(), 0.5, |q| q.p50) },
        second,
        Value { head: "P90", cell: |r| quantile(r.latency(), 0.9, |q| q.p90) },
        Value { head: "P99", cell: |r| quantile(r.latency(), 0.99, |q| q.p99) },
        Value { head: "P99.9", cell: |r| quantile(r.latency(), 0.999, |q| q.p999) },
        Value { head: "MAX", cell: |r| largest(r.latency()) },
    ]
}

/// The moments of the latency of a single run.
pub fn moments<R: Served>(runs: &[R]) -> Option<Vec<Value<R>>> {
    let [_] = runs else { return None };
    Some(vec![
        Value { head: "LATENCY MIN", cell: |r| moment(r, |q| q.min as f64) },
        Value { head: "MEAN", cell: |r| moment(r, |q| q.mean) },
        Value { head: "SD", cell: |r| deviation(r.latency()) },
        Value { head: "SAMPLES", cell: |r| Line::plain(grouped(r.latency().count)) },
    ])
}

/// A dash where nothing was measured: a 0 would be a result.
fn moment<R: Served>(r: &R, pick: fn(&Quantiles) -> f64) -> Line {
    if r.latency().count == 0 { none() } else { time_of(pick(r.latency())) }
}

/// The answer: the rate and the median of a single run, the knee of a sweep over `counts`,
/// or the range of the medians.
pub fn answer<R: Served>(runs: &[R], count: fn(&R) -> u32, one: &str) -> Option<Line> {
    if let [r] = runs {
        if r.units() == 0 {
            return None;
        }
        let rate =
            intervals::figure(&per_second(r.per_s()).text("/s"), r.per_s_interval(), per_second);
        let p50 = quantile(r.latency(), 0.5, |q| q.p50);
        let p50 = intervals::figure(&p50, r.median_interval(), time_of);
        return Some(Line::new().ink(Ink::Strong, format!("{rate} · p50 {p50}")));
    }
    // A schedule sets the rate, so there is no knee.
    let closed = runs.iter().all(|r| r.lag().is_none());
    let points: Vec<(u32, f64)> = runs.iter().map(|r| (count(r), r.per_s())).collect();
    let medians: Vec<f64> = runs.iter().map(|r| r.latency().p50 as f64).collect();
    let knee = closed.then(|| sweep::knee(&points, one)).flatten();
    knee.or_else(|| sweep::range("p50", &medians, time_of))
}

/// What the intervals are, and why there are none.
pub fn intervals<R: Served>(runs: &[R], page: &mut Page) {
    let median = |r: &R| r.median_interval().cloned();
    intervals::show(runs, "P50", &median, page);
    let missing = |r: &R| r.latency().count > 0 && r.median_interval().is_none();
    rest::no_interval(runs, missing, page);
}

/// The time to connect.
pub fn connects<R: Served>() -> Vec<Value<R>> {
    vec![
        Value { head: "CONNECT P50", cell: |r| quantile(r.connect(), 0.5, |q| q.p50) },
        Value { head: "MAX", cell: |r| largest(r.connect()) },
    ]
}

/// Open loop: the part of the latency that was waiting here.
pub fn lags<R: Served>(runs: &[R]) -> Option<Vec<Value<R>>> {
    runs.iter().any(|r| r.since_send().is_some()).then(|| -> Vec<Value<R>> {
        vec![
            Value { head: "SERVICE P50", cell: |r| some(r.since_send(), 0.5, |q| q.p50) },
            Value { head: "P99", cell: |r| some(r.since_send(), 0.99, |q| q.p99) },
            Value { head: "SEND LAG P99", cell: |r| some(r.lag(), 0.99, |q| q.p99) },
            Value { head: "MAX", cell: |r: &R| r.lag().map_or_else(none, largest) },
        ]
    })
}

fn some(q: Option<&Quantiles>, share: f64, pick: fn(&Quantiles) -> u64) -> Line {
    q.map_or_else(none, |q| quantile(q, share, pick))
}

/// The time of TLS handshakes, where there were any.
pub fn handshakes<R: Served>(runs: &[R]) -> Option<Vec<Value<R>>> {
    runs.iter().any(|r| r.handshake().is_some()).then(|| -> Vec<Value<R>> {
        vec![
            Value { head: "TLS HANDSHAKE P50", cell: |r| some(r.handshake(), 0.5, |q| q.p50) },
            Value { head: "P99", cell: |r| some(r.handshake(), 0.99, |q| q.p99) },
            Value { head: "MAX", cell: |r: &R| r.handshake().map_or_else(none, largest) },
        ]
    })
}

/// The negotiated TLS parameters, once where all runs agree. `resume`: whether sessions might be
/// resumed.
pub fn tls<R: Served>(runs: &[R], resume: bool, page: &mut Page) {
    let mut said = None;
    for (n, run) in runs.iter().enumerate() {
        let Some(tls) = run.tls() else { continue };
        let sessions = match resume {
            false => "no session was resumed".to_owned(),
            true => format!(
                "{} of {} resumed a session",
                grouped(tls.resumed),
                many(usize::try_from(tls.handshakes).unwrap_or(usize::MAX), "handshake")
            ),
        };
        let text = format!("{}, {}; {sessions}.", tls.version, tls.cipher);
        if said.as_ref() != Some(&text) {
            let about = if said.is_some() { about(&[n + 1], runs.len()) } else { String::new() };
            page.line(Line::new().ink(Ink::Faint, format!("{about}{text}")), 2);
            said = Some(text);
        }
    }
}

pub fn failed<R: Served>() -> Value<R> {
    Value {
        head: "FAILED",
        cell: |r| match r.failed() {
            0 => Line::plain("0"),
            n => Line::new().ink(Ink::Bad, grouped(n)),
        },
    }
}

/// Prints the failures of each run, by cause.
pub fn failures<R: Served>(runs: &[R], page: &mut Page) {
    for (n, run) in runs.iter().enumerate() {
        rest::failures(run.failures(), &about(&[n + 1], runs.len()), page);
    }
}

/// Connections that the server closed between responses.
pub fn reconnects<R: Served>(runs: &[R], answers: &str, page: &mut Page) {
    for (n, run) in runs.iter().enumerate().filter(|(_, r)| r.reconnects() > 0) {
        let text = format!(
            "{}the server closed {} between {answers}; the client reconnected.",
            about(&[n + 1], runs.len()),
            many(usize::try_from(run.reconnects()).unwrap_or(usize::MAX), "connection"),
        );
        page.line(Line::new().ink(Ink::Faint, rest::capital(&text)), 2);
    }
}

/// The mean bytes of a response.
pub fn mean_answer(bytes: u64, answers: u64) -> Line {
    bytes.checked_div(answers).map_or_else(none, |n| Line::plain(Bytes(n)))
}

/// Bytes of responses per second of the window, in MB/s.
pub fn megabytes(bytes: u64, window_ns: u64) -> Line {
    match bytes == 0 || window_ns == 0 {
        true => none(),
        false => Line::plain(format!("{:.2}", bytes as f64 * 1e3 / window_ns as f64)),
    }
}

/// `8 flows`, `8 flows, a new connection for each request`.
pub fn connections(n: u32, one_each: bool, request: &str) -> String {
    let all = flows(n);
    if one_each { format!("{all}, a new connection for each {request}") } else { all }
}

/// The number of outstanding requests on a connection, where it is not one.
pub fn outstanding(pipeline: u32) -> String {
    if pipeline == 1 { String::new() } else { format!("pipeline of {pipeline}") }
}
