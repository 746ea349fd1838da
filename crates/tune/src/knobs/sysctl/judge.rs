//! Which values of a kernel setting are taken: form, unit, floor, and what is known to harm.

use model::{Bytes, Nanos, sysctl::Sysctl as Fact, tune::RefusedAs};
use parse::sysctl_conf::folded;

use super::range;
use crate::knob::{Case, Refusal, cannot, harmful, usage};

/// Switches whose off does harm on every kernel of today.
const KEEP_ON: &[(&str, &str)] = &[
    ("net.ipv4.tcp_sack", "loss recovery needs it"),
    (
        "net.ipv4.tcp_timestamps",
        "without it a fast connection loses protection against wrapped sequence numbers, and \
         tcp_tw_reuse does nothing",
    ),
    ("net.ipv4.tcp_window_scaling", "windows end at 64 KiB without it"),
    ("net.ipv4.tcp_moderate_rcvbuf", "receive buffers no longer grow with the path"),
];

/// Room for something: less than this kernel's own default only takes away.
const ROOM: &[&str] = &[
    "fs.file-max",
    "fs.nr_open",
    "net.core.netdev_budget",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_max",
];

/// The value in the kernel's form, or why not.
pub fn judge(
    case: &Case<'_>,
    key: &str,
    fact: Option<&Fact>,
    old: &str,
    wanted: &str,
) -> Result<String, Refusal> {
    if fact.is_some_and(|f| f.default_source.starts_with("a state of the kernel")) {
        return cannot("it shows a state of the kernel and cannot be set");
    }
    let unit = fact.map_or("", |f| f.unit.as_str());
    let new = in_form(old, wanted, unit)?;
    in_range(case, key, unit, &new)?;
    if let Some((_, why)) = KEEP_ON.iter().find(|(k, _)| *k == key && new == "0") {
        return harmful(*why);
    }
    if ROOM.contains(&key) {
        floor(fact, old, &new)?;
    }
    Ok(new)
}

/// As many words as now, numbers where there are numbers now.
fn in_form(old: &str, wanted: &str, unit: &str) -> Result<String, Refusal> {
    if wanted.contains(['\n', '\0']) || wanted.len() > 2000 {
        return usage("a value is one line");
    }
    let old = folded(old);
    let words: Vec<&str> = wanted.split_whitespace().collect();
    let numbers = |s: &str| s.split(' ').all(|w| w.parse::<i128>().is_ok());
    if old.is_empty() || !numbers(&old) {
        return Ok(words.join(" "));
    }
    let count = old.split(' ').count();
    if words.len() != count {
        return usage(format!("it takes {count} numbers, as now: {old}"));
    }
    let new: Result<Vec<String>, Refusal> = words.iter().map(|w| in_unit(w, unit)).collect();
    Ok(new?.join(" "))
}

/// A number of the kernel's unit; one with a unit of its own is converted where that makes sense.
fn in_unit(word: &str, unit: &str) -> Result<String, Refusal> {
    if word.parse::<i128>().is_ok() {
        return Ok(word.to_owned());
    }
    let wrong = || Refusal {
        kind: RefusedAs::Usage,
        why: match unit {
            "" | "boolean" | "mode" => format!("{word:?} is no number"),
            unit => format!("{word:?}: it is a number of {unit}"),
        },
    };
    let time = |ns: u64| word.parse::<Nanos>().ok().filter(|t| t.0 % ns == 0).map(|t| t.0 / ns);
    match unit {
        "bytes" => word.parse::<Bytes>().ok().map(|b| b.0),
        "ns" => time(1),
        "us" => time(1_000),
        "ms" => time(1_000_000),
        "s" => time(1_000_000_000),
        _ => None,
    }
    .map(|n| n.to_string())
    .ok_or_else(wrong)
}

fn words(text: &str) -> Vec<i128> {
    text.split_whitespace().filter_map(|w| w.parse().ok()).collect()
}

fn in_range(case: &Case<'_>, key: &str, unit: &str, new: &str) -> Result<(), Refusal> {
    if unit == "boolean" && !matches!(new, "0" | "1") {
        return usage(format!("{new} is out of range: 0 or 1"));
    }
    range::check(key, unit, new)?;
    let w = words(new);
    if key.starts_with("net.ipv6.conf.") && key.ends_with(".disable_ipv6") && new != "0" {
        return harmful("the interface loses its IPv6 addresses, and they do not come back");
    }
    match (key, w.as_slice()) {
        ("net.ipv4.tcp_congestion_control", _) => {
            let known = case.facts.sysctls.get("net.ipv4.tcp_available_congestion_control");
            let known = known.and_then(|f| f.value.known()).map_or("", String::as_str);
            if !known.split(' ').any(|k| k == new) {
                return cannot(format!("this kernel offers {known}"));
            }
        }
        ("net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem", [least, start, most]) => {
            if !(least <= start && start <= most) {
                return usage("minimum, default and maximum must ascend");
            }
            if *least > 1 << 20 {
                return harmful(
                    "the minimum is granted to every socket even under memory pressure: 1,000 \
                     sockets would take gigabytes",
                );
            }
        }
        ("net.ipv4.udp_mem", [least, pressure, most])
            if !(least <= pressure && pressure <= most) =>
        {
            return usage("low, pressure and high must ascend");
        }
        ("net.ipv4.tcp_mem", [least, pressure, most]) => {
            if !(least <= pressure && pressure <= most) {
                return usage("low, pressure and high must ascend");
            }
            if least == most {
                return harmful("equal values remove the pressure stage");
            }
            let page = case.facts.host.page_size_bytes.known().map_or(4096, |b| b.0);
            let memory = case.facts.memory_bytes.known().map(|b| b.0);
            let bytes = most.saturating_mul(i128::from(page));
            if memory.is_some_and(|m| bytes > i128::from(m) / 4) {
                return harmful(format!(
                    "the unit is pages of {page} bytes: {bytes} bytes are more than a quarter of \
                     memory"
                ));
            }
        }
        ("net.ipv4.ip_local_port_range", [low, high])
            if !(1 <= *low && low < high && *high <= 65535) =>
        {
            return usage("two ports are wanted, the lower one first, 1 to 65535");
        }
        _ => {}
    }
    Ok(())
}

/// Refuses less than this kernel's default, word by word; what is not a raise of a value that
/// is below it already.
fn floor(fact: Option<&Fact>, old: &str, new: &str) -> Result<(), Refusal> {
    let Some(default) = fact.and_then(|f| f.default.known()) else { return Ok(()) };
    let (default, old, new) = (words(default), words(old), words(new));
    for ((default, old), new) in default.iter().zip(&old).zip(&new) {
        if new < default && new < old {
            return harmful(format!("{new} is below this kernel's own default of {default}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_the_kernels_form_and_unit() {
        assert_eq!(
            in_form("4096\t131072\t33554432\n", "4k 128KiB 64M", "bytes").unwrap(),
            "4096 131072 67108864"
        );
        assert_eq!(in_form("60\n", "2m", "s").unwrap(), "120");
        assert_eq!(in_form("cubic\n", "bbr", "name").unwrap(), "bbr");
        for (old, wanted, unit) in [
            ("4096 131072 6291456", "6291456", "bytes"),
            ("60", "1500ms", "s"),
            ("1000", "1M", "packets"),
            ("190000 250000 380000", "10M 10M 10M", "pages"),
            ("1", "on", "boolean"),
            ("1", "1\n0", "boolean"),
        ] {
            assert!(in_form(old, wanted, unit).is_err(), "{wanted:?} was taken");
        }
    }

    #[test]
    fn less_than_the_default_is_refused_unless_it_is_a_raise() {
        use model::{
            Reading,
            sysctl::{DefaultFrom, Origin},
        };
        let fact = Fact {
            value: Reading::absent(""),
            default: Reading::Known("4096 131072 33554432".into()),
            default_from: DefaultFrom::FreshNamespace,
            default_source: String::new(),
            origin: Origin::Default,
            unit: "bytes".into(),
        };
        let check = |old, new| floor(Some(&fact), old, new);
        assert!(check("4096 131072 33554432", "4096 131072 16777216").is_err());
        assert!(check("4096 131072 6291456", "4096 131072 16777216").is_ok(), "still a raise");
        assert!(check("4096 131072 33554432", "4096 131072 67108864").is_ok());
    }
}
