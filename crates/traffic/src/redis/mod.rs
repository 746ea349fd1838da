//! `measure redis`: commands to a Redis server, or one that speaks as it does (Valkey, KeyDB).
//!
//! - [`reply`]: where a reply ends.
//! - [`protocol`]: what a connection is asked, as [`crate::engine`] runs it.

mod protocol;
pub mod reply;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use model::{
    Nanos, Warning,
    measure::{End, RedisDocument, RedisRun, RedisSpec, Transport},
};
use stats::Histogram;

use self::{
    protocol::{CommandBytes, Commands, RedisRecorder, RedisShape, refused},
    reply::{Fed, Replies},
};
use crate::{
    Error, Result, Target,
    assignments::{self, Assignments},
    client::{Peer, conduct::Run},
    control::secret::Secret,
    engine::{
        admitted::Admitted,
        backlog::Backlog,
        deadline::Deadline,
        dial::{DialPath, is_here},
        event_loop::EventLoop,
        failed::Words,
        link::{Link, Rooms},
        protocol::Connecting,
        reach::{Server, ServerAddress, name_of, reach, tls_of},
        sums::{EndsAsked, Rounds, Sums, rounds},
        workers::Workers,
    },
    host::calibrate,
    http::url::unescaped,
    net::{
        options,
        tls::{conn::Received, fault::Fault},
    },
    rtt::measure::{BATCH_NS, Measured, unix_s},
};

/// More commands than this under way on one connection are a mistake.
const MOST_PIPELINE: u32 = 1024;
/// The longest value written.
const MOST_DATA: u64 = 512 << 20;
/// How long the server may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(5);
const WORDS: Words = Words { unconnected: "not connected", answer: "reply" };
const UNTOLD: &str =
    "a server of another kind does not tell; a responder on its host would (--responder)";

/// A server as a URL names it: `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`, `rediss://…`, or
/// `unix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisUrl {
    tls: bool,
    at: Target,
    user: Option<String>,
    password: Option<String>,
    database: Option<u32>,
    /// The same without a password, which a result may show.
    pub shown: String,
}

impl RedisUrl {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it, without what it says of a password.
    pub fn of(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::Usage(format!(
                "this is no Redis URL: {why}; write redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]"
            ))
        };
        if text.starts_with("unix:") {
            let (at, shown) = (text.parse()?, text.into());
            return Ok(Self { tls: false, at, user: None, password: None, database: None, shown });
        }
        let (tls, rest) = match text.split_once("://") {
            Some(("redis", rest)) => (false, rest),
            Some(("rediss", rest)) => (true, rest),
            Some(_) => return Err(wrong("only redis, rediss and unix:PATH are spoken")),
            None => return Err(wrong("redis:// is missing")),
        };
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, place) = place.rsplit_once('@').map_or((None, place), |(w, p)| (Some(w), p));
        let plain = |part: &str| -> Result<Option<String>> {
            let bytes = unescaped(part).map_err(wrong)?;
            let text = String::from_utf8(bytes).map_err(|_| wrong("a user is UTF-8"))?;
            Ok(Some(text).filter(|t| !t.is_empty()))
        };
        let (user, password) = match who.map(|w| w.split_once(':').unwrap_or((w, ""))) {
            Some((user, password)) => (plain(user)?, plain(password)?),
            None => (None, None),
        };
        let database = match path {
            "" => None,
            n => Some(n.parse().map_err(|_| wrong("a database is a number"))?),
        };
        let Target::Host(host, port) = place.parse()? else {
            return Err(wrong("the host is missing"));
        };
        let at = Target::Host(host, Some(port.unwrap_or(6379)));
        let shown = format!(
            "redis{}://{}{at}{}",
            if tls { "s" } else { "" },
            user.as_ref().map_or_else(String::new, |u| format!("{u}@")),
            database.map_or_else(String::new, |n| format!("/{n}"))
        );
        Ok(Self { tls, at, user, password, database, shown })
    }

    /// The host, as it is to be resolved, and its port; nothing of a Unix socket.
    pub fn host(&self) -> Option<(&str, u16)> {
        match &self.at {
            Target::Host(host, port) => Some((host, port.unwrap_or(6379))),
            Target::Unix(_) => None,
        }
    }

    fn server(&self) -> Server<'_> {
        let plain = "is it a port without, for redis://?";
        match &self.at {
            Target::Host(host, port) => Server {
                host,
                port: port.unwrap_or(6379),
                socket: None,
                name: self.at.to_string(),
                plain,
            },
            Target::Unix(path) => Server {
                host: "localhost",
                port: 0,
                socket: Some(path),
                name: name_of(path),
                plain,
            },
        }
    }

    /// What a connection begins with, and how many replies that has. `PING` is the last, so that a
    /// server that wants a password says so.
    fn greeting(&self, password: Option<&str>) -> (String, u32) {
        let mut all = vec![];
        if let Some(password) = self.password.as_deref().or(password) {
            all.push(
                [vec!["AUTH"], self.user.as_deref().into_iter().collect(), vec![password]].concat(),
            );
        }
        let database = self.database.map(|n| n.to_string());
        all.extend(database.iter().map(|n| vec!["SELECT", n]));
        all.push(vec!["PING"]);
        let word = |w: &&str| format!("${}\r\n{w}\r\n", w.len());
        let command =
            |c: &Vec<&str>| format!("*{}\r\n{}", c.len(), c.iter().map(word).collect::<String>());
        (all.iter().map(command).collect(), all.len() as u32)
    }
}

/// Sends commands as asked to the server of this URL, of which `spec` has what may be shown;
/// `password` is used where the URL has none, `secret` is what a responder may demand.
///
/// # Errors
/// Nothing could be measured at all; what breaks later is in [`Measured::broken`].
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
    let onlooker = match &spec.responder {
        Some(at) => Some(Peer::onlooker(at, common, secret)?),
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
            ..onlooker.as_ref().map_or_else(End::default, |o| o.end.clone())
        },
        floor: calibration.certificate([]),
        runs: vec![],
        interrupted: false,
    };
    let mut broken = None;
    for &flows in &spec.flows {
        if run.stop.load(Ordering::Relaxed) || broken.is_some() {
            break;
        }
        match one(spec, flows, &shape, &assignments, same_host, onlooker.as_ref(), run) {
            Ok((mut one, interrupted, why)) => {
                document.interrupted |= interrupted;
                broken = why;
                one.warnings
                    .extend(onlooker.as_ref().zip(door.ip).and_then(|(p, ip)| p.elsewhere(ip)));
                document.runs.push(one);
            }
            Err(e) => broken = Some(e),
        }
    }
    document.interrupted |= broken.is_some() || run.stop.load(Ordering::Relaxed);
    document.floor = calibration.certificate(document.runs.iter().map(|r| &r.cpu.local));
    match (document.runs.is_empty(), broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok(Measured { document, broken }),
    }
}

/// What the server calls itself: it says so of `INFO`, where that is allowed.
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
                // The last is of INFO, which an ACL may forbid.
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

/// One number of connections, repeated while its interval is wider than was asked for: the run,
/// whether it was ended early, and why it broke off.
fn one(
    spec: &RedisSpec,
    flows: u32,
    shape: &RedisShape,
    assignments: &Assignments,
    same_host: bool,
    onlooker: Option<&Peer>,
    run: Run<'_>,
) -> Result<(RedisRun, bool, Option<Error>)> {
    let workers = Workers {
        common: &spec.common,
        assignments,
        onlooker,
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
    Ok((run, sums.interrupted, broken))
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
        untold: UNTOLD,
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
        left: requests.fate.left,
        window_ns: *window_ns,
    });
    warnings.extend(backlog.and_then(|b| b.warning()));
    let admitted = Admitted {
        who: "connections",
        limit: "maxclients",
        asked: workers.connections,
        kept: kept && spec.requests.is_none(),
        answers: true,
        keep: "Have it keep them (timeout 0), or measure with --new-connections, whose times have it",
        window_ns: *window_ns,
    };
    let text =
        |why: &crate::engine::failed::Failed| why.text(spec.timeout_ns, WORDS, &requests.messages);
    warnings.extend(admitted.warning(&requests.fate, text));
    if requests.fate.unfinished > 0 {
        let (what, done) = ("commands".into(), "answered".into());
        warnings.push(Warning::Unfinished { count: requests.fate.unfinished, what, done });
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
        reconnects: requests.fate.reconnects,
        reopened: if kept { requests.reopened } else { 0 },
        disconnected_ns: kept.then_some(Nanos(requests.fate.disconnected_ns)),
        not_started: requests.fate.left.not_started,
        schedule_lag_ns: by_schedule.map(|_| Nanos(requests.fate.left.schedule_lag_ns)),
        unfinished: requests.fate.unfinished,
        request_bytes: all.request_bytes,
        response_bytes: all.response_bytes,
        receives: all.receives,
        cpu,
        evidence: ends.evidence(),
        intervals: sums.intervals.clone(),
        warnings,
    }
}

/// The commands, where what is asked for makes sense.
fn check(spec: &RedisSpec) -> Result<Vec<CommandBytes>> {
    let usage = |why: String| Err(Error::Usage(why));
    let common = &spec.common;
    if !matches!(common.transport, Transport::Tcp | Transport::Unix) {
        return usage("Redis is measured over TCP or a Unix socket".into());
    }
    if spec.flows.is_empty() || common.threads == 0 {
        return usage("no number of flows or threads is given".into());
    }
    if let Some(few) = spec.flows.iter().find(|f| **f < common.threads) {
        return usage(format!(
            "{few} flows cannot keep {} threads busy; give at least as many flows",
            common.threads
        ));
    }
    if !(1..=MOST_PIPELINE).contains(&spec.pipeline) {
        return usage(format!("--pipeline {}: from 1 to {MOST_PIPELINE}", spec.pipeline));
    }
    if spec.new_connections && spec.pipeline > 1 {
        return usage(
            "a connection of its own for each command carries one; leave out --pipeline or \
             --new-connections"
                .into(),
        );
    }
    if spec.requests.is_some() && common.confidence_per_mille.is_some() {
        return usage(
            "a number of commands is one round; leave out --requests or --precision".into(),
        );
    }
    if spec.rate_per_s == Some(0) || spec.requests == Some(0) || spec.keys == 0 {
        return usage("no commands, or no keys, are asked for".into());
    }
    if spec.data_bytes > MOST_DATA {
        return usage("--data: at most 512MiB, as Redis takes".into());
    }
    if spec.interval_ns.is_some_and(|i| i.0 < 100_000_000) {
        return usage("an interval of at least 100ms is needed".into());
    }
    if spec.timeout_ns.0 < 1_000_000 {
        return usage("a time limit below 1ms fails commands that only wait their turn".into());
    }
    spec.commands
        .iter()
        .map(|c| Ok(CommandBytes::of(&words(c)?, spec.data_bytes as usize)))
        .collect()
}

/// The words of a command; quotes hold one together, as in `redis-cli`.
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
    fn urls_say_where_who_and_which_database_and_show_no_password() {
        let url = RedisUrl::of("rediss://u:p%40@[::1]:7000/3").unwrap();
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("u"), Some("p@")));
        assert_eq!(url.shown, "rediss://u@[::1]:7000/3");
        let (greeting, n) = url.greeting(Some("other"));
        assert_eq!(n, 3);
        assert!(greeting.starts_with(
            "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$2\r\np@\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
        ));
        let url = RedisUrl::of("redis://:p@h").unwrap();
        assert_eq!((url.shown.as_str(), url.greeting(None).1), ("redis://h:6379", 2));
        let url = RedisUrl::of("unix:/run/redis.sock").unwrap();
        assert_eq!(
            url.greeting(Some("p")).0,
            "*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n*1\r\n$4\r\nPING\r\n"
        );
        for wrong in ["h:6379", "http://h", "redis://h/x", "redis://", "redis://:secret@h:x/"] {
            let why = RedisUrl::of(wrong).unwrap_err().to_string();
            assert!(!why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn words_are_as_in_a_shell() {
        assert_eq!(words("SET 'a b'  \"\" c").unwrap(), ["SET", "a b", "", "c"]);
        for wrong in ["", "  ", "GET 'a", "monitor"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }
}
