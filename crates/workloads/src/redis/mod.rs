//! `measure redis`: sends commands to a Redis server or a compatible one (Valkey, KeyDB).
//!
//! - [`reply`]: finds the end of a reply.
//! - [`url`]: the server and the credentials.
//! - [`protocol`]: the commands of a connection, run by [`traffic::engine`].

mod protocol;
pub mod reply;
mod url;

use std::{sync::atomic::AtomicBool, time::Duration};

use model::{
    Nanos, Warning,
    measure::{End, RedisDocument, RedisRun, RedisSpec, Transport},
};
use stats::Histogram;
use traffic::{
    Error, Result,
    client::Peer,
    control::secret::Secret,
    engine::{
        admitted::Admitted,
        assignments::{self, Assignments},
        backlog::Backlog,
        conduct::Run,
        deadline::Deadline,
        dial::{DialPath, is_here},
        event_loop::EventLoop,
        failed::Words,
        floor::calibrate,
        link::{Link, Rooms},
        load::{Load, OneRun, Sweep, sweep},
        measured::{BATCH_NS, Measured, unix_s},
        protocol::Connecting,
        reach::{ServerAddress, reach, tls_of},
        sums::{EndsAsked, Rounds, Sums, rounds},
        workers::Workers,
    },
    net::{
        options,
        tls::{conn::Received, fault::Fault},
    },
};

pub use self::url::RedisUrl;
use self::{
    protocol::{CommandBytes, Commands, RedisRecorder, RedisShape, refused},
    reply::{Fed, Replies},
};

/// Longest value to write, in bytes.
const MOST_DATA: u64 = 512 << 20;
/// Timeout for the server's version.
const PATIENCE: Duration = Duration::from_secs(5);
const WORDS: Words = Words { unconnected: "not connected", answer: "reply" };
const NO_RESPONDER: &str =
    "this kind of server does not report it; a responder on its host does (--responder)";

/// Measures commands at the server of this URL; `spec` holds only what results may show. `password`
/// is used if the URL has none; `secret` is for a responder.
///
/// # Errors
/// Nothing could be measured; later failures are in [`Measured::broken`].
pub fn measure(
    spec: &RedisSpec,
    url: &RedisUrl,
    password: Option<&str>,
    secret: Option<&Secret>,
    run: Run<'_>,
) -> Result<Measured<RedisDocument>> {
    let commands = check(spec)?;
    let common = &spec.common;
    options::check(common)?;
    let server = url.server();
    let tls = if url.tls { Some(tls_of(&spec.tls, &server, None)?) } else { None };
    let (door, link) = reach(common, &server, tls.as_ref(), run.stop)?;
    let (greeting, greetings) = url.greeting(password);
    let program = version(link, &greeting, greetings, &door, tls.is_some(), run.stop)?;
    let observer = match &spec.responder {
        Some(at) => Some(Peer::observer(at, common, secret)?),
        None => None,
    };
    let same_host = door.ip.is_none_or(is_here);
    let assignments = assignments::beside(&common.pin, common.threads, same_host, door.ip)?;
    let calibration = calibrate(assignments.cpus.first().copied())?;
    let shape = RedisShape {
        connecting: Connecting {
            way: DialPath::new(door.to.clone(), door.transport, common, false)?,
            tls,
            one_each: spec.new_connections,
            timeout_ns: spec.timeout_ns.0,
        },
        commands,
        keys: spec.keys,
        pipeline: spec.pipeline,
        greeting: greeting.into_bytes(),
        greetings,
        name: door.name.clone(),
    };
    let mut document = RedisDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "redis".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local: door.local.clone(),
        peer: End {
            address: door.name.clone(),
            program,
            ..observer.as_ref().map_or_else(End::default, |o| o.end.clone())
        },
        floor: calibration.certificate([]),
        runs: vec![],
        interrupted: false,
    };
    let observer = observer.as_ref();
    let Sweep { runs, interrupted, broken } = sweep(&spec.flows, run.stop, |flows| {
        let mut one = one(spec, flows, &shape, &assignments, same_host, observer, run)?;
        one.run.warnings.extend(observer.zip(door.ip).and_then(|(p, ip)| p.elsewhere(ip)));
        Ok(one)
    });
    (document.runs, document.interrupted) = (runs, interrupted);
    document.floor = calibration.certificate(document.runs.iter().map(|r| &r.cpu.local));
    match (document.runs.is_empty(), broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok(Measured { document, broken }),
    }
}

/// The server's name and version, from `INFO` if permitted.
fn version(
    mut link: Link,
    greeting: &str,
    greetings: u32,
    door: &ServerAddress,
    tls: bool,
    stop: &AtomicBool,
) -> Result<String> {
    let (name, deadline) = (&door.name, Deadline::after(PATIENCE, stop));
    let fault = |fault: Fault| match fault {
        Fault::Io(e) if Deadline::is_late(&e) => Error::Environment(format!(
            "{name}: no reply in {}; does it speak Redis, or TLS, for rediss://?",
            deadline.limit()
        )),
        Fault::Io(e) => Error::io(name, &e),
        Fault::Tls(why) => Error::Environment(format!("{name}: {why}")),
    };
    let ask = format!("{greeting}*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n");
    link.send_within(ask.as_bytes(), &deadline).map_err(fault)?;
    let (mut rooms, mut replies, mut said, mut left) =
        (Rooms::new(16 << 10, tls), Replies::default(), vec![], greetings + 1);
    while left > 0 {
        let bytes = match link.receive(&mut rooms) {
            Ok((Received::End { .. }, _)) => {
                return Err(Error::Environment(format!("{name}: it closed before its reply")));
            }
            Ok((_, bytes)) => bytes,
            Err(e) if e.is_would_block() => {
                deadline.ready(link.fd(), libc::POLLIN).map_err(|e| fault(Fault::Io(e)))?;
                continue;
            }
            Err(e) => return Err(fault(e)),
        };
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|r| !r.is_empty() && left > 0) {
            let (n, fed) = replies.feed(rest);
            at += n;
            match fed {
                Fed::More => {}
                Fed::Bad(why) => {
                    return Err(Error::Environment(format!(
                        "{name}: {why}; is it the right port?"
                    )));
                }
                // The last reply is that of INFO, which an ACL may forbid.
                Fed::Whole(Some(error)) if left > 1 => return Err(refused(name, &error)),
                Fed::Whole(_) => left -= 1,
            }
        }
        said.extend_from_slice(bytes);
    }
    let said = String::from_utf8_lossy(&said);
    let field = |key: &str| Some(said.split(key).nth(1)?.lines().next()?.to_owned());
    let named = |key, name| field(key).map(|version| format!("{name} {version}"));
    let program = named("valkey_version:", "Valkey").or_else(|| named("redis_version:", "Redis"));
    Ok(program.unwrap_or_else(|| "a Redis server (INFO says no version)".into()))
}

/// One number of connections, repeated until its interval meets `--precision`.
fn one(
    spec: &RedisSpec,
    flows: u32,
    shape: &RedisShape,
    assignments: &Assignments,
    same_host: bool,
    observer: Option<&Peer>,
    run: Run<'_>,
) -> Result<OneRun<RedisRun>> {
    let workers = Workers {
        common: &spec.common,
        assignments,
        observer,
        connections: flows,
        rate_per_s: spec.rate_per_s,
        total: spec.requests,
        interval_ns: spec.interval_ns,
    };
    let recorder = || RedisRecorder::new(spec.rate_per_s.is_some(), BATCH_NS);
    let what = format!("redis, {flows} connections");
    let Rounds { sums, why, broken } = rounds(&workers, run, &what, recorder, |task, recorder| {
        let all = task.connections.iter().map(|n| Commands::new((*n).into())).collect();
        EventLoop { protocol: shape, task }.run(all, recorder);
        task.worker.see(|seen| recorder.requests.ran_on.tell(seen));
    })?;
    let mut run = result(spec, shape, &workers, same_host, &sums);
    run.warnings.extend(why);
    Ok(OneRun { run, interrupted: sums.interrupted, broken })
}

fn result(
    spec: &RedisSpec,
    shape: &RedisShape,
    workers: &Workers<'_>,
    same_host: bool,
    sums: &Sums<RedisRecorder>,
) -> RedisRun {
    let Sums { all, ends, window_ns, .. } = sums;
    let requests = &all.requests;
    let transactions = requests.answered;
    let per_s = transactions as f64 * 1e9 / (*window_ns).max(1) as f64;
    let asked = EndsAsked {
        total: spec.requests.is_some(),
        responder: spec.responder.is_some(),
        assignments: workers.assignments,
        same_host,
        no_responder_reason: NO_RESPONDER,
    };
    let (cpu, placement) = sums.both_ends(&asked, (transactions, per_s));
    let (p50, rate) = sums.estimates();
    let open = |h: &Option<Histogram>| h.as_ref().map(Histogram::quantiles);
    let tls = shape.connecting.tls.is_some();
    let by_schedule = spec.rate_per_s.filter(|_| spec.requests.is_none());
    let kept = !spec.new_connections;
    let mut warnings = vec![];
    if tls && spec.tls.insecure {
        warnings.push(Warning::CertificateNotChecked);
    }
    let backlog = by_schedule.map(|rate_per_s| Backlog {
        what: "commands",
        places: "--flows",
        rate_per_s,
        per_s,
        at_once: u64::from(workers.connections) * u64::from(spec.pipeline),
        left: requests.connections.left,
        window_ns: *window_ns,
    });
    warnings.extend(backlog.and_then(|b| b.warning()));
    let admitted = Admitted {
        who: "connections",
        limit: "maxclients",
        asked: workers.connections,
        kept: kept && spec.requests.is_none(),
        answers: true,
        keep: "Set `timeout 0` at the server, or measure with --new-connections: its latency includes connecting",
        window_ns: *window_ns,
    };
    let text = |why: &traffic::engine::failed::Failed| {
        why.text(spec.timeout_ns, WORDS, &requests.messages)
    };
    warnings.extend(admitted.warning(&requests.connections, text));
    if requests.connections.unfinished > 0 {
        let (what, done) = ("commands".into(), "answered".into());
        warnings.push(Warning::Unfinished { count: requests.connections.unfinished, what, done });
    }
    if spec.requests.is_some() && spec.rate_per_s.is_none() && requests.settled() < 100 {
        warnings.push(Warning::FewMeasured { what: "commands".into() });
    }
    warnings.extend(ends.warnings());
    RedisRun {
        transport: shape.connecting.way.transport,
        clients: workers.connections,
        threads: spec.common.threads,
        pipeline: spec.pipeline,
        new_connections: spec.new_connections,
        wait: spec.common.wait,
        placement,
        window_ns: Nanos(*window_ns),
        trimmed_ns: Nanos(spec.common.warmup_ns.0 + spec.common.cooldown_ns.0),
        transactions,
        transactions_per_s: per_s,
        transactions_per_s_interval: rate.map(|e| e.interval),
        target_per_s: spec.rate_per_s,
        latency_p50_interval_ns: p50.map(|e| e.interval),
        latency_ns: requests.latency.quantiles(),
        latency_from_send_ns: open(&requests.from_send),
        send_lag_ns: open(&requests.lag),
        connect_ns: requests.connect.quantiles(),
        tls_handshake_ns: tls.then(|| requests.handshakes.took.quantiles()),
        tls: requests.handshakes.run(!spec.tls.insecure),
        failed: requests.failures(),
        failures: requests.failures_by_text(spec.timeout_ns, WORDS),
        reconnects: requests.connections.reconnects,
        reopened: if kept { requests.reopened } else { 0 },
        disconnected_ns: kept.then_some(Nanos(requests.connections.disconnected_ns)),
        not_started: requests.connections.left.not_started,
        schedule_lag_ns: by_schedule.map(|_| Nanos(requests.connections.left.schedule_lag_ns)),
        unfinished: requests.connections.unfinished,
        request_bytes: all.request_bytes,
        response_bytes: all.response_bytes,
        receives: all.receives,
        cpu,
        evidence: ends.evidence(),
        intervals: sums.intervals.clone(),
        warnings,
    }
}

/// Checks the request and returns the commands.
fn check(spec: &RedisSpec) -> Result<Vec<CommandBytes>> {
    let usage = |why: String| Err(Error::Usage(why));
    let common = &spec.common;
    if !matches!(common.transport, Transport::Tcp | Transport::Unix) {
        return usage("Redis is measured over TCP or a Unix socket".into());
    }
    if spec.keys == 0 {
        return usage("no keys are asked for".into());
    }
    if spec.data_bytes > MOST_DATA {
        return usage("--data: at most 512MiB, as Redis takes".into());
    }
    Load {
        common,
        flows: &spec.flows,
        pipeline: spec.pipeline,
        one_each: spec.new_connections,
        rate_per_s: spec.rate_per_s,
        total: spec.requests,
        interval_ns: spec.interval_ns,
        timeout_ns: spec.timeout_ns,
        what: "commands",
        option: "--requests",
    }
    .check()?;
    spec.commands
        .iter()
        .map(|c| Ok(CommandBytes::of(&words(c)?, spec.data_bytes as usize)))
        .collect()
}

/// Splits a command into words; quotes group words, as in `redis-cli`.
fn words(command: &str) -> Result<Vec<String>> {
    let (mut all, mut word, mut quote) = (vec![], None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => all.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    let first = all.first().map(|w| w.to_ascii_uppercase()).unwrap_or_default();
    let why = match first.as_str() {
        _ if quote.is_some() => "a quote is open",
        "" => "it is empty",
        "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" | "MONITOR" | "QUIT" | "SHUTDOWN" | "HELLO"
        | "RESET" | "AUTH" | "SELECT" | "CLIENT" | "MULTI" | "EXEC" | "SYNC" | "PSYNC" => {
            "one reply to each command is measured, on a connection that stays as it is"
        }
        _ => return Ok(all),
    };
    Err(Error::Usage(format!("--command {command:?}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_in_a_shell() {
        assert_eq!(words("SET 'a b'  \"\" c").unwrap(), ["SET", "a b", "", "c"]);
        for wrong in ["", "  ", "GET 'a", "monitor"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }
}
