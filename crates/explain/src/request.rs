//! The checked request: what to explain, and how.

use std::{collections::BTreeMap, path::PathBuf, str::FromStr};

use model::{
    Nanos,
    measure::{PgProtocol, PgScript, Pin, TlsSpec, Wait},
};
use traffic::{Error, Result, Secret};
use workloads::{RedisUrl, Url};

/// A request. Only the workload options of the target's kind apply.
#[derive(Debug)]
pub struct Request {
    pub target: Target,
    /// The target as typed, possibly with a password.
    pub url: String,
    /// A server on the server's host that answers at once; `None`: we start one on this host.
    pub responder: Option<String>,
    /// The secret of responders and `rtt` servers.
    pub secret: Option<Secret>,
    /// This program's path, to start a responder.
    pub ours: PathBuf,
    /// Bytes of an `rtt` request.
    pub request_bytes: u64,
    pub response_bytes: u64,
    /// Header lines of HTTP requests: `Name: value`.
    pub headers: Vec<String>,
    pub tls: TlsSpec,
    /// Redis commands, one at least.
    pub commands: Vec<String>,
    /// The number of keys that Redis commands draw from.
    pub keys: u64,
    /// The length of a Redis value, bytes.
    pub data_bytes: u64,
    /// The Redis password for a URL without one.
    pub redis_password: Option<String>,
    /// PostgreSQL's transactions, one at least.
    pub scripts: Vec<PgScript>,
    pub protocol: PgProtocol,
    pub scale: Option<u32>,
    pub variables: BTreeMap<String, String>,
    /// Numbers of clients, one at least: the first is explained, all are predicted.
    pub flows: Vec<u32>,
    /// Threads of the clients.
    pub threads: u32,
    /// Other paths to predict for.
    pub paths: Vec<Path>,
    /// CPUs of the server to predict for.
    pub cores: Option<u32>,
    /// Channels of the far host's NIC to predict for.
    pub channels: Option<Vec<u32>>,
    /// Whether to verify predictions by measurements.
    pub verify: bool,
    /// How long workload and network alternate,
    pub duration: Nanos,
    /// and how long at most, until the components add up.
    pub longest: Nanos,
    /// The measured part of each turn.
    pub round: Nanos,
    pub wait: Wait,
    pub pin: Pin,
    pub peer_pin: Pin,
}

/// The kind of target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A server of ours: `HOST[:PORT]`.
    Rtt(String),
    Http(String),
    /// A connection string, without its password.
    Redis(String),
    /// A connection string, without the password that may have stood in it.
    Pg(String),
}

impl Target {
    /// The target as parsed.
    ///
    /// # Errors
    /// It has none of the supported forms.
    pub fn parse(text: &str) -> Result<Self> {
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
                Ok(Self::Pg(workloads::pg::without_password(text)?.0))
            }
            _ => Err(Error::Usage(format!(
                "{text:?} is no target; write rtt://HOST[:PORT], http://HOST[:PORT]/PATH or https://…, \
                 http+unix://%2Frun%2Fapp.sock/PATH, redis://HOST[:PORT] or rediss://…, or \
                 pg://USER@HOST/DATABASE, postgres:// and postgresql:// being the same"
            ))),
        }
    }

    /// The target without its password.
    pub fn shown(&self) -> String {
        match self {
            Self::Rtt(host) => format!("rtt://{host}"),
            Self::Http(text) | Self::Redis(text) | Self::Pg(text) => text.clone(),
        }
    }
}

/// Another path to predict for, `--path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Path {
    /// `rtt=80us`: a path with this round trip.
    Rtt(Nanos),
    /// `host=HOST[:PORT]`: the path to a server there, which is measured.
    Host(String),
}

impl Path {
    /// The path as typed.
    pub fn name(&self) -> String {
        match self {
            Self::Rtt(rtt) => format!("rtt={rtt}"),
            Self::Host(host) => format!("host={host}"),
        }
    }
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let text = text.trim();
        if let Some(host) = text.strip_prefix("host=").filter(|h| !h.is_empty()) {
            return Ok(Self::Host(host.into()));
        }
        let value = text.strip_prefix("rtt=");
        let value =
            value.ok_or_else(|| format!("{text:?} is no path; write rtt=80us or host=HOST"))?;
        if value.parse::<f64>().is_ok() {
            return Err(format!("rtt={value}: of what? write rtt={value}us, or rtt={value}ms"));
        }
        let rtt: Nanos = value.parse().map_err(|e| format!("{e}"))?;
        match rtt.0 {
            0 => Err("a round trip of 0 is no network; that is always predicted".into()),
            1..=60_000_000_000 => Ok(Self::Rtt(rtt)),
            _ => Err("a round trip of at most 60s".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_recognised_by_their_scheme() {
        assert_eq!(Target::parse("rtt://db1:7471/").ok(), Some(Target::Rtt("db1:7471".into())));
        let url = "http://web1:8080/a?b";
        assert_eq!(Target::parse(url).ok(), Some(Target::Http(url.into())));
        let plain = Target::Pg("pg://app@db1/shop".into());
        assert_eq!(Target::parse("pg://app:secret@db1/shop").ok(), Some(plain));
        let plain = Target::Redis("redis://app@c1:6379/2".into());
        assert_eq!(Target::parse("redis://app:secret@c1/2").ok(), Some(plain));
        for wrong in ["db1", "rtt://", "https:///x", "ftp://x", ""] {
            assert!(matches!(Target::parse(wrong), Err(Error::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn a_path_is_a_round_trip_with_its_unit() {
        assert_eq!("rtt=80us".parse(), Ok(Path::Rtt(Nanos(80_000))));
        assert_eq!("host=db1:7471".parse(), Ok(Path::Host("db1:7471".into())));
        let why = "rtt=80".parse::<Path>().unwrap_err();
        assert!(why.contains("rtt=80us"), "{why}");
        for wrong in ["80us", "rtt=80", "rtt=0ms", "rtt=2h", "rtt=", "host=", "delay=1ms"] {
            assert!(wrong.parse::<Path>().is_err(), "{wrong}");
        }
    }
}
