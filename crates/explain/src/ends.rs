//! From what was typed to the two things that take turns: the workload and the network alone.

use std::{
    cell::Cell,
    net::{IpAddr, SocketAddr},
};

use model::{
    Nanos, Warning,
    explain::Exchange,
    measure::{
        Common, Engine, HttpSpec, PeerProgram, PgDriver, PgScript, PgSpec, Pin, RedisSpec, RttSpec,
        SocketOptions, TlsSpec, Transport,
    },
};
use traffic::{RedisUrl, Secret, Url, is_here};

use super::{
    args::ExplainArgs,
    http::Http,
    pg::{BEGINNING_NS, Pg},
    redis::Redis,
    responder::{Responder, ServerCpus},
    rtt::Rtt,
    server::Server,
    workload::{Observed, Workload},
};
use crate::{
    commands::measure::{self, counts::OneSize, pg::ProtocolArg},
    exit::Failure,
};

/// When a request counts as failed.
const TIMEOUT: Nanos = Nanos(5_000_000_000);

/// What the target names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A server of ours: `HOST[:PORT]`.
    Rtt(String),
    Http(String),
    /// A URL, without the password that may have stood in it.
    Redis(String),
    /// A connection string, without the password that may have stood in it.
    Pg(String),
}

impl Target {
    /// From what was typed.
    ///
    /// # Errors
    /// It is nothing that can be explained.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        match text.split_once("://") {
            Some(("rtt", rest)) if !rest.is_empty() => {
                Ok(Self::Rtt(rest.trim_end_matches('/').into()))
            }
            Some(("http" | "https" | "http+unix", _)) => {
                text.parse::<Url>()?;
                Ok(Self::Http(text.into()))
            }
            Some(("redis" | "rediss", _)) => Ok(Self::Redis(RedisUrl::of(text)?.shown)),
            Some(("pg" | "postgres" | "postgresql", _)) => {
                Ok(Self::Pg(traffic::pg::without_password(text)?.0))
            }
            _ => Err(Failure::Usage(format!(
                "{text:?} is no target; write rtt://HOST[:PORT], http://HOST[:PORT]/PATH or https://…, \
                 http+unix://%2Frun%2Fapp.sock/PATH, redis://HOST[:PORT] or rediss://…, or \
                 pg://USER@HOST/DATABASE, postgres:// and postgresql:// being the same"
            ))),
        }
    }

    /// As it may be shown.
    pub fn shown(&self) -> String {
        match self {
            Self::Rtt(host) => format!("rtt://{host}"),
            Self::Http(text) | Self::Redis(text) | Self::Pg(text) => text.clone(),
        }
    }
}

fn common(args: &ExplainArgs, target: String, peer: PeerProgram) -> Common {
    let wait = measure::wait(args.wait);
    let pin = match measure::pin(&args.cpu, args.no_pin) {
        // All rounds and the synthetic workload are to run in the same places.
        Pin::Auto => Pin::Apart,
        other => other,
    };
    let peer_pin = match peer {
        // Where a server of another kind runs is the scheduler's choice, and so its synthetic workload's.
        PeerProgram::Server if args.peer_cpu.is_none() => Pin::No,
        _ => measure::pin(&args.peer_cpu, args.no_pin),
    };
    Common {
        target,
        peer,
        transport: Transport::Tcp,
        family: None,
        bind: None,
        duration_ns: args.round,
        warmup_ns: super::workload::WARMUP,
        cooldown_ns: super::workload::COOLDOWN,
        wait,
        peer_wait: wait,
        pin,
        peer_pin,
        threads: args.threads,
        socket: SocketOptions::default(),
        confidence_per_mille: None,
        max_time_ns: args.round,
    }
}

/// How a server of ours is reached.
pub fn transport(target: &str) -> Transport {
    if target.starts_with("unix:") { Transport::Unix } else { Transport::Tcp }
}

/// A workload of a server of ours.
pub fn rtt(args: &ExplainArgs, host: &str, secret: Option<Secret>) -> Rtt {
    let response = args.response.unwrap_or(args.request).0;
    Rtt {
        spec: RttSpec {
            common: Common {
                transport: transport(host),
                ..common(args, host.into(), PeerProgram::Netwright)
            },
            request_bytes: vec![args.request.0],
            response_bytes: vec![response],
            flows: vec![1],
            queue_depth: 1,
            rate_per_s: None,
            timeout_ns: TIMEOUT,
            wait_split: false,
            // A call for each message, as servers and clients do it, with however many of them.
            engine: Engine::PerMessage,
            service_ns: None,
            think_time_ns: None,
            peer_threads: None,
        },
        secret,
        trips: 1.0,
    }
}

/// A workload of an HTTP server.
pub fn http(args: &ExplainArgs, url: &str) -> Http {
    Http {
        spec: HttpSpec {
            common: Common {
                transport: measure::http::transport(url),
                ..common(args, url.into(), PeerProgram::Server)
            },
            urls: vec![url.into()],
            method: "GET".into(),
            headers: args.header.clone(),
            body: None,
            body_file: None,
            flows: vec![1],
            pipeline: 1,
            new_connections: false,
            rate_per_s: None,
            tls: TlsSpec { ca: args.ca.clone(), insecure: args.insecure, resume: false },
            responder: None,
            requests: None,
            interval_ns: None,
            timeout_ns: TIMEOUT,
        },
        server: Server::default(),
    }
}

/// A workload of a Redis server.
///
/// # Errors
/// It is no URL.
fn redis(args: &ExplainArgs, target: &str) -> Result<Redis, Failure> {
    let mut commands = args.command.clone();
    if commands.is_empty() {
        commands.push(measure::redis::COMMAND.into());
    }
    Ok(Redis {
        spec: RedisSpec {
            common: common(args, target.into(), PeerProgram::Server),
            commands,
            keys: measure::redis::KEYS,
            data_bytes: measure::redis::DATA_BYTES,
            tls: TlsSpec { ca: args.ca.clone(), insecure: args.insecure, resume: false },
            responder: None,
            flows: vec![1],
            pipeline: 1,
            new_connections: false,
            rate_per_s: None,
            requests: None,
            timeout_ns: TIMEOUT,
            interval_ns: None,
        },
        url: RedisUrl::of(&args.target)?,
        server: Server::default(),
    })
}

/// A workload of a PostgreSQL server.
///
/// # Errors
/// A script that cannot be.
fn pg(args: &ExplainArgs, target: &str) -> Result<Pg, Failure> {
    let mut scripts =
        args.script.iter().map(|s| measure::pg::script(s)).collect::<Result<Vec<_>, _>>()?;
    if scripts.is_empty() {
        scripts.push(PgScript { name: "select-only".into(), weight: 1 });
    }
    Ok(Pg {
        spec: PgSpec {
            common: common(args, target.into(), PeerProgram::Server),
            scripts,
            protocol: args.protocol.into(),
            clients: vec![1],
            pipeline: false,
            connect_each: false,
            rate_per_s: None,
            transactions: None,
            // One that loses against another is tried again, as applications do.
            max_tries: 0,
            per_statement: false,
            scale: args.scale,
            seed: None,
            variables: args.define.iter().cloned().collect(),
            interval_ns: None,
            timeout_ns: TIMEOUT,
            responder: None,
            driver: PgDriver::default(),
            answer_delay_ns: Nanos(0),
        },
        password: traffic::pg::without_password(&args.target)?.1,
        beginning_ns: Cell::new(BEGINNING_NS),
        server: Server::default(),
    })
}

/// The network alone: the same exchange with a responder that answers at once, as many times as
/// the workload waits for an answer in a transaction, with messages of the mean size.
pub fn network(
    args: &ExplainArgs,
    target: &Target,
    responder: &Responder,
    exchange: Exchange,
) -> Rtt {
    let mut alone = rtt(args, &responder.target, responder.secret.clone());
    alone.spec.service_ns = Some(Nanos(0));
    let trips = exchange.round_trips.max(1.0);
    let each = |bytes: u64| vec![((bytes as f64 / trips).round() as u64).max(1)];
    alone.trips = trips;
    alone.spec.request_bytes = each(exchange.request_bytes);
    alone.spec.response_bytes = each(exchange.response_bytes);
    if let Target::Http(name) | Target::Redis(name) | Target::Pg(name) = target {
        let Common { peer_pin, .. } = common(args, name.clone(), PeerProgram::Server);
        alone.spec.common.peer_pin = peer_pin;
    }
    alone
}

/// The responder for a target: the target itself, as given, or one of ours beside a server of
/// this host.
///
/// # Errors
/// The server is elsewhere and none is given, or none starts.
pub fn responder(
    args: &ExplainArgs,
    target: &Target,
    learned: &Observed,
    notes: &mut Vec<Warning>,
) -> Result<Responder, Failure> {
    // Where the server may run, its synthetic workload may.
    let mut where_it_is = || {
        let found = ServerCpus::of_server(&learned.server);
        notes.extend(found.as_ref().err().cloned());
        found.ok().flatten()
    };
    let secret = || measure::secret(&args.secret);
    match (target, &args.responder) {
        (_, Some(given)) => Ok(Responder::given(given.clone(), secret()?)),
        (Target::Rtt(host), None) => Ok(Responder::given(host.clone(), secret()?)),
        (Target::Http(url), None) => match here(url)? {
            LocalServer::Address(ip) => Responder::start(&ip.to_string(), where_it_is()),
            LocalServer::Socket => Responder::start_on_unix_socket(where_it_is()),
            LocalServer::No => Err(other_paths()),
        },
        (Target::Redis(_) | Target::Pg(_), None) => match learned.server.parse::<SocketAddr>() {
            Ok(address) if is_here(address) => {
                Responder::start(&address.ip().to_string(), where_it_is())
            }
            Ok(_) => Err(other_paths()),
            // A Unix socket's path.
            Err(_) => Responder::start_on_unix_socket(where_it_is()),
        },
    }
}

/// Whether an option is another kind of target's, or a responder is needed that was not named, as far
/// as can be told before anything is measured.
///
/// # Errors
/// It is.
pub fn check(args: &ExplainArgs, target: &Target) -> Result<(), Failure> {
    if let Some((option, kind)) = foreign(args, target) {
        return Err(Failure::Usage(format!(
            "{option} is for {kind} targets, and means nothing for {}",
            target.shown()
        )));
    }
    match target {
        Target::Http(url) if args.responder.is_none() && here(url)? == LocalServer::No => {
            Err(other_paths())
        }
        Target::Redis(url) if args.responder.is_none() => {
            let url = RedisUrl::of(url)?;
            let Some((host, port)) = url.host() else { return Ok(()) };
            let here = traffic::addresses(host, port, None)?.into_iter().any(is_here);
            if here { Ok(()) } else { Err(other_paths()) }
        }
        _ => Ok(()),
    }
}

const REDIS: &str = "redis:// and rediss://";

/// An option that was given and is for another kind of target, and which.
fn foreign(args: &ExplainArgs, target: &Target) -> Option<(&'static str, &'static str)> {
    let own = match target {
        Target::Rtt(_) => "rtt://",
        Target::Http(_) => "http:// and https://",
        Target::Redis(_) => REDIS,
        Target::Pg(_) => "pg://",
    };
    let tls = if own == REDIS { REDIS } else { "http:// and https://" };
    let given = [
        ("--request", "rtt://", args.request != OneSize(64)),
        ("--response", "rtt://", args.response.is_some()),
        ("--header", "http:// and https://", !args.header.is_empty()),
        ("--ca", tls, args.ca.is_some()),
        ("--insecure", tls, args.insecure),
        ("--command", REDIS, !args.command.is_empty()),
        ("--script", "pg://", !args.script.is_empty()),
        ("--protocol", "pg://", args.protocol != ProtocolArg::Simple),
        ("--scale", "pg://", args.scale.is_some()),
        ("--define", "pg://", !args.define.is_empty()),
    ];
    let foreign = given.into_iter().find(|(_, kind, given)| *given && *kind != own);
    foreign.map(|(option, kind, _)| (option, kind))
}

fn other_paths() -> Failure {
    Failure::Usage(
        "the server is on another host: run `netwright serve` there and name it with \
         --responder HOST"
            .into(),
    )
}

/// Where of this host a URL's server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocalServer {
    /// At an address of this network namespace's.
    Address(IpAddr),
    /// At a Unix socket.
    Socket,
    /// Elsewhere, as far as can be told.
    No,
}

fn here(url: &str) -> Result<LocalServer, Failure> {
    let url: Url = url.parse()?;
    if url.socket.is_some() {
        return Ok(LocalServer::Socket);
    }
    let all = traffic::addresses(&url.host, url.port, None)?;
    let here = all.into_iter().find(|a| is_here(*a));
    Ok(here.map_or(LocalServer::No, |a| LocalServer::Address(a.ip())))
}

/// The workload of a target.
///
/// # Errors
/// No secret to be read.
pub fn workload(args: &ExplainArgs, target: &Target) -> Result<Box<dyn Workload>, Failure> {
    Ok(match target {
        Target::Rtt(host) => Box::new(rtt(args, host, measure::secret(&args.secret)?)),
        Target::Http(url) => Box::new(http(args, url)),
        Target::Redis(url) => Box::new(redis(args, url)?),
        Target::Pg(text) => Box::new(pg(args, text)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_by_their_scheme() {
        assert_eq!(Target::parse("rtt://db1:7471/").ok(), Some(Target::Rtt("db1:7471".into())));
        let url = "http://web1:8080/a?b";
        assert_eq!(Target::parse(url).ok(), Some(Target::Http(url.into())));
        let plain = Target::Pg("pg://app@db1/shop".into());
        assert_eq!(Target::parse("pg://app:secret@db1/shop").ok(), Some(plain));
        let plain = Target::Redis("redis://app@c1:6379/2".into());
        assert_eq!(Target::parse("redis://app:secret@c1/2").ok(), Some(plain));
        for wrong in ["db1", "rtt://", "https:///x", "ftp://x", ""] {
            assert!(matches!(Target::parse(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn a_server_of_this_host_is_known_by_its_address() {
        for url in ["http://127.0.0.1/", "http://127.0.0.1:8080/x", "http://[::1]:99/"] {
            assert!(matches!(here(url), Ok(LocalServer::Address(ip)) if ip.is_loopback()), "{url}");
        }
        assert!(matches!(here("http://192.0.2.1/"), Ok(LocalServer::No)));
        // Of a name that is none nobody knows on which host to start a responder.
        let why = here("http://no-such-host.invalid/").unwrap_err().to_string();
        assert!(why.contains("does not resolve"), "{why}");
        assert!(matches!(here("http+unix://%2Frun%2Fa.sock/"), Ok(LocalServer::Socket)));
    }
}
