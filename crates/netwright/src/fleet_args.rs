//! The flags of `doctor --fleet`.

use std::path::PathBuf;

use clap::Args;

use crate::severity_arg::SeverityArg;

/// Which hosts, and how to ask for them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fleet")]
pub struct FleetArgs {
    /// Ask a Prometheus which hosts are limited by what. It scrapes their `netwright export`. The URL is
    /// `http://HOST[:PORT][/PREFIX]`, or https.
    #[arg(long, value_name = "URL", conflicts_with_all = [
        "window", "goal", "no_bpf", "root", "since", "peer", "no_load", "pid", "name", "port", "unit",
        "container", "tag",
    ])]
    pub fleet: Option<String>,
    /// Only hosts with these labels, as PromQL has them: `'dc="ams",job="netwright"'`.
    #[arg(long = "match", value_name = "LABELS", requires = "fleet")]
    pub matchers: Option<String>,
    /// Leave out findings that are less severe.
    #[arg(
        long,
        value_enum,
        value_name = "SEVERITY",
        default_value = "warning",
        requires = "fleet"
    )]
    pub min_severity: SeverityArg,
    /// List at most this many hosts, causes and changes; `-v` lists all.
    #[arg(long, value_name = "NUMBER", default_value_t = 10, requires = "fleet",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    /// The Prometheus' bearer token, or `USER:PASSWORD`, from this file.
    #[arg(long, value_name = "FILE", requires = "fleet")]
    pub fleet_secret_file: Option<PathBuf>,
    /// PEM file with the certificate authorities to trust instead of the system's.
    #[arg(long, value_name = "FILE", requires = "fleet", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate: whoever intercepts the connection reads the secret.
    #[arg(long, requires = "fleet")]
    pub insecure: bool,
}
