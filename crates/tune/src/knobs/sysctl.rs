//! `sysctl.KEY`: any kernel setting under `/proc/sys`.

mod coupled;
mod judge;
mod missing;

use model::{
    knob::Target,
    sysctl::{Origin, Sysctl as Fact},
    sysctls::{self, ProposedValue, Verdict},
    tune::{Basis, Disruption, Impact, RefusedAs},
};
use parse::sysctl_conf;
use probe::{ReadError, ask::access};

use crate::{
    Host, TuneError,
    knob::{Kind, Knob, PlanContext, Refusal},
    need::Need,
    netns,
    phase::Phase,
};

/// **Source**: `/proc/sys`. The key is written with dots, or with slashes where a name in it
/// holds dots.
pub const KIND: Kind = Kind {
    name: "sysctl",
    spelling: "sysctl.KEY=VALUE",
    parse: |target| match target {
        Target::Sysctl(key) => Some(Box::new(Sysctl { key, path: path(key)? })),
        _ => None,
    },
};

struct Sysctl<'k> {
    key: &'k str,
    path: String,
}

/// Settings that need `CAP_SYS_ADMIN` besides the file's permission: `sysctl_numa_balancing`,
/// `sysctl_schedstats` and those of the BPF JIT.
const SYS_ADMIN: &[&str] = &[
    "kernel.numa_balancing",
    "kernel.sched_schedstats",
    "net.core.bpf_jit_enable",
    "net.core.bpf_jit_harden",
    "net.core.bpf_jit_kallsyms",
    "net.core.bpf_jit_limit",
];

/// In a namespace other than the first, it accepts allowed algorithms only. **Source**:
/// `tcp_set_default_congestion_control`.
const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Checks that this namespace's current algorithm, perhaps inherited, could be restored.
fn allowed_here(host: &Host) -> Result<(), TuneError> {
    let (Ok(now), Ok(allowed)) = (host.text(CONGESTION), host.text(ALLOWED)) else { return Ok(()) };
    match allowed.split_whitespace().any(|a| a == now.trim()) {
        true => Ok(()),
        false => Err(TuneError::Environment(format!(
            "{CONGESTION}: {} could not be put back: {}",
            now.trim(),
            only_allowed(host)
        ))),
    }
}

fn only_allowed(host: &Host) -> String {
    let allowed = host.text(ALLOWED).unwrap_or_default();
    format!(
        "a network namespace takes only what net.ipv4.tcp_allowed_congestion_control of the host names \
         ({})",
        allowed.trim()
    )
}

/// A hint on spelling an interface name with dots, if that may be the mistake.
fn spelling(key: &str) -> &'static str {
    let of_interface = [".conf.", ".neigh."].iter().any(|part| key.contains(part));
    match of_interface && key.split('.').count() > 5 && !key.contains('/') {
        true => "; an interface's name with dots in it is spelled conf.a/b.KEY",
        false => "",
    }
}

/// The path below `/proc/sys`; `None` for a path that leads outside, or a pattern.
fn path(key: &str) -> Option<String> {
    let path = sysctl_conf::path(key);
    let fine = !path.is_empty()
        && !sysctl_conf::is_glob(&path)
        && path.contains('/')
        && path.split('/').all(|p| !matches!(p, "" | "." | ".."))
        && !path.bytes().any(|b| b == 0 || b.is_ascii_whitespace());
    fine.then_some(path)
}

impl Sysctl<'_> {
    fn file(&self) -> String {
        format!("/proc/sys/{}", self.path)
    }

    /// The dotted name that facts use.
    fn dotted(&self) -> String {
        sysctl_conf::dotted(&self.path)
    }

    fn fact<'c>(&self, context: &PlanContext<'c>) -> Option<&'c Fact> {
        context.facts.sysctls.get(&self.dotted())
    }
}

/// Settings that can stop traffic.
fn steers(path: &str) -> bool {
    ["net/ipv4/conf/", "net/ipv6/conf/", "net/ipv4/neigh/", "net/ipv6/neigh/", "net/netfilter/"]
        .iter()
        .any(|p| path.starts_with(p))
        || path.starts_with("net/bridge/")
        || path.ends_with("forward")
}

/// Refuses a write-only file: the journal would have no old value. **Source**: its mode.
fn only_written(file: &str, mode: u32) -> Option<Refusal> {
    (mode & 0o222 != 0 && mode & 0o444 == 0).then(|| {
        let why = format!(
            "{file}: can only be written, so it is an act, not a setting, and nothing to undo; \
             sysctl -w does it"
        );
        Refusal::new(RefusedAs::Harmful, why)
    })
}

impl Knob for Sysctl<'_> {
    fn target(&self) -> Target<'_> {
        Target::Sysctl(self.key)
    }

    fn phase(&self) -> Phase {
        Phase::Sysctl
    }

    /// Settings never written: programs, security, secrets, files whose write triggers an action,
    /// and values that change by themselves or in one direction only.
    fn never(&self) -> Option<Refusal> {
        let judged = sysctls::judge(&self.dotted(), &ProposedValue::default())?;
        matches!(judged.verdict, Verdict::Dangerous | Verdict::NotUndone).then(|| judged.into())
    }

    fn danger(&self) -> Option<&'static str> {
        let unknown = sysctls::find(&self.dotted()).is_none();
        unknown.then_some(
            "netwright does not know this setting: neither what it does nor what a wrong value breaks",
        )
    }

    fn is_absent(&self, host: &Host) -> bool {
        !host.root().exists(&self.file())
    }

    fn missing(&self, host: &Host) -> Option<Refusal> {
        let file = self.file();
        let mode = access::mode(host.root(), &file).ok();
        let act = mode.and_then(|mode| only_written(&file, mode));
        act.or_else(|| missing::missing(host, &self.path))
    }

    fn other_unit_counts(&self) -> bool {
        coupled::has_other_unit(&self.path)
    }

    fn same_as(&self) -> Option<String> {
        Some(coupled::value(&self.path))
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        host.text(&self.file())
    }

    /// **Source**: the file's mode. Namespaces show some host-wide settings read-only
    /// (`net.core.rmem_max` is 0444 there), and hide others.
    fn settable(&self, host: &Host) -> Result<(), TuneError> {
        if !host.is_live() {
            return Ok(());
        }
        let file = self.file();
        let apart = file.starts_with("/proc/sys/net/") && !netns::is_first(host.root());
        if apart && file == CONGESTION {
            allowed_here(host)?;
        }
        let hosts = "on this kernel it is the whole host's: ask for it in the host's own namespace";
        match access::mode(host.root(), &file) {
            Ok(mode) if mode & 0o222 != 0 => Ok(()),
            Ok(_) if apart => Err(TuneError::Environment(format!(
                "{file}: read-only in this network namespace; {hosts}"
            ))),
            Ok(_) => Err(TuneError::Environment(format!("{file}: the kernel makes it read-only"))),
            // A misspelled name and a host-wide setting look the same here.
            Err(ReadError::Absent { .. }) if apart => Err(TuneError::Environment(format!(
                "{file}: not there in this network namespace; if the host has it, then {hosts}{}",
                spelling(self.key)
            ))),
            Err(_) => Ok(()),
        }
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        old: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        judge::judge(context, &self.dotted(), old, wanted)
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        let mut needs = vec![Need::File(self.file())];
        if SYS_ADMIN.contains(&self.dotted().as_str()) {
            needs.push(Need::SysAdmin);
        }
        needs
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let file = self.file();
        host.write(&file, value).map_err(|e| match e {
            TuneError::Denied(_) if file == CONGESTION && !netns::is_first(host.root()) => {
                TuneError::Environment(format!("{file}: {value}: {}", only_allowed(host)))
            }
            e => e,
        })
    }

    fn verify(&self, written: &str, back: &str) -> bool {
        sysctl_conf::same_value(written, back)
    }

    fn undo_text(&self) -> String {
        match &self.path {
            p if p.starts_with("net/ipv6") && p.ends_with("forwarding") => {
                "the old value is written back, to every interface; routes learned from router \
                 advertisements come back with the next one"
                    .into()
            }
            p if coupled::forwards(p) => "the old value is written back, to every interface".into(),
            _ => "the old value is written back".into(),
        }
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        let known = sysctls::find(&self.dotted()).is_some();
        let steers = steers(&self.path);
        let why = match (known, steers) {
            (true, false) => return Impact::none(),
            (_, true) => "decides which packets pass: a wrong value stops traffic",
            (false, false) => "assumed, netwright does not know this setting",
        };
        let mut impact = Impact::of(Disruption::ConnectionLoss, why);
        impact.basis = if steers { Basis::General } else { Basis::Assumed };
        impact.own_connection = context.session.remote.is_some();
        impact
    }

    fn unit(&self) -> &'static str {
        match sysctls::find(&self.dotted()).map_or("", |s| s.unit) {
            "boolean" | "mode" | "name" | "names" | "cpu mask" => "",
            unit => unit,
        }
    }

    fn sets(&self) -> &'static str {
        "sysctl"
    }

    fn owner(&self, context: &PlanContext<'_>) -> String {
        match self.fact(context).map(|f| &f.origin) {
            Some(Origin::File { path, line, .. }) => {
                format!("{path}:{line}, which sets it at boot")
            }
            Some(Origin::Tuned { profile, path, line }) => {
                format!("tuned profile {profile} ({path}:{line})")
            }
            Some(Origin::KernelCmdline) => "the kernel cmdline".into(),
            _ => String::new(),
        }
    }

    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        coupled::coupled_settings(host, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str) -> Sysctl<'_> {
        Sysctl { key, path: path(key).unwrap() }
    }

    #[test]
    fn what_cannot_be_put_back_is_no_setting() {
        let never = |key| setting(key).never().map(|r| r.why);
        assert!(never("vm.stat_refresh").is_some() && never("kernel.ns_last_pid").is_some());
        assert_eq!(never("vm.swappiness"), None);
        // The kernel answers EBUSY to 0, though the file is writable in every network namespace.
        let one_way = never("net.netfilter.nf_hooks_lwtunnel").unwrap();
        assert!(one_way.contains("cannot be undone"), "{one_way}");
        assert!(never("net.ipv6.conf.eth0.stable_secret").is_some());
        let no = only_written("/proc/sys/a/b", 0o200).unwrap();
        assert!(no.why.contains("/proc/sys/a/b: can only be written"), "{no:?}");
        assert_eq!(no.kind, RefusedAs::Harmful);
        assert_eq!(only_written("/proc/sys/a/b", 0o600), None);
    }

    /// Write-only files of this kernel are refused before anything is written.
    #[test]
    fn no_file_here_that_can_only_be_written_is_taken() {
        use std::os::unix::fs::PermissionsExt;

        for file in ["vm/drop_caches", "vm/compact_memory", "net/ipv4/route/flush"] {
            let Ok(there) = std::fs::metadata(format!("/proc/sys/{file}")) else { continue };
            assert_eq!(there.permissions().mode() & 0o444, 0, "{file}");
            let it = setting(file);
            assert!(it.never().is_some() && it.missing(&Host::live()).is_some(), "{file}");
        }
    }

    #[test]
    fn what_is_not_known_is_asked_for_twice_and_never_said_to_disturb_nothing() {
        use model::Facts;

        use crate::session::Session;

        let facts: Facts =
            serde_json::from_str(include_str!("../../../diagnose/tests/golden/_base/facts.json"))
                .unwrap();
        let session = Session::default();
        let disruption = |key: &str| {
            let impact = setting(key).impact(&PlanContext::new(&facts, &session), "", "");
            (setting(key).danger().is_some(), impact.disruption, impact.basis)
        };
        let unknown = (true, Disruption::ConnectionLoss, Basis::Assumed);
        assert_eq!(disruption("kernel.unheard_of"), unknown);
        assert_eq!(disruption("net.core.unheard_of"), unknown);
        assert_eq!(disruption("net.core.somaxconn"), (false, Disruption::None, Basis::General));
        let steers = (false, Disruption::ConnectionLoss, Basis::General);
        assert_eq!(disruption("net.ipv4.conf.eth0.rp_filter"), steers);
        for key in ["kernel.poweroff_cmd", "kernel.randomize_va_space", "fs.suid_dumpable"] {
            let refusal = setting(key).never().unwrap();
            assert!(refusal.why.ends_with("netwright never does that"), "{refusal:?}");
        }
    }
}
