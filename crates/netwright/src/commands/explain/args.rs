//! Flags of `netwright explain`.

use clap::{Arg, Args};
use explain::request::Path;
use model::{CpuSet, Nanos};

use crate::{
    args::OutputArgs,
    commands::measure::{
        counts::{Counts, OneSize, within},
        flags::{
            FlowsArgs, HeaderArgs, PlacementArgs, ScriptArgs, SecretArgs, TrustArgs, VariableArgs,
        },
    },
    record_args::RecordArgs,
};

const HEADER: &str = "http: a header line of each request: 'Name: value'; repeat for more";
const CA: &str = "https, rediss: trust the certificates in this PEM file instead of the system's";
const SCRIPT: &str = "pg: the transaction; tpcb-like, simple-update, select-only, select1, or a \
                      script file; repeat for more, NAME@3 for a weight [default: select-only, \
                      which changes nothing]";
const SCALE: &str = "pg: the scripts' :scale [default: the rows of pgbench_branches]";
const FLOWS: &str = "Concurrent connections, each a client: 1 or a list. The first is explained, \
                     all are predicted";

/// Takes over a flag of a measurement, with help for `explain`.
fn workload(arg: Arg, help: &'static str) -> Arg {
    arg.help(help).help_heading("Workload")
}

#[derive(Debug, Args)]
#[command(
    mut_arg("header", |a| workload(a, HEADER)),
    mut_arg("ca", |a| workload(a, CA)),
    mut_arg("insecure", |a| workload(a, "https, rediss: do not check the server's certificate")),
    mut_arg("script", |a| workload(a, SCRIPT)),
    mut_arg("protocol", |a| workload(a, "pg: protocol mode of the statements, as pgbench's -M")),
    mut_arg("scale", |a| workload(a, SCALE)),
    mut_arg("define", |a| workload(a, "pg: a variable for the scripts: NAME=VALUE; repeat for more")),
    mut_arg("flows", |a| workload(a, FLOWS).visible_alias("clients")),
    mut_arg("threads", |a| workload(a, "Threads of the clients")),
    mut_arg("wait", |a| a.help("Wait mode of the client's threads and of the responder's")),
    mut_arg("cpu", |a| a.help("Pin the client's threads to these CPUs: 0, 2-3 [default: chosen]")),
    after_help = examples!(
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
  netwright explain --pid 4711 --duration 30s",
        "inconclusive: the components do not add up to what was measured; run longer
     (--duration, --max-duration) or on a quieter host"
)
)]
pub struct ExplainArgs {
    /// The workload, `rtt://`, `http://`, `redis://` or `pg://`; in full
    /// `rtt://HOST[:PORT]`, `http://HOST[:PORT]/PATH` or `https://…`,
    /// `http+unix://%2Frun%2Fapp.sock/PATH` over a Unix socket, `redis://HOST[:PORT]`, or
    /// `pg://USER@HOST:PORT/DATABASE`; missing parts are taken from the environment (PGHOST,
    /// PGUSER, PGPASSWORD…).
    #[arg(default_value = "", hide_default_value = true)]
    pub target: String,
    #[command(flatten)]
    pub passive: PassiveArgs,
    /// `netwright serve` on the server's host; `HOST[:PORT]`, the network is measured with it [default:
    /// started automatically where the server is on this host].
    #[arg(long, value_name = "TARGET", help_heading = "Server")]
    pub responder: Option<String>,
    #[command(flatten)]
    pub secret: SecretArgs,
    /// rtt: size of the request.
    #[arg(long, value_name = "SIZE", default_value = "64", help_heading = "Workload")]
    pub request: OneSize,
    /// rtt: size of the response [default: as the request].
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub response: Option<OneSize>,
    #[command(flatten)]
    pub header: HeaderArgs,
    #[command(flatten)]
    pub trust: TrustArgs,
    /// redis: the command, as for `measure redis`; repeat for more, which are sent cyclically
    /// [default: GET key:{key}].
    #[arg(long, value_name = "COMMAND", help_heading = "Workload")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub script: ScriptArgs,
    #[command(flatten)]
    pub variables: VariableArgs,
    #[command(flatten)]
    pub flows: FlowsArgs,
    /// Predict for another path, such as rtt=80us; that is a path with that round trip; `host=HOST[:PORT]` is the
    /// path to a `netwright serve` on that host, measured interleaved with the network alone on
    /// this path; repeat for more.
    #[arg(long, value_name = "PATH", help_heading = "Prediction")]
    pub path: Vec<Path>,
    /// Predict for a server with this number of CPUs.
    #[arg(long, value_name = "N", value_parser = within::<1, 1024>, help_heading = "Prediction")]
    pub cores: Option<u32>,
    /// Predict for another host with this number of NIC channels, 1 or a list, each on its own CPU:
    /// from the CPU time of interrupts and softirqs while the network was measured alone.
    #[arg(long, value_name = "COUNTS", help_heading = "Prediction")]
    pub channels: Option<Counts>,
    /// Measure the predictions for this path too; with numbers of clients between, and report the
    /// error.
    #[arg(long, help_heading = "Prediction")]
    pub verify: bool,
    /// Time to measure; workload and network interleaved, or a server that is observed.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "10s", help_heading = "Time")]
    pub duration: Nanos,
    /// Continue until the components add up, at most this long [default: three times --duration].
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", help_heading = "Time")]
    pub max_duration: Option<Nanos>,
    /// The measured part of each round.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "200ms", help_heading = "Time")]
    pub round: Nanos,
    #[command(flatten)]
    pub placement: PlacementArgs,
    /// Pin the responder's threads to these of its CPUs; for a server other than the responder to
    /// those that it runs on.
    #[arg(
        long,
        value_name = "LIST",
        conflicts_with = "no_pin",
        help_heading = "Placement and waiting"
    )]
    pub peer_cpu: Option<CpuSet>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub keep: RecordArgs,
}

impl ExplainArgs {
    /// How long workload and network take turns at most.
    pub fn longest(&self) -> Nanos {
        self.max_duration.unwrap_or(Nanos(self.duration.0.saturating_mul(3)))
    }
}

/// A live server instead of a workload.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "A live server: nothing is sent")]
pub struct PassiveArgs {
    /// The server on this TCP port of this host; in any of its network namespaces; repeat for more.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), conflicts_with_all = ACTIVE)]
    pub port: Vec<u16>,
    /// This process and its descendants; with --port, only that port; repeat for more.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ACTIVE)]
    pub pid: Vec<u32>,
    /// Observe every call at any cost [default: at most 1% of the time of each CPU].
    #[arg(long, conflicts_with_all = ACTIVE)]
    pub always: bool,
}

/// Flags that apply only where netwright sends the traffic; they conflict with `--port` and
/// `--pid`.
const ACTIVE: [&str; 21] = [
    "target",
    "responder",
    "secret_file",
    "request",
    "response",
    "header",
    "script",
    "protocol",
    "scale",
    "define",
    "flows",
    "threads",
    "path",
    "cores",
    "channels",
    "verify",
    "round",
    "wait",
    "cpu",
    "peer_cpu",
    "no_pin",
];

impl PassiveArgs {
    /// Whether a running server is observed (`--port`, `--pid`).
    pub fn is_asked_for(&self) -> bool {
        !self.port.is_empty() || !self.pid.is_empty()
    }
}
