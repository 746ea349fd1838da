//! What was typed after `explain`.

use std::str::FromStr;

use clap::Args;
use model::{CpuSet, Nanos};

use super::passive::PassiveArgs;

use crate::{
    args::OutputArgs,
    commands::measure::{
        args::{SecretArgs, WaitArg},
        counts::{Counts, OneSize, within},
        pg::{ProtocolArg, variable},
    },
};

/// `netwright explain`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  # a server with a service time of its own
  netwright explain rtt://db1
  netwright explain http://localhost/ --flows 8        # a server on this host
  # `netwright serve` runs beside it
  netwright explain http://web1/ --responder web1
  netwright explain http+unix://%2Frun%2Fapp.sock/       # over a Unix socket
  netwright explain http://localhost/ --path rtt=80us --path rtt=1ms \\
      --flows 1,8,64
  netwright explain http://localhost/ --flows 1,8,64 --verify
  netwright explain pg://postgres@127.0.0.1/bench --script tpcb-like \\
      --protocol prepared --path rtt=500us
  netwright explain redis://localhost --path rtt=80us --flows 1,8,64
  netwright explain rtt://db1 --json | jq .components
  # a server that runs; sends nothing, needs root
  netwright explain --port 5432
  netwright explain --pid 4711 --duration 30s

Exit code 1 also says that the parts do not add up: inconclusive."
))]
pub struct ExplainArgs {
    /// The workload: `rtt://HOST[:PORT]`, `http://HOST[:PORT]/PATH` or `https://…`,
    /// `http+unix://%2Frun%2Fapp.sock/PATH` over a Unix socket, `redis://HOST[:PORT]`, or
    /// `pg://USER@HOST:PORT/DATABASE`, of which what is missing is taken from the environment
    /// (PGHOST, PGUSER, PGPASSWORD…).
    #[arg(default_value = "", hide_default_value = true)]
    pub target: String,
    #[command(flatten)]
    pub passive: PassiveArgs,
    /// The server that the network is measured with, `netwright serve` on the server's host
    /// [default: started by itself where the server is on this host].
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Server")]
    pub responder: Option<String>,
    #[command(flatten)]
    pub secret: SecretArgs,
    /// rtt: size of the request.
    #[arg(long, value_name = "SIZE", default_value = "64", help_heading = "Workload")]
    pub request: OneSize,
    /// rtt: size of the response [default: as the request].
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub response: Option<OneSize>,
    /// http: a header line of each request: 'Name: value'; again for more.
    #[arg(long, short = 'H', value_name = "HEADER", help_heading = "Workload")]
    pub header: Vec<String>,
    /// https, rediss: trust the certificates in this PEM file instead of the system's.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = "Workload")]
    pub ca: Option<String>,
    /// https, rediss: do not check the server's certificate.
    #[arg(long, help_heading = "Workload")]
    pub insecure: bool,
    /// redis: the command, as of `measure redis`; again for more, in turn [default: GET key:{key}].
    #[arg(long, value_name = "COMMAND", help_heading = "Workload")]
    pub command: Vec<String>,
    /// pg: the transaction: tpcb-like, simple-update, select-only, select1, or a script file; again
    /// for more, NAME@3 for a weight [default: select-only, which changes nothing].
    #[arg(long, short = 'f', value_name = "SCRIPT", help_heading = "Workload")]
    pub script: Vec<String>,
    /// pg: how statements are sent, as pgbench's -M.
    #[arg(
        long,
        short = 'M',
        value_enum,
        value_name = "PROTOCOL",
        default_value = "simple",
        help_heading = "Workload"
    )]
    pub protocol: ProtocolArg,
    /// pg: the scripts' :scale [default: the rows of pgbench_branches].
    #[arg(long, short = 's', value_name = "N", value_parser = within::<1, 100_000>, help_heading = "Workload")]
    pub scale: Option<u32>,
    /// pg: a variable for the scripts: NAME=VALUE; again for more.
    #[arg(long, short = 'D', value_name = "NAME=VALUE", value_parser = variable, help_heading = "Workload")]
    pub define: Vec<(String, String)>,
    /// Connections at once, each a client: 1 or a list. The first is explained, all are predicted.
    #[arg(
        long,
        visible_alias = "clients",
        value_name = "COUNTS",
        default_value = "1",
        help_heading = "Workload"
    )]
    pub flows: Counts,
    /// Threads of the clients.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within::<1, 256>, help_heading = "Workload")]
    pub threads: u32,
    /// Predict for another path: rtt=80us is one whose round trip takes that; `host=HOST[:PORT]` is
    /// that to a `netwright serve` there, which is measured interleaved with the network alone here;
    /// again for more.
    #[arg(long, value_name = "rtt=DURATION|host=HOST", help_heading = "Prediction")]
    pub path: Vec<PathArg>,
    /// Predict for a server with so many CPUs.
    #[arg(long, value_name = "N", value_parser = within::<1, 1024>, help_heading = "Prediction")]
    pub cores: Option<u32>,
    /// Predict for a far host whose NIC has so many channels, 1 or a list, each on a CPU of its own:
    /// from the CPU time of its interrupts and softirqs while the network was measured alone.
    #[arg(long, value_name = "COUNTS", help_heading = "Prediction")]
    pub channels: Option<Counts>,
    /// Measure what was predicted for this path, and numbers of clients between, and say how far
    /// off it was.
    #[arg(long, help_heading = "Prediction")]
    pub verify: bool,
    /// How long the workload and the network take turns, or a server is watched.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "10s", help_heading = "Time")]
    pub duration: Nanos,
    /// Measure on until the parts add up, at most so long [default: three times --duration].
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", help_heading = "Time")]
    pub max_duration: Option<Nanos>,
    /// The measured part of each turn.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "200ms", help_heading = "Time")]
    pub round: Nanos,
    /// How the threads here, and those of the responder, wait for data.
    #[arg(
        long,
        value_enum,
        value_name = "WAIT",
        default_value = "block",
        help_heading = "Placement and waiting"
    )]
    pub wait: WaitArg,
    /// Pin the threads here to these CPUs: 0, 2-3 [default: chosen].
    #[arg(
        long,
        value_name = "LIST",
        conflicts_with = "no_pin",
        help_heading = "Placement and waiting"
    )]
    pub cpu: Option<CpuSet>,
    /// Pin the responder's threads to these of its CPUs; for a server other than the responder to
    /// those that it runs on.
    #[arg(
        long,
        value_name = "LIST",
        conflicts_with = "no_pin",
        help_heading = "Placement and waiting"
    )]
    pub peer_cpu: Option<CpuSet>,
    /// Let the scheduler place the threads.
    #[arg(long, help_heading = "Placement and waiting")]
    pub no_pin: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl ExplainArgs {
    /// How long workload and network take turns at most.
    pub fn longest(&self) -> Nanos {
        self.max_duration.unwrap_or(Nanos(self.duration.0.saturating_mul(3)))
    }
}

/// Another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathArg {
    /// `rtt=80us`: its round trip.
    Rtt(Nanos),
    /// `host=HOST[:PORT]`: the path to a server.
    Host(String),
}

impl PathArg {
    /// As it was typed.
    pub fn name(&self) -> String {
        match self {
            Self::Rtt(rtt) => format!("rtt={rtt}"),
            Self::Host(host) => format!("host={host}"),
        }
    }
}

impl FromStr for PathArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
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
    fn a_path_is_a_round_trip_with_its_unit() {
        assert_eq!("rtt=80us".parse(), Ok(PathArg::Rtt(Nanos(80_000))));
        assert_eq!("host=db1:7471".parse(), Ok(PathArg::Host("db1:7471".into())));
        let why = "rtt=80".parse::<PathArg>().unwrap_err();
        assert!(why.contains("rtt=80us"), "{why}");
        for wrong in ["80us", "rtt=80", "rtt=0ms", "rtt=2h", "rtt=", "host=", "delay=1ms"] {
            assert!(wrong.parse::<PathArg>().is_err(), "{wrong}");
        }
    }
}
