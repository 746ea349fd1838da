//! Kernel settings: whether this kernel has it and takes the value (`model::sysctl_versions`), then the
//! judgement of the value (`model::sysctls`), for a kernel that starts with its defaults.

mod existence;
mod form;
mod memory;

use model::{
    Reading,
    lint::{LineVerdict, Place, SetLine, SetMode},
    sysctl::{DefaultFrom, Sysctl},
    sysctl_versions::{self, Access, DefaultAt, ScopeAt, SysctlFacts},
    sysctls::{self, JudgedValue, ProposedValue, Setting, ValueMatch, Verdict},
};
use parse::sysctl_conf::same_value;

use super::{Context, Judged, depends, is_computed};
use crate::order::Placed;

/// `fs.nr_open` of every kernel of the table: what one process may hold.
const NR_OPEN: u64 = 1 << 20;

/// One sysctl, and what is known of it.
struct Known<'a> {
    key: &'a str,
    /// What the kernels have of it.
    facts: Option<&'static SysctlFacts>,
    /// Its row in the table of judgements.
    row: Option<&'static Setting>,
    /// What the host shows of it.
    shown: Option<&'a Sysctl>,
    default: Reading<String>,
}

/// Whether a setting has one value for the whole host, as far as the table knows. Those of `kernel` and
/// `user` are left out: some belong to an IPC or user namespace.
pub fn is_of_host(context: &Context<'_>, setting: &str) -> bool {
    let Some(key) = setting.strip_prefix("sysctl.") else { return false };
    let of_host = ["net.", "vm.", "fs.file-max", "fs.nr_open"].iter().any(|p| key.starts_with(p));
    let scope = context.kernel.zip(sysctl_versions::of(key)).map(|(k, f)| f.scope_at(k));
    of_host && matches!(scope, Some(ScopeAt::Host | ScopeAt::Shared))
}

/// What is known of a setting by any of its names.
fn known<'a>(context: &'a Context<'_>, key: &'a str) -> Known<'a> {
    // Two names of one value.
    let key = match key {
        "net.nf_conntrack_max" => "net.netfilter.nf_conntrack_max",
        other => other,
    };
    Known {
        key,
        facts: sysctl_versions::of(key),
        row: sysctls::find(key),
        shown: context.facts.sysctls.get(key),
        default: default(context, key),
    }
}

/// Whether the kernel refuses the line's value, so that an earlier one stays in force.
pub fn is_refused(context: &Context<'_>, set: &SetLine, all: &[Placed<'_>]) -> bool {
    let Some(key) = set.setting.strip_prefix("sysctl.") else { return false };
    let text = text(set);
    let value = form::in_decimal(text);
    let refused = form::judge(context, &known(context, key), &value, all).err();
    !is_computed(text) && refused.is_some_and(|judged| judged.verdict != LineVerdict::Harmful)
}

/// The value as the kernel gets it: sysctl(8) and systemd-sysctl hand quotes of a sysctl file on to it.
fn text(set: &SetLine) -> &str {
    match set.place {
        Place::SysctlFile => set.value.as_str(),
        _ => set.value.trim_matches(['"', '\'']),
    }
}

pub fn judge(context: &Context<'_>, key: &str, set: &SetLine, all: &[Placed<'_>]) -> Judged {
    let known = known(context, key);
    let judged = of_known(context, &known, set, all);
    let unit = known.facts.and_then(|f| f.unit).or_else(|| known.row.map(|r| r.unit));
    Judged { default: known.default, unit: unit.unwrap_or_default().to_owned(), ..judged }
}

/// What this kernel starts with: what the host showed, else the tables.
fn default(context: &Context<'_>, key: &str) -> Reading<String> {
    let (oldest, newest) = sysctl_versions::versions();
    let covered = context.kernel.is_some_and(|k| (oldest..=newest).contains(&k));
    let shown = context.facts.sysctls.get(key);
    if let Some(fact) = shown
        && (covered || fact.default_from != DefaultFrom::VersionTable)
        && fact.default.is_known()
    {
        return fact.default.clone();
    }
    let Some((kernel, facts)) = context.kernel.zip(sysctl_versions::of(key)) else {
        return Reading::absent("no default is known");
    };
    if !covered {
        return Reading::absent(format!(
            "the table has the kernels {}.{} to {}.{}",
            oldest.0, oldest.1, newest.0, newest.1
        ));
    }
    // Where the build decides whether root may write, it decides on the default too.
    if facts.access == Access::ReadOnly {
        return Reading::absent("the default is not established");
    }
    match facts.default_at(kernel) {
        // A vendor may have carried a later default back.
        DefaultAt::Value(v)
            if context.backports && facts.default_at(newest) != DefaultAt::Value(v) =>
        {
            Reading::absent("the vendor may have carried a later default back")
        }
        // A variable that the kernel sets while it boots is 0 in the source.
        DefaultAt::Value("0") if facts.scope_at(kernel) != ScopeAt::Namespace => {
            Reading::absent("the default is not established")
        }
        DefaultAt::Value(v) => Reading::Known(v.to_owned()),
        DefaultAt::Computed(how) => Reading::absent(format!("the kernel computes it: {how}")),
        DefaultAt::Unknown => Reading::absent("the default is not established"),
    }
}

fn of_known(context: &Context<'_>, known: &Known<'_>, set: &SetLine, all: &[Placed<'_>]) -> Judged {
    let text = text(set);
    if is_computed(text) {
        return Judged::unknown("the value is computed when the line runs");
    }
    if let Some(judged) = existence::judge(context, known) {
        return judged;
    }
    if known.facts.is_none() && known.row.is_none() {
        return Judged::unknown("netwright does not know this setting");
    }
    let default = known.default.known().map(String::as_str);
    let now = known.shown.and_then(|f| f.value.known()).map(String::as_str);
    let asked = |value| ProposedValue {
        value,
        // A setting that is there is not gone, whatever its vendor calls the kernel.
        now: now.filter(|_| known.row.is_some_and(|r| r.gone.is_some())),
        default,
        kernel: context.kernel,
        memory: context.facts.memory_bytes.known().map(|b| b.0),
        page: context.facts.host.page_size_bytes.known().map(|b| b.0),
    };
    let plain = form::in_decimal(text);
    // What the table says whatever the value: gone, an act, a matter of security.
    let first = sysctls::judge(known.key, &asked(&plain));
    if let Some(judged) = first.as_ref().and_then(not_for_the_value) {
        return judged;
    }
    let value = match form::judge(context, known, &plain, all) {
        Ok(value) => value,
        Err(judged) => return *judged,
    };
    if default.is_some_and(|d| same_value(d, &value)) {
        return Judged::new(LineVerdict::Good, "this kernel starts with it", known.source());
    }
    if let Some(judged) = conditional(set.mode, &value, default) {
        return judged;
    }
    match sysctls::judge(known.key, &asked(&value)) {
        Some(first) if first.verdict != Verdict::Good => {
            let judged = of_table(context, known, set.place, &value, first, all);
            let further = sysctls::further_reasons(known.key, &asked(&value));
            with_further(judged, &further)
        }
        _ => nothing_against(context, known, &value),
    }
}

impl Known<'_> {
    /// Where the default and the range stand.
    fn source(&self) -> String {
        let judged = self.row.and_then(|r| r.known).map(|k| k.source).filter(|s| !s.is_empty());
        let facts = || self.facts.map(|f| f.documented.unwrap_or(f.source));
        let folder = self.key.split('.').next().unwrap_or_default();
        let page = || self.row.map(|_| format!("Documentation/admin-guide/sysctl/{folder}.rst"));
        judged.or_else(facts).map(str::to_owned).or_else(page).unwrap_or_default()
    }
}

/// Judgements that hold for every value.
fn not_for_the_value(judged: &JudgedValue) -> Option<Judged> {
    let always = judged.when == Some(ValueMatch::Always);
    Some(match judged.verdict {
        Verdict::Gone => Judged::new(LineVerdict::Gone, &judged.why, judged.source),
        Verdict::NotUndone => Judged::unknown(judged.why.clone()),
        Verdict::Dangerous if always => {
            Judged::unknown("it guards the host, and is no matter of tuning")
        }
        _ => return None,
    })
}

/// tuned's `=>` and `=<` where the default is beyond the value already.
fn conditional(mode: SetMode, value: &str, default: Option<&str>) -> Option<Judged> {
    let (value, default): (i128, i128) = (value.parse().ok()?, default?.parse().ok()?);
    let (beyond, word) = match mode {
        SetMode::Exactly | SetMode::Sometimes => return None,
        SetMode::AtLeast => (default >= value, "at least"),
        SetMode::AtMost => (default <= value, "at most"),
    };
    beyond.then(|| {
        let why = format!("{word} {value} is what this kernel starts with: {default}");
        Judged::new(LineVerdict::NoEffect, why, "tuned.conf: the modifiers > and <")
    })
}

/// A bad line keeps all reasons of the table.
fn with_further(judged: Judged, further: &[String]) -> Judged {
    match judged.verdict {
        LineVerdict::Harmful | LineVerdict::WrongUnit if !further.is_empty() => {
            Judged { why: format!("{}; {}", judged.why, further.join("; ")), ..judged }
        }
        _ => judged,
    }
}

/// The table's verdict, in the words for a line of a file. The table guards a host against a change; a
/// line that only some hosts are worse off with depends here.
fn of_table(
    context: &Context<'_>,
    known: &Known<'_>,
    place: Place,
    value: &str,
    judged: JudgedValue,
    all: &[Placed<'_>],
) -> Judged {
    let JudgedValue { verdict, why, source, when } = judged;
    let new = |verdict| Judged::new(verdict, &why, source);
    match (known.key, verdict, when) {
        (
            "net.core.rmem_default" | "net.core.wmem_default" | "net.core.optmem_max",
            Verdict::NoEffect,
            _,
        )
        | ("net.core.netdev_budget", Verdict::Harmful, _)
        | ("net.ipv4.ip_local_port_range", Verdict::Harmful, _) => {
            depends::sysctl(context, known.key, value).unwrap_or_else(|| new(LineVerdict::Depends))
        }
        ("net.core.netdev_max_backlog", Verdict::Harmful, _) => backlog(context, value),
        ("net.ipv4.ip_unprivileged_port_start", _, _) => ports_for_all(place, source),
        ("fs.file-max", Verdict::Lowers, _) if is_about(value, known) => Judged::new(
            LineVerdict::Good,
            "it is within 5% of what this kernel computes: a tenth of the memory that is left after boot",
            "fs/file_table.c files_maxfiles_init",
        ),
        ("fs.file-max", Verdict::Lowers, _) if value.parse().is_ok_and(|n: u64| n < NR_OPEN) => {
            Judged::new(
                LineVerdict::Harmful,
                format!("{why}; one process alone may hold more (fs.nr_open)"),
                "Documentation/admin-guide/sysctl/fs.rst file-max, nr_open",
            )
        }
        ("vm.dirty_background_ratio" | "vm.dirty_background_bytes", Verdict::Harmful, _) => {
            Judged::unknown("netwright has no judgement of a background writeback that never waits")
        }
        ("vm.dirty_ratio", ..) if sets_another(all, "sysctl.vm.dirty_bytes") => {
            let why = "vm.dirty_bytes is set, and the kernel keeps this one at 0 then";
            Judged::new(LineVerdict::Good, why, source)
        }
        ("net.ipv4.tcp_mem" | "vm.min_free_kbytes", _, Some(ValueMatch::MostOfMemory(_))) => {
            memory::more_than_all(context, known.key, value, source)
        }
        (key, ..) if key.ends_with(".disable_ipv6") => Judged {
            find_out: "`ss -6 -a` shows who listens or connects by IPv6".into(),
            ..Judged::new(
                LineVerdict::Depends,
                "depends on whether anything uses IPv6: the interface loses its addresses",
                source,
            )
        },
        (_, Verdict::Harmful | Verdict::Lowers, Some(ValueMatch::Lower)) => {
            new(LineVerdict::BelowDefault)
        }
        (_, Verdict::Harmful, _) => new(LineVerdict::Harmful),
        (_, Verdict::Dangerous, _) => new(LineVerdict::Dangerous),
        // Below what a standard asks for, which a host may want.
        (_, Verdict::Lowers, _) => {
            depends::sysctl(context, known.key, value).unwrap_or_else(|| new(LineVerdict::Depends))
        }
        (_, Verdict::NoEffect, _) => new(LineVerdict::NoEffect),
        (_, Verdict::Gone, _) => new(LineVerdict::Gone),
        (_, Verdict::Good | Verdict::NotUndone, _) => Judged::unknown(why),
    }
}

/// Whether a value is at least 95% of the default, which an estimate from memory may be above.
fn is_about(value: &str, known: &Known<'_>) -> bool {
    let default = known.default.known().and_then(|d| d.parse::<u64>().ok());
    let value = value.parse::<u64>().ok();
    default.zip(value).is_some_and(|(d, v)| u128::from(v) * 20 >= u128::from(d) * 19)
}

fn sets_another(all: &[Placed<'_>], setting: &str) -> bool {
    all.iter().any(|p| p.set.setting == setting && p.set.value != "0")
}

/// A backlog of so many packets: delay where packets pass it, nothing elsewhere.
fn backlog(context: &Context<'_>, value: &str) -> Judged {
    let source =
        "Documentation/networking/scaling.rst (RPS); net/core/dev.c netif_rx, process_backlog";
    let steered = context.facts.nics.iter().find(|n| {
        let steers = |q: &model::nic::Queue| q.rps_cpus.known().is_some_and(|c| !c.is_empty());
        n.queues.iter().any(steers)
    });
    match steered {
        Some(nic) => Judged::new(
            LineVerdict::Harmful,
            format!(
                "{} steers packets by RPS: up to {value} of them queue for a CPU, which is delay",
                nic.name
            ),
            source,
        ),
        None => Judged::new(
            LineVerdict::NoEffect,
            format!(
                "packets that a NIC's driver polls (NAPI) do not pass the backlog without RPS; where \
                 packets pass it (RPS, veth, loopback), a queue of {value} is delay"
            ),
            source,
        ),
    }
}

/// Low ports without a privilege.
fn ports_for_all(place: Place, source: &str) -> Judged {
    match place {
        Place::Pod => Judged::new(
            LineVerdict::Good,
            "the ports are those of the pod alone: its programs need no capability for low ports",
            "Kubernetes: Using sysctls in a Kubernetes Cluster (safe sysctls)",
        ),
        _ => Judged {
            find_out:
                "`getent passwd` shows who can log in; setcap cap_net_bind_service gives low \
                       ports to one program instead"
                    .into(),
            ..Judged::new(
                LineVerdict::Depends,
                "depends on whether every local user may take the ports of services",
                source,
            )
        },
    }
}

/// A value that no rule of the table is against.
fn nothing_against(context: &Context<'_>, known: &Known<'_>, value: &str) -> Judged {
    if let Some(judged) = depends::sysctl(context, known.key, value) {
        return judged;
    }
    if known.key == "net.ipv4.tcp_adv_win_scale" && context.kernel.is_some_and(|k| k >= (6, 6)) {
        let source = "Documentation/networking/ip-sysctl.rst tcp_adv_win_scale";
        return Judged::new(LineVerdict::NoEffect, "it is obsolete since Linux 6.6", source);
    }
    let default = known.default.known();
    let starts = default.map(|d| format!("; this kernel starts with {d}")).unwrap_or_default();
    let unknown = || Judged::unknown(format!("netwright has no judgement of this value{starts}"));
    if matches!(known.key, "vm.nr_hugepages" | "vm.nr_hugepages_mempolicy")
        && let Some(judged) = memory::huge_pages(context, value)
    {
        return judged;
    }
    let Some(row) = known.row else { return unknown() };
    let compares = |r: &sysctls::Rule| r.when == ValueMatch::Lower;
    if default.is_none() && row.rules.iter().any(compares) {
        return Judged {
            find_out: format!("`sysctl {}` after a boot without the line, then compare", known.key),
            ..Judged::new(
                LineVerdict::Depends,
                "depends on whether it is less than the kernel's own value, which is not known here",
                known.source(),
            )
        };
    }
    unknown()
}
