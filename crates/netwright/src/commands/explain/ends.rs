//! From what was typed to the two things that take turns: the workload and the network alone.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

use model::{
    Nanos,
    explain::Exchange,
    measure::{
        Common, Engine, FarProgram, HttpSpec, Pin, RttSpec, SocketOptions, TlsSpec, Transport,
    },
};
use traffic::Secret;

use super::{args::ExplainArgs, http::Http, responder::Responder, rtt::Rtt, workload::Workload};
use crate::{commands::measure, exit::Failure};

/// When a request counts as failed.
const TIMEOUT: Nanos = Nanos(5_000_000_000);

/// What the target names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A far end of ours: `HOST[:PORT]`.
    Rtt(String),
    /// A URL.
    Http(String),
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
            Some(("http", rest)) if !rest.is_empty() => Ok(Self::Http(text.into())),
            Some(("https", _)) => Err(Failure::Usage(
                "https is not explained yet (its handshake and cipher are no network); name a plain http:// URL".into(),
            )),
            _ => Err(Failure::Usage(format!(
                "{text:?} is no target; write rtt://HOST[:PORT] or http://HOST[:PORT]/PATH"
            ))),
        }
    }
}

fn common(args: &ExplainArgs, target: String, far: FarProgram) -> Common {
    let wait = measure::wait(args.wait);
    let pin = measure::pin(&args.cpu, args.no_pin);
    let peer_pin = match far {
        // Where a server of another kind runs is the scheduler's choice, and so its twin's.
        FarProgram::Server if args.peer_cpu.is_none() => Pin::No,
        _ => measure::pin(&args.peer_cpu, args.no_pin),
    };
    Common {
        target,
        far,
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
        longest_ns: args.round,
    }
}

/// A workload of a far end of ours.
pub fn rtt(args: &ExplainArgs, host: &str, secret: Option<Secret>) -> Rtt {
    let response = args.response.unwrap_or(args.request).0;
    Rtt {
        spec: RttSpec {
            common: common(args, host.into(), FarProgram::Netwright),
            request_bytes: vec![args.request.0],
            response_bytes: vec![response],
            flows: vec![1],
            outstanding: 1,
            rate_per_s: None,
            timeout_ns: TIMEOUT,
            wait_split: false,
            engine: Engine::Auto,
            service_ns: None,
        },
        secret,
    }
}

/// A workload of an HTTP server.
pub fn http(args: &ExplainArgs, url: &str) -> Http {
    Http {
        spec: HttpSpec {
            common: common(args, url.into(), FarProgram::Server),
            urls: vec![url.into()],
            method: "GET".into(),
            headers: args.header.clone(),
            body: None,
            body_file: None,
            flows: vec![1],
            pipeline: 1,
            new_connections: false,
            rate_per_s: None,
            tls: TlsSpec::default(),
            responder: None,
            requests: None,
            timeout_ns: TIMEOUT,
        },
    }
}

/// The network alone: the same exchange with a responder that answers at once.
pub fn network(
    args: &ExplainArgs,
    target: &Target,
    responder: &Responder,
    exchange: Exchange,
) -> Rtt {
    let mut alone = rtt(args, &responder.target, responder.secret.clone());
    alone.spec.service_ns = Some(Nanos(0));
    alone.spec.request_bytes = vec![exchange.request_bytes.max(1)];
    alone.spec.response_bytes = vec![exchange.response_bytes.max(1)];
    if let Target::Http(url) = target {
        let Common { peer_pin, .. } = common(args, url.clone(), FarProgram::Server);
        alone.spec.common.peer_pin = peer_pin;
        // A call for each message, as servers and the HTTP client do it.
        alone.spec.engine = Engine::Epoll;
    }
    alone
}

/// The responder for a target: the target itself, as given, or one of ours beside a server of
/// this host.
///
/// # Errors
/// The server is elsewhere and none is given, or none starts.
pub fn responder(args: &ExplainArgs, target: &Target) -> Result<Responder, Failure> {
    let secret = || measure::secret(&args.secret);
    match (target, &args.responder) {
        (_, Some(given)) => Ok(Responder::given(given.clone(), secret()?)),
        (Target::Rtt(host), None) => Ok(Responder::given(host.clone(), secret()?)),
        (Target::Http(url), None) => match here(url) {
            Some(ip) => Responder::start(&ip.to_string()),
            None => Err(Failure::Usage(
                "the server is on another host: run `netwright serve` there and name it with \
                 --responder HOST"
                    .into(),
            )),
        },
    }
}

/// The URL's address, where it is one of this network namespace's.
fn here(url: &str) -> Option<IpAddr> {
    let host = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    let named = match host.ends_with(']') || !host.contains(':') {
        true => format!("{host}:80"),
        false => host.to_owned(),
    };
    let addresses = named.to_socket_addrs().ok()?;
    let ours = |ip: &IpAddr| ip.is_loopback() || UdpSocket::bind(SocketAddr::new(*ip, 0)).is_ok();
    addresses.map(|a| a.ip()).find(ours)
}

/// The workload of a target.
///
/// # Errors
/// No secret to be read.
pub fn workload(args: &ExplainArgs, target: &Target) -> Result<Box<dyn Workload>, Failure> {
    Ok(match target {
        Target::Rtt(host) => Box::new(rtt(args, host, measure::secret(&args.secret)?)),
        Target::Http(url) => Box::new(http(args, url)),
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
        for wrong in ["db1", "rtt://", "https://web1/", "ftp://x", ""] {
            assert!(matches!(Target::parse(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn a_server_of_this_host_is_known_by_its_address() {
        for url in ["http://127.0.0.1/", "http://127.0.0.1:8080/x", "http://[::1]:99/"] {
            assert!(here(url).is_some_and(|ip| ip.is_loopback()), "{url}");
        }
        assert_eq!(here("http://192.0.2.1/"), None);
    }
}
