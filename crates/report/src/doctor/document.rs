//! `doctor --json`: one document.

use model::{
    Finding, Goal, Nanos, Reading, SCHEMA_VERSION, Samples, SkippedRule,
    facts::{Facts, NoAccess},
    finding::{Diagnosis, Passed},
    host::Host,
    samples::HostChange,
    snapshot::Manifest,
    tune::HostId,
    watch::ByContext,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    doctor::cpu_time::{self, CpuTime},
    senders::{self, Sender},
};

/// Result of `doctor` for one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorDocument {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The host, as in `inspect`.
    pub host: Host,
    /// Its kernel release, the same as `host.kernel`.
    pub kernel: Reading<String>,
    /// Origin of the host's facts.
    pub source: Source,
    /// The optimisation goal of the host.
    pub goal: Goal,
    /// Length of the counter window; absent when only settings could be judged.
    pub window_ns: Reading<Nanos>,
    /// Observation of the counters.
    pub window: Reading<Window>,
    /// What limits those who send over TCP, most bytes first.
    #[serde(default = "no_senders")]
    pub senders: Reading<Vec<Sender>>,
    pub findings: Vec<Finding>,
    /// Rules that had all evidence and found nothing.
    pub passed: Vec<Passed>,
    /// Rules that were skipped because evidence was missing.
    pub skipped: Vec<SkippedRule>,
    /// Values that could not be read and what would grant access.
    pub no_access: Vec<NoAccess>,
}

/// Origin of a host's facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// `live`, `snapshot` (with a manifest) or `tree` (a plain folder or archive).
    pub kind: String,
    /// The path given by `--root`, empty for the live host.
    pub path: String,
    /// When a snapshot was taken, seconds since 1970 by its host's clock.
    pub taken_at_unix_s: Reading<u64>,
    /// Whether names and addresses in it were replaced.
    pub redacted: Reading<bool>,
    /// Identity of the host, boot and network namespace, which `tune plan` compares; only for the
    /// running host.
    #[serde(default)]
    pub id: Reading<HostId>,
}

impl Source {
    /// The source of facts that were read from the running host.
    pub fn live(id: HostId) -> Self {
        let none = "the running host";
        Self {
            kind: "live".into(),
            path: String::new(),
            taken_at_unix_s: Reading::absent(none),
            redacted: Reading::absent(none),
            id: Reading::Known(id),
        }
    }

    /// A path, with its manifest if it has one.
    pub fn path(path: impl Into<String>, manifest: Option<&Manifest>) -> Self {
        let none = || "no manifest: not a snapshot".to_owned();
        Self {
            kind: if manifest.is_some() { "snapshot" } else { "tree" }.into(),
            path: path.into(),
            taken_at_unix_s: manifest
                .map_or_else(|| Reading::Absent(none()), |m| Reading::Known(m.taken_at_unix_s)),
            redacted: manifest
                .map_or_else(|| Reading::Absent(none()), |m| Reading::Known(m.redacted)),
            id: Reading::absent("not the running host"),
        }
    }
}

/// Observation of the counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    pub readings: u32,
    /// Duration of the longest reading: the uncertainty of the window's edges.
    pub reading_ns: Nanos,
    /// Whether the observation was ended before the requested time (Ctrl-C).
    pub interrupted: bool,
    /// Whether there was only one reading: the window is the time since boot, and every rate an
    /// average over it.
    pub since_boot: bool,
    /// CPUs that went on- or offline and NICs that came or went meanwhile, with the event; their
    /// counters are skipped. Mostly empty.
    #[serde(default)]
    pub changes: Vec<HostChange>,
    /// Packets received by all CPUs in it, in every network namespace. **Source**:
    /// `/proc/net/softnet_stat`.
    pub packets: Reading<u64>,
    /// How busy the CPUs were over the window.
    #[serde(default = "no_cpu")]
    pub cpu: Reading<CpuTime>,
    /// Softirq time over the window.
    #[serde(default = "no_softirq")]
    pub softirq: Reading<SoftirqTime>,
}

/// Softirq time of all CPUs over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoftirqTime {
    /// By context, measured by eBPF.
    pub measured_ns: ByContext,
    /// The same, as `/proc/stat` reports it.
    pub proc_stat_ns: Reading<u64>,
    /// All CPU time of the window: its length times the CPUs.
    pub cpu_time_ns: u64,
}

/// The document is older than this measurement.
fn no_senders() -> Reading<Vec<Sender>> {
    Reading::absent("not measured")
}

/// The document is older than this measurement.
fn no_cpu() -> Reading<CpuTime> {
    Reading::absent("not measured")
}

/// The document is older than this measurement.
fn no_softirq() -> Reading<SoftirqTime> {
    Reading::absent("not measured")
}

fn softirq(s: &Samples) -> Reading<SoftirqTime> {
    let mut sum =
        ByContext { threaded: Reading::absent("no NAPI threads"), ..ByContext::default() };
    let (mut claimed, mut cpus) = (Some(0), 0);
    for cpu in &s.cpus {
        match &cpu.softirq_ns {
            Reading::Known(one) => sum.add(one),
            Reading::Absent(why) => return Reading::Absent(why.clone()),
            Reading::Denied(why) => return Reading::Denied(why.clone()),
        }
        let of = cpu.proc_stat.known().and_then(|p| p.softirq_ns.get());
        claimed = claimed.zip(of).map(|(a, b)| a + b);
        cpus += 1;
    }
    if cpus == 0 {
        return Reading::absent("no CPU was observed over the whole window");
    }
    Reading::Known(SoftirqTime {
        measured_ns: sum,
        proc_stat_ns: claimed
            .map_or_else(|| Reading::absent("/proc/stat of a CPU is not known"), Reading::Known),
        cpu_time_ns: s.window_ns.0 * cpus,
    })
}

fn packets(s: &Samples) -> Reading<u64> {
    let seen: Vec<u64> = s.cpus.iter().filter_map(|c| c.softnet.known()?.processed.get()).collect();
    if seen.is_empty() {
        return Reading::absent("no CPU's softnet counters");
    }
    Reading::Known(seen.iter().sum())
}

impl DoctorDocument {
    /// Puts the document together.
    pub fn new(
        facts: &Facts,
        samples: &Reading<Samples>,
        interrupted: bool,
        goal: Goal,
        source: Source,
        diagnosis: Diagnosis,
    ) -> Self {
        let window = |s: &Samples| Window {
            readings: s.readings,
            reading_ns: s.reading_ns,
            interrupted,
            since_boot: s.since_boot,
            changes: s.cpu_changes.iter().chain(&s.nic_changes).cloned().collect(),
            packets: packets(s),
            cpu: cpu_time::of(s),
            softirq: softirq(s),
        };
        Self {
            schema_version: SCHEMA_VERSION,
            host: facts.host.clone(),
            kernel: facts.host.kernel.clone(),
            source,
            goal,
            window_ns: samples.as_ref().map(|s| s.window_ns),
            window: samples.as_ref().map(window),
            senders: samples.as_ref().and_then(senders::of),
            findings: diagnosis.findings,
            passed: diagnosis.passed,
            skipped: diagnosis.skipped,
            no_access: facts.no_access.clone(),
        }
    }
}
