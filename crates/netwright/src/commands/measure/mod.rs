//! `netwright measure`: traffic with known shape, and what it achieved.

pub mod args;
mod connect;
pub mod counts;
pub mod flags;
mod http;
mod local;
pub mod pg;
pub mod redis;
mod spec;
mod stream;

use std::path::Path;

use model::{
    Nanos,
    measure::{PeerProgram, RedisSpec, RttSpec, ServedInterval},
};
use probe::given;
use report::TextStyle;
use serde::{Serialize, de::DeserializeOwned};
use traffic::{Judged, Measured, Secret};
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

/// A file by its name, as a request keeps it.
pub fn named(path: Option<&Path>) -> Result<Option<String>, Failure> {
    let name = |p: &Path| {
        p.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::Usage(format!("{}: the name is not UTF-8; rename it", p.display()))
        })
    };
    path.map(name).transpose()
}

/// The request of an earlier result.
fn rerun(file: &Path, args: &MeasureArgs) -> Result<CommandEnd, Failure> {
    let text = given::text(file, MOST_RESULT).map_err(|e| Failure::io(file, &e))?;
    let document: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| no_result(file, &e.to_string()))?;
    let kind = document.get("kind").and_then(|k| k.as_str()).unwrap_or_default();
    let request = document.get("request").cloned().unwrap_or_default();
    let (secret, output) = (&args.secret, &args.output);
    match kind {
        "rtt" => rtt(&asked(request, file)?, secret, output),
        "connect" => connect::run(&asked(request, file)?, secret, output),
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
    serde_json::from_value(request).map_err(|e| no_result(file, &e.to_string()))
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

/// Hears each second of a window: its end, in seconds since the window began, and a rate.
type Second<'a> = &'a (dyn Fn(f64, f64) + Sync);

/// Hears an interval of a server's answers.
type Interval<'a> = &'a (dyn Fn(&ServedInterval) + Sync);

/// Whoever hears of each second, where a person reads the rows.
fn each_second<'a>(output: &OutputArgs, hear: Second<'a>) -> Option<Second<'a>> {
    rows_wanted(output.talk.quiet).then_some(hear)
}

/// Whoever hears of each interval of a server's answers: who asked for it, or a person reads the rows.
fn each_interval(asked_for: Option<Nanos>, output: &OutputArgs) -> Option<Interval<'static>> {
    let wanted = asked_for.is_some() && !output.talk.quiet;
    (wanted || rows_wanted(output.talk.quiet)).then_some(&local::interval)
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
    text: impl FnOnce(&D, TextStyle) -> String,
) -> Result<CommandEnd, Failure> {
    let answer = Answer::to(output)?;
    traffic::exact_timers();
    let session = Session::open(&output.talk);
    let progress = |what: &str, share: f64| session.progress(what, share);
    let result = measure(traffic::Run::new(session.stop(), &progress));
    drop(session);
    let (Measured { document, broken }, nothing) = result?.judged();
    // A page of dashes says less than the line of what was wrong.
    if output.json || !nothing {
        answer.tell(&document, text)?;
    }
    match broken {
        Some(why) => Err(why.into()),
        None => Ok(CommandEnd::Yes),
    }
}
