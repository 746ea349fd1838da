//! Judges values of kernel settings: form, unit and range here, the rest by the table of settings.

use model::{
    Bytes, Nanos,
    sysctls::{self, KernelDefault, ProposedValue, Setting, Verdict},
    tune::RefusedAs,
};
use parse::sysctl_conf::folded;

use crate::knob::{PlanContext, Refusal, cannot, usage};

/// The value in the kernel's form, or the reason for refusing it.
///
/// # Errors
/// The refusal with its reason.
pub fn judge(
    context: &PlanContext<'_>,
    key: &str,
    old: &str,
    wanted: &str,
) -> Result<String, Refusal> {
    let row = sysctls::find(key);
    if row.and_then(|r| r.known).is_some_and(|k| matches!(k.default, KernelDefault::State)) {
        return cannot("it shows a state of the kernel and cannot be set");
    }
    let new = in_form(old, wanted, row.map_or("", |r| r.unit))?;
    if let Some(row) = row {
        in_range(row, &new)?;
    }
    fits(context, key, &new)?;
    let facts = context.facts;
    let asked = ProposedValue {
        value: &new,
        now: Some(old),
        default: facts.sysctls.get(key).and_then(|f| f.default.known()).map(String::as_str),
        kernel: facts.host.kernel.known().and_then(|k| model::host::kernel_version(k)),
        memory: facts.memory_bytes.known().map(|b| b.0),
        page: facts.host.page_size_bytes.known().map(|b| b.0),
    };
    match sysctls::judge(key, &asked) {
        None => Ok(new),
        Some(judged) => match judged.verdict {
            Verdict::Good => Ok(new),
            Verdict::NoEffect | Verdict::Lowers if context.meant => Ok(new),
            _ => Err(judged.into()),
        },
    }
}

/// Requires as many words as the current value, numbers in place of numbers.
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

/// A number in the kernel's unit; a number with a unit is converted if the units are compatible.
fn in_unit(word: &str, unit: &str) -> Result<String, Refusal> {
    if word.parse::<i128>().is_ok() {
        return Ok(word.to_owned());
    }
    let wrong = || {
        let why = match unit {
            "" | "boolean" | "mode" => format!("{word:?} is no number"),
            unit => format!("{word:?}: it is a number of {unit}"),
        };
        Refusal::new(RefusedAs::Usage, why)
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

/// Refuses a value with a word out of range: the kernel would answer `EINVAL` or accept nonsense.
fn in_range(row: &Setting, new: &str) -> Result<(), Refusal> {
    if row.unit == "boolean" && !matches!(new, "0" | "1") {
        return usage(format!("{new} is out of range: 0 or 1"));
    }
    let Some((least, most)) = row.range else { return Ok(()) };
    let unit = if matches!(row.unit, "boolean" | "mode") { "" } else { row.unit };
    for n in words(new) {
        if n < least || n > most {
            return usage(format!("{n} is out of range: {least} to {most} {unit}").trim_end());
        }
        let power = u64::try_from(n).is_ok_and(|n| n == 0 || n.is_power_of_two());
        if row.power_of_two && !power {
            return usage(format!("{n} is no power of two, which the kernel makes of it"));
        }
    }
    Ok(())
}

/// Refuses words that contradict each other, or this kernel.
fn fits(context: &PlanContext<'_>, key: &str, new: &str) -> Result<(), Refusal> {
    match (key, words(new).as_slice()) {
        ("net.ipv4.tcp_congestion_control", _) => {
            let known = context.facts.sysctls.get("net.ipv4.tcp_available_congestion_control");
            let known = known.and_then(|f| f.value.known()).map_or("", String::as_str);
            if !known.split(' ').any(|k| k == new) {
                return cannot(format!("this kernel offers {known}"));
            }
        }
        ("net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem", [least, start, most])
            if !(least <= start && start <= most) =>
        {
            return usage("minimum, default and maximum must ascend");
        }
        ("net.ipv4.tcp_mem" | "net.ipv4.udp_mem", [least, pressure, most])
            if !(least <= pressure && pressure <= most) =>
        {
            return usage("low, pressure and high must ascend");
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
    fn every_word_is_looked_at_and_the_range_is_reported() {
        let check = |key: &str, value: &str| in_range(sysctls::find(key).unwrap(), value);
        for (key, value, range) in [
            ("net.ipv4.tcp_syn_retries", "128", "1 to 127"),
            ("net.ipv4.tcp_mtu_probing", "3", "0 to 2"),
            ("net.core.somaxconn", "-1", "0 to 2147483647 connections"),
            ("net.core.rmem_max", "2303", "2304 to 2147483647"),
            ("net.ipv4.tcp_rmem", "4096 131072 2147483648", "1 to 2147483647"),
            ("net.core.rps_sock_flow_entries", "1000", "no power of two"),
        ] {
            let why = check(key, value).unwrap_err().why;
            assert!(why.contains(range), "{key}={value}: {why}");
        }
        for (key, value) in [
            ("net.ipv4.tcp_syn_retries", "127"),
            ("net.ipv4.tcp_rmem", "1 2 2147483647"),
            ("net.core.rps_sock_flow_entries", "0"),
            ("net.core.rps_sock_flow_entries", "32768"),
            ("net.ipv4.tcp_base_mss", "-1"),
        ] {
            assert_eq!(check(key, value), Ok(()), "{key}={value}");
        }
    }
}
