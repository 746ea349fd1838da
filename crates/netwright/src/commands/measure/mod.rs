//! `netwright measure`: sends a known load and reports what was achieved.

pub mod args;
mod connect;
pub mod counts;
pub mod flags;
mod http;
mod local;
mod offload;
pub mod pg;
pub mod redis;
pub mod spec;
mod stream;
mod target;

use std::path::Path;

use model::{
    Nanos,
    measure::{PeerProgram, RedisSpec, RttSpec, ServedInterval},
};
use probe::given;
use report::TextStyle;
use serde::{Serialize, de::DeserializeOwned};
use traffic::{MarkEmptyRuns, Measured, Secret};
use tune::operator::Operator;

use self::{
    args::{MeasureArgs, MeasureKind},
    flags::SecretArgs,
};
use crate::{
    args::OutputArgs,
    failure::{CommandEnd, Failure},
    output::{Answer, row, rows_wanted},
    session::Session,
};

/// Runs the measurement of the flags, or repeats that of an earlier result.
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
        (Some(MeasureKind::Offload(a)), _) => {
            offload::run(&offload::spec(a)?, &a.secret, &a.output)
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
            "say what to measure: rtt, stream, connect, offload, http, pg or redis; `netwright measure --help` \
             has examples"
                .into(),
        )),
    }
}

/// The largest file of a secret, bytes.
const MOST_SECRET: u64 = 64 << 10;

/// The largest earlier result that is read, bytes.
const MOST_RESULT: u64 = 64 << 20;

/// The secret from a file or from the environment; `None` where neither has one.
///
/// # Errors
/// The file cannot be read or is no text (exit code 3 or 4); the secret has less than 8
/// characters (2).
pub fn secret(args: &SecretArgs) -> Result<Option<Secret>, Failure> {
    let text = secret_text(args)?;
    Ok(text.map(|t| Secret::new(&t)).transpose()?)
}

/// The same as a text, without surrounding white space.
///
/// # Errors
/// As [`secret`].
pub fn secret_text(args: &SecretArgs) -> Result<Option<String>, Failure> {
    let text = match &args.secret_file {
        Some(path) => Some(given::text(path, MOST_SECRET).map_err(|e| Failure::io(path, &e))?),
        None => std::env::var("NETWRIGHT_SECRET").ok().filter(|s| !s.is_empty()),
    };
    // It refuses a secret that is too short.
    text.as_deref().map(Secret::new).transpose()?;
    Ok(text.map(|t| t.trim().to_owned()))
}

/// A path as the request stores it.
///
/// # Errors
/// The name is not UTF-8, and the result's JSON could not have it (exit code 2).
pub fn named(path: Option<&Path>) -> Result<Option<String>, Failure> {
    let name = |p: &Path| {
        p.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::Usage(format!("{}: the name is not UTF-8; rename it", p.display()))
        })
    };
    path.map(name).transpose()
}

/// The request in an earlier result.
fn rerun(file: &Path, args: &MeasureArgs) -> Result<CommandEnd, Failure> {
    let text = given::text(file, MOST_RESULT).map_err(|e| Failure::io(file, &e))?;
    let document: serde_json::Value =
        model::json::value(text.as_bytes()).map_err(|e| no_result(file, &e.to_string()))?;
    let kind = document.get("kind").and_then(|k| k.as_str()).unwrap_or_default();
    let request = document.get("request").cloned().unwrap_or_default();
    let (secret, output) = (&args.secret, &args.output);
    match kind {
        "rtt" => rtt(&asked(request, file)?, secret, output),
        "connect" => connect::run(&asked(request, file)?, secret, output),
        "offload" => offload::run(&asked(request, file)?, secret, output),
        "http" => http::run(&asked(request, file)?, secret, output),
        "pg" => pg::run(&asked(request, file)?, None, secret, output),
        "redis" => {
            let spec: RedisSpec = asked(request, file)?;
            let url = workloads::RedisUrl::of(&spec.common.target)?;
            redis::run(&spec, &url, secret, output)
        }
        "stream" => stream::run(&asked(request, file)?, secret, output),
        other => Err(no_result(file, &format!("its kind is {other:?}"))),
    }
}

fn asked<T: DeserializeOwned>(request: serde_json::Value, file: &Path) -> Result<T, Failure> {
    T::deserialize(&request).map_err(|e| no_result(file, &e.to_string()))
}

fn no_result(file: &Path, why: &str) -> Failure {
    Failure::Environment(format!("{}: no result of `measure --json`: {why}", file.display()))
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
        report::measure::rtt,
    )
}

/// Called after each second of a window, with its end in seconds since the window began, and a
/// rate.
type Second<'a> = &'a (dyn Fn(f64, f64) + Sync);

/// Called after each interval of a foreign server's answers.
type Interval<'a> = &'a (dyn Fn(&ServedInterval) + Sync);

/// `hear`, where rows are shown on a terminal.
fn each_second<'a>(output: &OutputArgs, hear: Second<'a>) -> Option<Second<'a>> {
    rows_wanted(output.talk.quiet).then_some(hear)
}

/// Prints each interval, where `--progress` asked for it or rows are shown on a terminal.
fn each_interval(asked_for: Option<Nanos>, output: &OutputArgs) -> Option<Interval<'static>> {
    let wanted = asked_for.is_some() && !output.talk.quiet;
    (wanted || rows_wanted(output.talk.quiet)).then_some(&local::interval)
}

/// Prints a row for one second, in the format of `pgbench -P`.
fn second(end_s: f64, per_s: f64, what: &str) {
    row(&format!("progress: {end_s:.1} s, {per_s:.1} {what}/s"));
}

/// Runs a measurement with progress and Ctrl-C, prints the result, and then reports an error or an
/// empty result.
fn conduct<D: Serialize + MarkEmptyRuns>(
    output: &OutputArgs,
    measure: impl FnOnce(traffic::Run<'_>) -> traffic::Result<Measured<D>>,
    text: impl FnOnce(&D, TextStyle) -> String,
) -> Result<CommandEnd, Failure> {
    let answer = Answer::to(output)?;
    traffic::exact_timers();
    let session = Session::open(&output.talk);
    let progress = |what: &str, share: f64| session.progress(what, share);
    let result = measure(traffic::Run::new(session.stop(), &progress));
    drop(session);
    let (Measured { document, broken }, nothing) = result?.marked();
    // An empty result's table says less than the error message.
    if output.json || !nothing {
        answer.tell(&document, text)?;
    }
    match broken {
        Some(why) => Err(why.into()),
        None => Ok(CommandEnd::Yes),
    }
}
