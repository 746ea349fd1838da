//! Flags of `netwright watch`.

use std::{net::IpAddr, path::PathBuf, str::FromStr};

use clap::{Args, ValueEnum};
use model::{CpuSet, Nanos};

use crate::args::OutputArgs;

#[derive(Debug, Args)]
#[command(mut_arg("json", |json| json.help(
    "Write JSON, one object a line for each interval (their schema: netwright schema watch)"
)))]
#[command(after_help = examples!(
    "  # the live view; ? shows its keys, q leaves
  netwright watch
  netwright watch --pid 4711 --nic eth0  # only that process, that NIC
  netwright watch --plain | tee log      # text, an interval after the other
  netwright watch --json --interval 200ms --duration 10s | jq .cpus
  netwright watch --record busy.zst --duration 1m --quiet
  # look at it again, anywhere, without root
  netwright watch --replay busy.zst
  netwright watch --serve                # in a browser; prints the address

Without a terminal it writes text. Without root, or where BPF is not permitted,
it shows what /proc tells and names what is missing. Cheaper: a longer
--interval, --waits never --messages never --drops never, at last --no-bpf."
))]
pub struct WatchArgs {
    /// Length of an interval, 100ms to 1h.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "1s")]
    pub interval: Nanos,
    /// End after this time [default: watch until Ctrl-C].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Nanos>,
    /// Attach no eBPF programs: only data from /proc. NETWRIGHT_BPF=off in the environment does it
    /// for every command.
    #[arg(long)]
    pub no_bpf: bool,
    #[command(flatten)]
    pub when: WhenArgs,
    #[command(flatten)]
    pub only: OnlyArgs,
    #[command(flatten)]
    pub recording: RecordingArgs,
    #[command(flatten)]
    pub browser: BrowserArgs,
    /// Write text instead of the view, also on a terminal.
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub plain: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// When to attach programs that run for every packet or call.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is observed")]
pub struct WhenArgs {
    /// Softirq time, and the tasks that lose time to it. auto: scaled from the observed share of
    /// each interval, polls likewise; always: exact.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub softirq: SoftirqWhen,
    /// Where packets wait, by process.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub waits: ObserveArg,
    /// Sends and receives of processes.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub messages: ObserveArg,
    /// Dropped packets by reason.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub drops: ObserveArg,
    /// Polls of NICs' queues.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub queues: ObserveArg,
}

/// The options that choose which rows are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Show only")]
pub struct OnlyArgs {
    /// This process; its threads are followed, too (repeatable).
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Vec<u32>,
    /// This NIC, such as eth0 (repeatable).
    #[arg(long, value_name = "NAME")]
    pub nic: Vec<String>,
    /// These CPUs, such as 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpu: Option<CpuSet>,
}

/// The options of recordings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recording")]
pub struct RecordingArgs {
    /// Record every interval in full in this file, whatever is shown.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Overwrite an existing recording.
    #[arg(long, requires = "record")]
    pub force: bool,
    /// Recording stops at this size (compressed), watching continues.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = model::units::size)]
    pub record_limit: u64,
    /// Show a recording instead of this host.
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all = [
            "record", "force", "record_limit", "interval", "duration", "no_bpf", "softirq",
            "waits", "messages", "drops", "queues"
        ]
    )]
    pub replay: Option<PathBuf>,
}

/// The view in a browser.
#[derive(Debug, Args)]
#[command(next_help_heading = "In a browser")]
pub struct BrowserArgs {
    /// Serve the live view on this address, port or both, read only [default: 127.0.0.1, port 7472
    /// or a free one]. Beyond loopback a browser needs a secret: the one in --secret-file,
    /// otherwise in NETWRIGHT_SECRET, otherwise a generated one that is printed.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1")]
    pub serve: Option<ServeAddress>,
    /// Require the secret in this file, also on loopback.
    #[arg(long, value_name = "FILE", requires = "serve")]
    pub secret_file: Option<PathBuf>,
}

/// Where to serve browsers: `10.0.0.5`, `10.0.0.5:8080`, `[::1]:8080`, or a port on loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeAddress {
    pub ip: IpAddr,
    /// `None`: the default port, or a free one.
    pub port: Option<u16>,
}

impl FromStr for ServeAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        if let Ok(ip) = bare.parse() {
            return Ok(Self { ip, port: None });
        }
        if let Ok(both) = text.parse::<std::net::SocketAddr>() {
            return Ok(Self { ip: both.ip(), port: Some(both.port()) });
        }
        let port = text.strip_prefix(':').unwrap_or(text).parse().map_err(|_| {
            format!("{text:?} is no address; write 10.0.0.5:8080, [::1]:8080, 10.0.0.5 or 8080")
        })?;
        Ok(Self { ip: std::net::Ipv4Addr::LOCALHOST.into(), port: Some(port) })
    }
}

fn duration(text: &str) -> Result<Nanos, String> {
    let nothing = || "no time to watch; leave --duration out to watch until Ctrl-C".to_owned();
    let number = text.trim().trim_end_matches(|c: char| !c.is_ascii_digit());
    if !number.is_empty() && number.chars().all(|c| matches!(c, '0' | '.')) {
        return Err(nothing());
    }
    model::seconds(text).map_err(|e| e.to_string())
}

fn cpus(text: &str) -> Result<CpuSet, String> {
    let set: CpuSet = text.parse().map_err(|e: model::cpuset::NotACpulist| e.to_string())?;
    if set.is_empty() { Err("no CPU is named; write 0-3,8".into()) } else { Ok(set) }
}

/// Share of an interval in which softirqs are observed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SoftirqWhen {
    /// All the time: exact.
    Always,
    /// For a share of each interval that costs no CPU more than 0.2% of its time.
    Auto,
}

impl From<SoftirqWhen> for probe::watch::ObserveWhen {
    fn from(when: SoftirqWhen) -> Self {
        match when {
            SoftirqWhen::Always => Self::Always,
            SoftirqWhen::Auto => Self::Auto,
        }
    }
}

/// Share of an interval.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ObserveArg {
    /// For a share of each interval that costs no CPU more than 0.2% of its time.
    Auto,
    /// All the time, whatever it costs.
    Always,
    /// Not at all: attach no program for it.
    Never,
}

impl From<ObserveArg> for probe::watch::ObserveWhen {
    fn from(when: ObserveArg) -> Self {
        match when {
            ObserveArg::Auto => Self::Auto,
            ObserveArg::Always => Self::Always,
            ObserveArg::Never => Self::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_a_port_or_both() {
        let of = |text: &str| text.parse::<ServeAddress>().map(|a| (a.ip.to_string(), a.port));
        for (text, ip, port) in [
            ("10.0.0.5", "10.0.0.5", None),
            ("10.0.0.5:8080", "10.0.0.5", Some(8080)),
            ("8080", "127.0.0.1", Some(8080)),
            (":0", "127.0.0.1", Some(0)),
            ("::1", "::1", None),
            ("[::1]", "::1", None),
            ("[fd00::5]:80", "fd00::5", Some(80)),
        ] {
            assert_eq!(of(text), Ok((ip.to_owned(), port)), "{text}");
        }
        for text in ["", "localhost", "70000", "10.0.0.5:", "10.0.0:80", "-1"] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_bare_duration_is_seconds_and_none_at_all_is_refused() {
        for (text, ns) in [("1", 1_000_000_000), ("250ms", 250_000_000), ("2m", 120_000_000_000)] {
            assert_eq!(duration(text), Ok(Nanos(ns)), "{text}");
        }
        for text in ["0", "0s", "0.0ms"] {
            assert!(duration(text).unwrap_err().contains("no time to watch"), "{text}");
        }
        assert!(duration("soon").is_err());
    }
}
