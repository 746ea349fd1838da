//! 37: a setting below this kernel's default.

use model::{
    Confidence, Reading, Severity,
    sysctl::{DefaultFrom, Sysctl},
};

use crate::{
    Case, Rule,
    case::numbers,
    knob,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

/// Catalogue number 37. Old recipes and profiles lower limits that kernels have since raised.
/// `tcp_mem` is rule 17's.
pub static RULE: Rule = Rule {
    id: "below_kernel_default",
    number: 37,
    title: "a setting below this kernel's own default",
    needs: &["values of kernel settings", "this kernel's defaults"],
    explained_by: &[],
    judge,
};

/// The part of a value that is compared.
#[derive(Clone, Copy)]
enum BufferPart {
    Only,
    /// The third of three: the maximum.
    Third,
    /// Second minus first: a range's width.
    Width,
}

/// Settings that harm when lowered, and the counters that show the harm.
const LOWER_IS_WORSE: [(&str, BufferPart, &[&str]); 16] = [
    ("fs.file-max", BufferPart::Only, &[]),
    ("fs.nr_open", BufferPart::Only, &[]),
    ("net.core.netdev_budget", BufferPart::Only, &[]),
    ("net.core.netdev_budget_usecs", BufferPart::Only, &[]),
    ("net.core.netdev_max_backlog", BufferPart::Only, &[]),
    ("net.core.optmem_max", BufferPart::Only, &[]),
    ("net.core.rmem_default", BufferPart::Only, &["Udp.RcvbufErrors", "Udp6.RcvbufErrors"]),
    ("net.core.rmem_max", BufferPart::Only, &["Udp.RcvbufErrors", "Udp6.RcvbufErrors"]),
    ("net.core.somaxconn", BufferPart::Only, &["TcpExt.ListenOverflows"]),
    ("net.core.wmem_default", BufferPart::Only, &["Udp.SndbufErrors", "Udp6.SndbufErrors"]),
    ("net.core.wmem_max", BufferPart::Only, &["Udp.SndbufErrors", "Udp6.SndbufErrors"]),
    ("net.ipv4.ip_local_port_range", BufferPart::Width, &[]),
    ("net.ipv4.tcp_max_syn_backlog", BufferPart::Only, &[]),
    ("net.ipv4.tcp_rmem", BufferPart::Third, &["TcpExt.PruneCalled"]),
    ("net.ipv4.tcp_wmem", BufferPart::Third, &[]),
    ("net.netfilter.nf_conntrack_max", BufferPart::Only, &[]),
];

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let (mut out, mut unread, mut fine, mut keys) = (vec![], vec![], 0, 0);
    let mut compared = Err(Missing("kernel settings: none was compared".into()));
    for (key, part, harm) in LOWER_IS_WORSE {
        let sysctl = match case.sysctl(key) {
            Ok(sysctl) => sysctl,
            Err(missing) => {
                unread.push(missing.of(key));
                continue;
            }
        };
        // Without connection tracking there is no limit to compare.
        if key.starts_with("net.netfilter") && matches!(sysctl.value, Reading::Absent(_)) {
            continue;
        }
        keys += 1;
        match (
            known("the value", &sysctl.value, part),
            known("this kernel's default", &sysctl.default, part),
        ) {
            (Err(missing), _) | (_, Err(missing)) => out.push(missing.of(key)),
            (Ok(value), Ok(default)) => {
                if value < default {
                    out.push(one(case, key, sysctl, part, harm));
                } else {
                    compared = Ok(());
                    fine += 1;
                }
            }
        }
    }
    if keys == 0 {
        return vec![Missing("kernel settings: none was read".into()).of("")];
    }
    out.extend(unread);
    if fine > 0 {
        // Settings that could not be compared are named in the evidence.
        let text = format!("{} at or above this kernel's default", text::plural(fine, "setting"));
        out.push(settle("", clear(text, [&compared])));
    }
    out
}

fn known(what: &str, reading: &Reading<String>, part: BufferPart) -> Result<u64, Missing> {
    if let Some(why) = reading.why_not() {
        // Without the path, the same reason for ten settings is one line.
        let why =
            why.split_once(": ").filter(|(path, _)| path.starts_with('/')).map_or(why, |s| s.1);
        let denied = if matches!(reading, Reading::Denied(_)) { "denied: " } else { "" };
        return Err(Missing(format!("{what}: {denied}{why}")));
    }
    let text = need(what, reading)?;
    measure(text, part).ok_or_else(|| Missing(format!("{what}: {text:?} is not what was expected")))
}

fn measure(text: &str, part: BufferPart) -> Option<u64> {
    let list = numbers(text)?;
    match (part, list.as_slice()) {
        (BufferPart::Only, [n]) | (BufferPart::Third, [_, _, n]) => Some(*n),
        (BufferPart::Width, [a, b]) => b.checked_sub(*a),
        _ => None,
    }
}

fn one(case: &Case<'_>, key: &str, sysctl: &Sysctl, part: BufferPart, harm: &[&str]) -> Judgement {
    let value = sysctl.value.known().map_or("", String::as_str);
    let default = sysctl.default.known().map_or("", String::as_str);
    let shown: Vec<(&str, u64)> = harm
        .iter()
        .filter_map(|c| Some((*c, case.protocol(c).ok()?)))
        .filter(|c| c.1 > 0)
        .collect();
    let (severity, confidence) = if shown.is_empty() {
        (Severity::Info, Confidence::Low)
    } else {
        (Severity::Warning, Confidence::Medium)
    };
    let part_text = match part {
        BufferPart::Only => "",
        BufferPart::Third => " (the maximum, the third value)",
        BufferPart::Width => " (the number of ports)",
    };
    let mut draft = Draft::new(key, format!("{key} is below this kernel's default"))
        .weigh(severity, confidence)
        .explain(format!(
            "{value} instead of {default}{part_text}: it was set for an older kernel, or on \
             purpose. If not on purpose, remove the line that sets it."
        ))
        .gain(Gain::Tidies, "what newer kernels allow by themselves")
        .show_sysctl(case, key)
        .show(format!("default of {key}"), default, default_source(sysctl));
    for (counter, n) in shown {
        draft = draft.show(
            format!("{counter} {}", case.over()),
            text::count(n),
            match counter.split_once('.').map_or("", |c| c.0) {
                "TcpExt" => "/proc/net/netstat",
                "Udp6" => "/proc/net/snmp6",
                _ => "/proc/net/snmp",
            },
        );
    }
    draft.change(knob::sysctl(case, key, default, risk(key))).on_sysctl(key).found()
}

/// The source of the default.
fn default_source(sysctl: &Sysctl) -> String {
    match sysctl.default_from {
        DefaultFrom::FreshNamespace => "this kernel itself, in a fresh network namespace".into(),
        DefaultFrom::VersionTable if sysctl.default_source.is_empty() => {
            "a table by kernel version and memory size".into()
        }
        DefaultFrom::VersionTable => sysctl.default_source.clone(),
        DefaultFrom::Unknown => "not known how".into(),
    }
}

fn risk(key: &str) -> &'static str {
    match key {
        "net.core.somaxconn" => {
            "low; an application gets it only when it listens again, as by a restart, and has \
             asked for as much itself"
        }
        "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => "low; more memory; new connections only",
        _ => "low; more memory where applications use it",
    }
}
