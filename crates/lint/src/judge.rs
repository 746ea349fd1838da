//! The verdict of one line. Pure: facts in, verdict out. Values are judged by the table of settings
//! (`model::settings`) and by the knobs of `tune`; here is only what a file adds to that.

mod command;
mod depends;
mod nic;
mod sysctl;

use model::{
    Facts, Reading,
    lint::{LineVerdict, LintHost, LintLine, Place, SetLine},
};

use crate::order::Placed;

/// What lines are judged for.
pub struct Context<'a> {
    pub facts: &'a Facts,
    /// Major and minor of the kernel.
    pub kernel: Option<(u32, u32)>,
    pub nic_speed_bps: Option<u64>,
}

impl<'a> Context<'a> {
    pub fn new(facts: &'a Facts, host: &LintHost) -> Self {
        Self {
            facts,
            kernel: host.kernel.known().and_then(|k| probe::facts::sysctl::version(k)),
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
    let judged = in_its_place(set, value(context, set, all));
    LintLine {
        file: file.to_owned(),
        line: set.line,
        place: set.place,
        setting: set.setting.clone(),
        value: set.value.clone(),
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
fn in_its_place(set: &SetLine, judged: Judged) -> Judged {
    let is_kernels = set.setting.starts_with("sysctl.")
        || set.setting.starts_with("nic.")
        || set.setting.starts_with("/sys/");
    match set.place {
        Place::ImageBuild if is_kernels => no_effect(
            judged,
            "RUN sets it while the image is built; a container starts with the values of its own \
             network namespace and of its host",
            "the kernel keeps it, no file of the image does",
        ),
        Place::Pod if sysctl::is_of_host(&set.setting) => no_effect(
            judged,
            "it is the whole node's: the kubelet refuses a pod that asks for it",
            "Kubernetes: Using sysctls in a Kubernetes Cluster",
        ),
        Place::PodCommand if sysctl::is_of_host(&set.setting) => Judged {
            why: format!("{}it is the whole node's, and stays after the pod", before(&judged.why)),
            ..judged
        },
        _ => judged,
    }
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
