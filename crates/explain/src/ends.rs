//! Builds the two interleaved workloads from a request: the workload itself and the network alone.

use std::{
    cell::Cell,
    net::{IpAddr, SocketAddr},
};

use model::{
    Nanos, Warning,
    explain::Exchange,
    measure::{
        Common, Engine, HttpSpec, PeerProgram, PgDriver, PgSpec, Pin, RedisSpec, RttSpec,
        SocketOptions, Transport,
    },
};
use traffic::{Error, LEAST_WITH_OVERRUN, Result, is_here};
use workloads::{RedisUrl, Url};

use crate::{
    http::Http,
    pg::{BEGINNING_NS, Pg},
    redis::Redis,
    request::{Request, Target},
    responder::{Responder, ServerCpus},
    rtt::Rtt,
    server::Server,
    workload::{Observed, Workload},
};

/// When a request counts as failed.
const TIMEOUT: Nanos = Nanos(5_000_000_000);

fn common(request: &Request, target: String, peer: PeerProgram) -> Common {
    let pin = match request.pin.clone() {
        // All rounds and the synthetic workload must run on the same CPUs.
        Pin::Auto => Pin::Apart,
        other => other,
    };
    let peer_pin = match (peer, request.peer_pin.clone()) {
        // The scheduler places a foreign server, so it also places its synthetic workload.
        (PeerProgram::Server, Pin::Auto) => Pin::No,
        (_, pin) => pin,
    };
    Common {
        target,
        peer,
        transport: Transport::Tcp,
        family: None,
        bind: None,
        duration_ns: request.round,
        warmup_ns: crate::workload::WARMUP,
        cooldown_ns: crate::workload::COOLDOWN,
        wait: request.wait,
        peer_wait: request.wait,
        pin,
        peer_pin,
        threads: request.threads,
        socket: SocketOptions::default(),
        confidence_per_mille: None,
        max_time_ns: request.round,
    }
}

/// Connection options of a server of ours.
pub fn transport(target: &str) -> Transport {
    if target.starts_with("unix:") { Transport::Unix } else { Transport::Tcp }
}

/// A workload of a server of ours.
pub fn rtt(request: &Request, host: &str) -> Rtt {
    Rtt {
        spec: RttSpec {
            common: Common {
                transport: transport(host),
                ..common(request, host.into(), PeerProgram::Netwright)
            },
            request_bytes: vec![request.request_bytes],
            response_bytes: vec![request.response_bytes],
            flows: vec![1],
            queue_depth: 1,
            rate_per_s: None,
            timeout_ns: TIMEOUT,
            wait_split: false,
            // One system call for each message, as servers and clients do it, for any number of
            // clients.
            engine: Engine::PerMessage,
            service_ns: None,
            think_time_ns: None,
            peer_threads: None,
        },
        secret: request.secret.clone(),
        trips: 1.0,
    }
}

/// What carries requests to a URL.
fn http_transport(url: &str) -> Transport {
    if url.starts_with("http+unix:") { Transport::Unix } else { Transport::Tcp }
}

/// A workload of an HTTP server.
pub fn http(request: &Request, url: &str) -> Http {
    Http {
        spec: HttpSpec {
            common: Common {
                transport: http_transport(url),
                ..common(request, url.into(), PeerProgram::Server)
            },
            urls: vec![url.into()],
            method: "GET".into(),
            headers: request.headers.clone(),
            body: None,
            body_file: None,
            flows: vec![1],
            pipeline: 1,
            new_connections: false,
            rate_per_s: None,
            tls: request.tls.clone(),
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
/// The target is not a valid URL.
fn redis(request: &Request, target: &str) -> Result<Redis> {
    Ok(Redis {
        spec: RedisSpec {
            common: common(request, target.into(), PeerProgram::Server),
            commands: request.commands.clone(),
            keys: request.keys,
            data_bytes: request.data_bytes,
            tls: request.tls.clone(),
            responder: None,
            flows: vec![1],
            pipeline: 1,
            new_connections: false,
            rate_per_s: None,
            requests: None,
            timeout_ns: TIMEOUT,
            interval_ns: None,
        },
        url: RedisUrl::of(&request.url)?,
        password: request.redis_password.clone(),
        server: Server::default(),
    })
}

/// A workload of a PostgreSQL server.
///
/// # Errors
/// An invalid script.
fn pg(request: &Request, target: &str) -> Result<Pg> {
    Ok(Pg {
        spec: PgSpec {
            common: common(request, target.into(), PeerProgram::Server),
            scripts: request.scripts.clone(),
            protocol: request.protocol,
            clients: vec![1],
            pipeline: false,
            connect_each: false,
            rate_per_s: None,
            transactions: None,
            // A transaction that fails by a conflict is tried again, as applications do.
            max_tries: 0,
            per_statement: false,
            scale: request.scale,
            seed: None,
            variables: request.variables.clone(),
            interval_ns: None,
            timeout_ns: TIMEOUT,
            responder: None,
            driver: PgDriver::default(),
            answer_delay_ns: Nanos(0),
        },
        password: workloads::pg::without_password(&request.url)?.1,
        beginning_ns: Cell::new(BEGINNING_NS),
        server: Server::default(),
    })
}

/// The network alone: the same exchange with a responder that answers at once. It makes as many
/// round trips as a transaction, with messages of the mean size.
pub fn network(request: &Request, responder: &Responder, exchange: Exchange) -> Rtt {
    let mut alone = rtt(request, &responder.target);
    alone.secret = responder.secret.clone();
    alone.spec.service_ns = Some(Nanos(0));
    let trips = exchange.round_trips.max(1.0);
    let each = |bytes: u64, least: u64| vec![((bytes as f64 / trips).round() as u64).max(least)];
    alone.trips = trips;
    alone.spec.request_bytes = each(exchange.request_bytes, 1);
    alone.spec.response_bytes = each(exchange.response_bytes, LEAST_WITH_OVERRUN);
    if let Target::Http(name) | Target::Redis(name) | Target::Pg(name) = &request.target {
        let Common { peer_pin, .. } = common(request, name.clone(), PeerProgram::Server);
        alone.spec.common.peer_pin = peer_pin;
    }
    alone
}

/// The responder for a target: the given one, or one that we start beside a server of this host.
///
/// # Errors
/// The server is on another host and no responder is given, or none starts.
pub fn responder(
    request: &Request,
    learned: &Observed,
    notes: &mut Vec<Warning>,
) -> Result<Responder> {
    // The synthetic workload may use the CPUs that the server may use.
    let mut where_it_is = || {
        let found = ServerCpus::of_server(&learned.server);
        notes.extend(found.as_ref().err().cloned());
        found.ok().flatten()
    };
    let secret = || request.secret.clone();
    match (&request.target, &request.responder) {
        (_, Some(given)) => Ok(Responder::given(given.clone(), secret())),
        (Target::Rtt(host), None) => Ok(Responder::given(host.clone(), secret())),
        (Target::Http(url), None) => match here(url)? {
            LocalServer::Address(ip) => {
                Responder::start(&request.ours, &ip.to_string(), where_it_is())
            }
            LocalServer::Socket => Responder::start_on_unix_socket(&request.ours, where_it_is()),
            LocalServer::No => Err(other_paths()),
        },
        (Target::Redis(_) | Target::Pg(_), None) => match learned.server.parse::<SocketAddr>() {
            Ok(address) if is_here(address) => {
                Responder::start(&request.ours, &address.ip().to_string(), where_it_is())
            }
            Ok(_) => Err(other_paths()),
            // A Unix socket's path.
            Err(_) => Responder::start_on_unix_socket(&request.ours, where_it_is()),
        },
    }
}

/// Refuses, before anything is measured, a target that needs a responder and names none.
///
/// # Errors
/// A responder is needed, or the target's name cannot be resolved.
pub fn check(request: &Request) -> Result<()> {
    match &request.target {
        Target::Http(url) if request.responder.is_none() && here(url)? == LocalServer::No => {
            Err(other_paths())
        }
        Target::Redis(url) if request.responder.is_none() => {
            let url = RedisUrl::of(url)?;
            let Some((host, port)) = url.host() else { return Ok(()) };
            let here = traffic::addresses(host, port, None)?.into_iter().any(is_here);
            if here { Ok(()) } else { Err(other_paths()) }
        }
        _ => Ok(()),
    }
}

fn other_paths() -> Error {
    Error::Usage(
        "the server is on another host: run `netwright serve` there and name it with \
         --responder HOST"
            .into(),
    )
}

/// Where a URL's server is, relative to this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocalServer {
    /// At an address of this network namespace.
    Address(IpAddr),
    /// At a Unix socket.
    Socket,
    /// On another host, or unknown.
    No,
}

fn here(url: &str) -> Result<LocalServer> {
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
/// The secret cannot be read.
pub fn workload(request: &Request) -> Result<Box<dyn Workload>> {
    Ok(match &request.target {
        Target::Rtt(host) => Box::new(rtt(request, host)),
        Target::Http(url) => Box::new(http(request, url)),
        Target::Redis(url) => Box::new(redis(request, url)?),
        Target::Pg(text) => Box::new(pg(request, text)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_this_host_is_known_by_its_address() {
        for url in ["http://127.0.0.1/", "http://127.0.0.1:8080/x", "http://[::1]:99/"] {
            assert!(matches!(here(url), Ok(LocalServer::Address(ip)) if ip.is_loopback()), "{url}");
        }
        assert!(matches!(here("http://192.0.2.1/"), Ok(LocalServer::No)));
        // An unresolvable name does not say on which host a responder would be needed.
        let why = here("http://no-such-host.invalid/").unwrap_err().to_string();
        assert!(why.contains("does not resolve"), "{why}");
        assert!(matches!(here("http+unix://%2Frun%2Fa.sock/"), Ok(LocalServer::Socket)));
    }
}
