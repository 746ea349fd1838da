//! Flags of `netwright serve`.

use std::{ops::RangeInclusive, path::PathBuf, str::FromStr};

use clap::Args;
use model::{Bytes, CpuSet, Nanos};

use crate::args::TalkArgs;

#[derive(Debug, Args)]
#[command(mut_arg("verbose", |a| a.help("Print each test that begins and each refused client")), after_help = examples!(
    "  # on loopback, for anybody here
  netwright serve
  # prints a one-time secret for the client
  netwright serve --bind 10.0.0.5
  NETWRIGHT_SECRET=… netwright serve --bind 0.0.0.0 --bind ::
  netwright serve --bind 10.0.0.5 --data-ports 7480-7499   # for a firewall
  netwright serve --unix /run/netwright.sock
  # for stock iperf3 and qperf clients of this host too; beyond it, with --open
  netwright serve --iperf3 --qperf

It can only send, receive and report. Ctrl-C ends it."
))]
pub struct ServeArgs {
    /// Listen on this address; repeatable [default: 127.0.0.1 and ::1].
    #[arg(long, value_name = "ADDRESS")]
    pub bind: Vec<std::net::IpAddr>,
    /// The control port; 0 lets the kernel choose.
    #[arg(long, value_name = "PORT", default_value_t = traffic::PORT)]
    pub port: u16,
    /// Listen on a Unix socket too (alone, when nothing else is asked for).
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// Take the data ports, TCP and UDP, from this range [default: the kernel chooses].
    #[arg(long, value_name = "FIRST-LAST")]
    pub data_ports: Option<PortRange>,
    /// Require the secret in this file; otherwise the one in NETWRIGHT_SECRET; otherwise, beyond
    /// loopback, a generated one that is printed.
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    pub secret_file: Option<PathBuf>,
    /// Require no secret beyond loopback: everybody who can reach this host can use the server.
    #[arg(long)]
    pub open: bool,
    /// Also serve stock iperf3 clients, on this port [default: 5201]; beyond loopback with --open.
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "5201")]
    pub iperf3: Option<u16>,
    /// Also serve stock qperf clients, on this port [default: 19765]; beyond loopback with --open.
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "19765")]
    pub qperf: Option<u16>,
    /// Run the threads on these CPUs when the client does not specify CPUs [default: chosen].
    #[arg(long, value_name = "LIST", conflicts_with = "no_pin")]
    pub cpu: Option<CpuSet>,
    /// Let the scheduler place the threads when the client does not specify CPUs.
    #[arg(long)]
    pub no_pin: bool,
    /// Busy-loop this long before each response, to simulate a known service time.
    #[arg(long, value_name = "DURATION", default_value = "0ns")]
    pub service_time: Nanos,
    /// Add softirq time by context to the evidence, by eBPF (needs root).
    #[arg(long)]
    pub softirq: bool,
    /// Maximum of concurrent tests.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Limits")]
    pub max_tests: u32,
    /// Data connections of one test.
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Limits")]
    pub max_flows: u32,
    /// Memory for all tests together, buffers in the kernel not counted.
    #[arg(long, value_name = "SIZE", default_value = "512M", help_heading = "Limits")]
    pub max_memory: Bytes,
    /// The longest time that a client's test may take.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "24h", help_heading = "Limits")]
    pub max_duration: Nanos,
    /// How long a client may be silent between tests.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "30s", help_heading = "Limits")]
    pub idle: Nanos,
    /// Write events as JSON, one object per line, to standard output.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// Parses a range of ports: `7480-7499`, or one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortRange(pub RangeInclusive<u16>);

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no range of ports; write 7480-7499");
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |p: &str| p.trim().parse::<u16>().map_err(|_| wrong());
        let (first, last) = (port(first)?, port(last)?);
        if first == 0 || first > last {
            return Err(wrong());
        }
        Ok(Self(first..=last))
    }
}
