//! The verdict of one line. Pure: facts in, verdict out. Values are judged by the table of settings
//! (`model::sysctls`) and by the knobs of `tune`; here is only what a file adds to that.

mod command;
mod depends;
mod nic;
pub mod sysctl;

use model::{
    Facts, Reading,
    lint::{LineVerdict, LintHost, LintLine, Place, SetLine, SetMode},
};

use crate::order::Placed;

/// What lines are judged for.
pub struct Context<'a> {
    pub facts: &'a Facts,
    /// Major and minor of the kernel.
    pub kernel: Option<(u32, u32)>,
    /// Whether its vendor carries later changes back, so that the version says only "at least".
    pub backports: bool,
    pub nic_speed_bps: Option<u64>,
}

impl<'a> Context<'a> {
    pub fn new(facts: &'a Facts, host: &LintHost) -> Self {
        let release = host.kernel.known();
        Self {
            facts,
            backports: release.is_some_and(|k| probe::facts::sysctl::carries_changes_back(k)),
            kernel: release.and_then(|k| model::host::kernel_version(k)),
            nic_speed_bps: host.nic_speed_bps.known().map(|s| s.0),
        }
    }
}

/// A verdict before it is tied to its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    pub verdict: LineVerdict,
    pub why: String,
    pub find_out: String,
    pub source: String,
    pub default: Reading<String>,
    pub unit: String,
}

impl Judged {
    pub fn new(verdict: LineVerdict, why: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            verdict,
            why: why.into(),
            find_out: String::new(),
            source: source.into(),
            default: Reading::absent("no default is known"),
            unit: String::new(),
        }
    }

    pub fn unknown(why: impl Into<String>) -> Self {
        Self::new(LineVerdict::Unknown, why, "")
    }
}

/// Judges a line of a file among all lines.
pub fn line(context: &Context<'_>, file: &str, set: &SetLine, all: &[Placed<'_>]) -> LintLine {
    let mut judged = in_its_place(context, set, value(context, set, all));
    if set.mode == SetMode::Sometimes && judged.verdict != LineVerdict::Unknown {
        judged.why = format!("only on hosts that the section's condition names: {}", judged.why);
    }
    LintLine {
        file: file.to_owned(),
        line: set.line,
        place: set.place,
        setting: set.setting.clone(),
        value: crate::shown::shown(set).to_owned(),
        verdict: judged.verdict,
        why: judged.why,
        find_out: judged.find_out,
        source: judged.source,
        default: judged.default,
        unit: judged.unit,
        overridden_by: None,
        whole: set.whole,
    }
}

/// Whether a text is completed only when the script, the playbook or tuned runs.
fn is_computed(text: &str) -> bool {
    ["$", "{{", "`"].iter().any(|mark| text.contains(mark))
}

fn value(context: &Context<'_>, set: &SetLine, all: &[Placed<'_>]) -> Judged {
    if let Some(key) = set.setting.strip_prefix("sysctl.") {
        return sysctl::judge(context, key, set, all);
    }
    let judged = command::judge(context, set).or_else(|| nic::judge(context, set));
    judged.unwrap_or_else(|| Judged::unknown("netwright does not know what this does"))
}

/// What the place of a line makes of its verdict.
fn in_its_place(context: &Context<'_>, set: &SetLine, judged: Judged) -> Judged {
    let is_kernels = set.setting.starts_with("sysctl.")
        || set.setting.starts_with("nic.")
        || set.setting.starts_with("/sys/");
    match set.place {
        Place::ImageBuild if is_kernels => no_effect(
            judged,
            "RUN acts while the image is built; a container starts with the values of its own network \
             namespace and of its host",
            "the kernel keeps it, no file of the image does",
        ),
        Place::ImageBuild => Judged::unknown("netwright does not know what a build makes of it"),
        Place::Pod if sysctl::is_of_host(context, &set.setting) => no_effect(
            judged,
            "it is the whole node's, and cannot be set in a pod's network namespace: such a pod does not start",
            "Kubernetes: Using sysctls in a Kubernetes Cluster",
        ),
        Place::PodCommand if sysctl::is_of_host(context, &set.setting) => Judged {
            why: format!("{}it is the whole node's, and stays after the pod", before(&judged.why)),
            ..judged
        },
        Place::Pod if judged.verdict != LineVerdict::Unknown && !is_safe(&set.setting) => Judged {
            why: format!(
                "{}the kubelet takes it only with --allowed-unsafe-sysctls",
                before(&judged.why)
            ),
            ..judged
        },
        Place::SysctlFile
            if judged.verdict != LineVerdict::Unknown && is_of_module(&set.setting) =>
        {
            Judged {
                why: format!(
                    "{}a boot applies it only where its module is loaded by then (sysctl.d(5))",
                    before(&judged.why)
                ),
                ..judged
            }
        }
        _ => judged,
    }
}

/// Settings that a kubelet of some version takes from every pod; an older one takes fewer. **Source**:
/// Kubernetes: Using sysctls in a Kubernetes Cluster (safe sysctls); pkg/kubelet/sysctl/safe_sysctls.go:
/// the keepalive ones and `tcp_fin_timeout` since 1.29 (pull request 121240), `tcp_rmem` and `tcp_wmem`
/// since 1.32 (127489), `tcp_slow_start_after_idle` and `tcp_notsent_lowat` since 1.37 (138389).
fn is_safe(setting: &str) -> bool {
    const SAFE: &[&str] = &[
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_notsent_lowat",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_slow_start_after_idle",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ];
    setting.strip_prefix("sysctl.").is_some_and(|key| SAFE.contains(&key))
}

/// Settings of modules that a host often loads after the sysctl files.
fn is_of_module(setting: &str) -> bool {
    ["sysctl.net.bridge.", "sysctl.net.netfilter.nf_conntrack", "sysctl.net.nf_conntrack_max"]
        .iter()
        .any(|start| setting.starts_with(start))
}

fn before(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!("{why}; ") }
}

fn no_effect(judged: Judged, why: &str, source: &str) -> Judged {
    let mut all = why.to_owned();
    if judged.verdict.should_go() && judged.verdict != LineVerdict::NoEffect {
        all = format!("{why}; by itself {}: {}", judged.verdict, judged.why);
    }
    Judged {
        verdict: LineVerdict::NoEffect,
        why: all,
        find_out: String::new(),
        source: source.into(),
        ..judged
    }
}
