//! Flags of `netwright lint`.

use std::path::PathBuf;

use clap::Args;
use model::{BitsPerSec, Bytes};

use crate::args::{OutputArgs, SourceArgs};

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright lint /etc/sysctl.conf /etc/sysctl.d
  netwright lint /usr/lib/tuned/network-throughput/tuned.conf
  netwright lint deploy/*.yml rc.local Dockerfile
  netwright lint --root host.tar.zst sysctl.conf     # for someone else's host
  netwright lint --kernel 6.18 --memory 64GiB sysctl.conf   # before an upgrade
  netwright lint --sarif sysctl.conf > lint.sarif    # for a code review
  netwright lint --fix sysctl.conf | patch -p0       # lint writes nothing",
    "a line is harmful or dangerous, or its value is in the wrong unit"
))]
pub struct LintArgs {
    /// Files: sysctl.conf, sysctl.d, a tuned profile, a script, an Ansible playbook, a Dockerfile, a
    /// Kubernetes manifest. A folder stands for its *.conf files, - for standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Judge for a kernel of this version, such as 6.12.
    #[arg(long, value_name = "VERSION", help_heading = "Another host")]
    pub kernel: Option<String>,
    /// Judge for this much memory, such as 64GiB.
    #[arg(long, value_name = "SIZE", help_heading = "Another host")]
    pub memory: Option<Bytes>,
    /// Judge for a NIC of this speed, such as 25Gbit.
    #[arg(long, value_name = "RATE", help_heading = "Another host")]
    pub nic_speed: Option<BitsPerSec>,
    /// Write SARIF 2.1.0, for a code review.
    #[arg(long, help_heading = "Output", conflicts_with_all = ["json", "fix"])]
    pub sarif: bool,
    /// Print the files as they should be, as a diff for `patch -p0` (of absolute names `patch -p0 -d /`).
    /// Writes nothing.
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub fix: bool,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}
