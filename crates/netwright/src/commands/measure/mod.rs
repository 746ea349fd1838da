//! `netwright measure`: traffic with known shape, and what it achieved.

pub mod args;
mod connect;
pub mod counts;
pub mod http;
mod local;
pub mod pg;
pub mod redis;
mod spec;
mod stream;

use std::{path::Path, sync::Mutex};

use model::measure::{ConnectSpec, HttpSpec, PeerProgram, PgSpec, RedisSpec, RttSpec, StreamSpec};
use probe::given;
use serde::Serialize;
use traffic::{Judged, Measured, Secret};

use self::args::{MeasureArgs, MeasureKind, SecretArgs};
pub use self::spec::{pin, wait};
use crate::{
    args::OutputArgs,
    exit::{CommandEnd, Failure},
    interrupt::Window,
    output::{Progress, Sink, row, rows_wanted},
};

/// Measures what was asked, or what an earlier result was asked.
pub fn run(args: &MeasureArgs) -> Result<CommandEnd, Failure> {
    if args.kind.as_ref().is_some_and(MeasureKind::softirq) {
        traffic::host::softirq::attach()?;
    }
    match (&args.kind, &args.rerun) {
        (Some(MeasureKind::Rtt(a)), _) => rtt(&spec::rtt(a)?, &a.common.secret, &a.common.output),
        (Some(MeasureKind::Stream(a)), _) => {
            stream::run(&spec::stream(a)?, &a.common.secret, &a.common.output)
        }
        (Some(MeasureKind::Connect(a)), _) => {
            connect::run(&spec::connect(a)?, &a.common.secret, &a.common.output)
        }
        (Some(MeasureKind::Http(a)), _) => http::run(&http::spec(a)?, &a.local.secret, &a.output),
        (Some(MeasureKind::Pg(a)), _) if a.init => pg::init(a),
        (Some(MeasureKind::Pg(a)), _) => {
            let (spec, password) = pg::spec(a)?;
            pg::run(&spec, password.as_deref(), &a.local.secret, &a.output)
        }
        (Some(MeasureKind::Redis(a)), _) => {
            let (spec, url) = redis::spec(a)?;
            redis::run(&spec, &url, &a.local.secret, &a.output)
        }
        (None, Some(file)) => rerun(file, args),
        (None, None) => Err(Failure::Usage(
            "say what to measure: rtt, stream, connect, http, pg or redis; `netwright measure --help` \
             has examples"
                .into(),
        )),
    }
}

impl From<traffic::Error> for Failure {
    fn from(e: traffic::Error) -> Self {
        match e {
            traffic::Error::Usage(why) => Self::Usage(why),
            traffic::Error::Denied(why) => Self::Denied(why),
            traffic::Error::Environment(why) | traffic::Error::Silent(why) => {
                Self::Environment(why)
            }
        }
    }
}

/// The longest file of a secret.
const MOST_SECRET: u64 = 64 << 10;

/// The longest result that is asked again.
const MOST_RESULT: u64 = 64 << 20;

/// The secret of a file or of the environment.
pub fn secret(args: &SecretArgs) -> Result<Option<Secret>, Failure> {
    let text = match &args.secret_file {
        Some(path) => Some(given::text(path, MOST_SECRET).map_err(|e| Failure::io(path, &e))?),
        None => std::env::var("NETWRIGHT_SECRET").ok().filter(|s| !s.is_empty()),
    };
    Ok(text.map(|t| Secret::new(&t)).transpose()?)
}

/// The request of an earlier result.
fn rerun(file: &Path, args: &MeasureArgs) -> Result<CommandEnd, Failure> {
    let text = given::text(file, MOST_RESULT).map_err(|e| Failure::io(file, &e))?;
    let no_result = |why: String| {
        Failure::Environment(format!("{}: no result of `measure --json`: {why}", file.display()))
    };
    let document: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| no_result(e.to_string()))?;
    let kind = document.get("kind").and_then(|k| k.as_str()).unwrap_or_default();
    let request = document.get("request").cloned().unwrap_or_default();
    match kind {
        "rtt" => {
            let spec: RttSpec =
                serde_json::from_value(request).map_err(|e| no_result(e.to_string()))?;
            rtt(&spec, &args.secret, &args.output)
        }
        "connect" => {
            let spec: ConnectSpec =
                serde_json::from_value(request).map_err(|e| no_result(e.to_string()))?;
            connect::run(&spec, &args.secret, &args.output)
        }
        "http" => {
            let spec: HttpSpec =
                serde_json::from_value(request).map_err(|e| no_result(e.to_string()))?;
            http::run(&spec, &args.secret, &args.output)
        }
        "pg" => {
            let spec: PgSpec =
                serde_json::from_value(request).map_err(|e| no_result(e.to_string()))?;
            pg::run(&spec, None, &args.secret, &args.output)
        }
        "redis" => {
            let spec: RedisSpec =
                serde_json::from_value(request).map_err(|e| no_result(e.to_string()))?;
            let url = workloads::RedisUrl::of(&spec.common.target)?;
            redis::run(&spec, &url, &args.secret, &args.output)
        }
        "stream" => {
            let spec: StreamSpec =
                serde_json::from_value(request).map_err(|e| no_result(e.to_string()))?;
            stream::run(&spec, &args.secret, &args.output)
        }
        other => Err(no_result(format!("its kind is {other:?}"))),
    }
}

fn rtt(
    spec: &RttSpec,
    secret_args: &SecretArgs,
    output: &OutputArgs,
) -> Result<CommandEnd, Failure> {
    let secret = secret(secret_args)?;
    conduct(
        output,
        |run| {
            let hear = |end_s: f64, per_s: f64| second(end_s, per_s, "round trips");
            let run = traffic::Run { second: each_second(output, &hear), ..run };
            match spec.common.peer {
                PeerProgram::Qperf => interop::qperf::client_rtt(spec, run),
                PeerProgram::Netwright | PeerProgram::Iperf3 | PeerProgram::Server => {
                    traffic::measure_rtt(spec, secret.as_ref(), run)
                }
            }
        },
        |document, look| report::measure::rtt(document, *look),
    )
}

/// Hears each second of a window: its end, in seconds since the window began, and a rate.
type Second<'a> = &'a (dyn Fn(f64, f64) + Sync);

/// Whoever hears of each second, where a person reads the rows.
fn each_second<'a>(output: &OutputArgs, hear: Second<'a>) -> Option<Second<'a>> {
    rows_wanted(output.talk.quiet).then_some(hear)
}

/// A row for a second that is over, in the form of `pgbench -P`.
fn second(end_s: f64, per_s: f64, what: &str) {
    row(&format!("progress: {end_s:.1} s, {per_s:.1} {what}/s"));
}

/// Runs a measurement with progress and Ctrl-C, prints what came of it, and says why it broke
/// off or measured nothing, if it did.
fn conduct<D: Serialize + Judged>(
    output: &OutputArgs,
    measure: impl FnOnce(traffic::Run<'_>) -> traffic::Result<Measured<D>>,
    text: impl FnOnce(&D, &report::TextStyle) -> String,
) -> Result<CommandEnd, Failure> {
    let sink = Sink::new(output.output.clone());
    sink.check()?;
    traffic::exact_timers();
    let window = Window::open();
    let shown = Mutex::new(Progress::new(output.talk.quiet, ""));
    let progress = |what: &str, share: f64| {
        if let Ok(mut line) = shown.lock() {
            line.rename(what);
            line.show(share);
        }
    };
    let result = measure(traffic::Run::new(window.stop(), &progress));
    drop(shown);
    drop(window);
    let (Measured { document, broken }, nothing) = result?.judged();
    match output.json {
        true => sink.json(&document)?,
        // A page of dashes says less than the line of what was wrong.
        false if nothing => {}
        false => sink.text(&text(&document, &sink.look(output.talk.verbose)))?,
    }
    match broken {
        Some(why) => Err(why.into()),
        None => Ok(CommandEnd::Yes),
    }
}
