//! Whether the kernel takes a value: numbers, their count, unit and range. What the kernel does was tried
//! on Linux 6.18; the parser is `proc_get_long` of kernel/sysctl.c.

use model::lint::LineVerdict;
use parse::sysctl_conf::folded;

use super::Known;
use crate::{
    judge::{Context, Judged},
    order::Placed,
};

type Verdict = Box<Judged>;

/// `0x1f` and `017` as the kernel reads them.
pub fn in_decimal(text: &str) -> String {
    let word = |w: &str| {
        let number = match w.strip_prefix("0x").or_else(|| w.strip_prefix("0X")) {
            Some(hex) => i128::from_str_radix(hex, 16).ok(),
            None if w.len() > 1 && w.starts_with('0') => i128::from_str_radix(w, 8).ok(),
            None => None,
        };
        number.map_or_else(|| w.to_owned(), |n| n.to_string())
    };
    folded(text).split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Settings whose text is the name of an algorithm: what follows it, such as a comment, reaches the kernel.
const ONE_WORD: [&str; 2] = ["net.core.default_qdisc", "net.ipv4.tcp_congestion_control"];

/// Settings of type `int` that lists often raise: a number beyond it is refused whatever the range. The
/// table does not have the type of the others. **Source**: `proc_dointvec` of kernel/sysctl.c.
const INTS: [&str; 10] = [
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// The value that is in force after the line, or the verdict on one that the kernel does not take.
pub fn judge(
    context: &Context<'_>,
    known: &Known<'_>,
    value: &str,
    all: &[Placed<'_>],
) -> Result<String, Verdict> {
    let shown = known.shown.and_then(|f| f.value.known());
    let like = known.default.known().or(shown).map_or("", String::as_str);
    let numbers = |text: &str| text.split(' ').all(|w| w.parse::<i128>().is_ok());
    let numeric = match like {
        "" => known.facts.is_some_and(|f| f.kind == "integer" || f.kind == "boolean"),
        like => numbers(like),
    };
    if !numeric {
        if ONE_WORD.contains(&known.key) && value.split(' ').count() > 1 {
            let why = format!("the kernel takes one word, and refuses {value:?}");
            return Err(Box::new(Judged::new(
                LineVerdict::NoEffect,
                why,
                "kernel/sysctl.c proc_dostring",
            )));
        }
        return Ok(value.to_owned());
    }
    let takes = like.split(' ').filter(|w| !w.is_empty()).count().max(1);
    // The kernel passes over what follows the last number that it takes, such as a comment.
    let given: Vec<&str> = value.split(' ').take(takes).collect();
    for word in &given {
        number(known, word)?;
        in_range(context, known, word)?;
    }
    // Where fewer are given, it leaves the others.
    let rest = like.split(' ').skip(given.len());
    let whole = match takes {
        1 => given.join(" "),
        _ => given.iter().copied().chain(rest).collect::<Vec<_>>().join(" "),
    };
    ports(known, &whole, all)?;
    ascends(known, &whole)?;
    Ok(whole)
}

fn number(known: &Known<'_>, word: &str) -> Result<(), Verdict> {
    if word.parse::<i128>().is_ok() {
        return Ok(());
    }
    let unit = known.facts.and_then(|f| f.unit).or_else(|| known.row.map(|r| r.unit));
    let of = unit.filter(|u| !matches!(*u, "" | "boolean" | "mode"));
    let of = of.map(|u| format!(" of {u}")).unwrap_or_default();
    let has_unit = word.starts_with(|c: char| c.is_ascii_digit())
        && word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len() <= 3
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
    let (verdict, why) = match has_unit {
        true => (
            LineVerdict::WrongUnit,
            format!("the kernel takes plain numbers{of}, and refuses {word:?}"),
        ),
        false => {
            (LineVerdict::NoEffect, format!("the kernel takes numbers{of}, and refuses {word:?}"))
        }
    };
    Err(Box::new(Judged::new(verdict, why, "kernel/sysctl.c proc_get_long: EINVAL")))
}

fn in_range(context: &Context<'_>, known: &Known<'_>, word: &str) -> Result<(), Verdict> {
    let (Some(facts), Some(kernel), Ok(number)) =
        (known.facts, context.kernel, word.parse::<i128>())
    else {
        return Ok(());
    };
    let (mut least, mut most) = facts.range_at(kernel);
    if INTS.contains(&known.key) {
        least = least.or(Some(i32::MIN.into()));
        most = most.or(Some(i32::MAX.into()));
    }
    if least.is_none_or(|l| number >= l) && most.is_none_or(|m| number <= m) {
        return Ok(());
    }
    let range = match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("{least} and more"),
        (_, Some(most)) => format!("at most {most}"),
        (None, None) => return Ok(()),
    };
    let why = format!("the kernel refuses {number}: it takes {range}");
    Err(Box::new(Judged::new(LineVerdict::NoEffect, why, facts.source)))
}

/// Ports that the kernel refuses as a range.
fn ports(known: &Known<'_>, whole: &str, all: &[Placed<'_>]) -> Result<(), Verdict> {
    let words: Vec<i128> = whole.split(' ').filter_map(|w| w.parse().ok()).collect();
    let ("net.ipv4.ip_local_port_range", [low, high]) = (known.key, words.as_slice()) else {
        return Ok(());
    };
    let start = "sysctl.net.ipv4.ip_unprivileged_port_start";
    let privileged = *low < 1024 && !all.iter().any(|p| p.set.setting == start);
    let why = match (low > high || *high > 65_535 || *low < 1, privileged) {
        (true, _) => "the kernel refuses it: two ports of 1 to 65535, the lower one first",
        (_, true) => {
            "the kernel refuses it: it begins below net.ipv4.ip_unprivileged_port_start (1024)"
        }
        _ => return Ok(()),
    };
    let source = "net/ipv4/sysctl_net_ipv4.c ipv4_local_port_range";
    Err(Box::new(Judged::new(LineVerdict::NoEffect, why, source)))
}

/// Minimum, default and maximum that contradict each other, which the kernel does not compare.
fn ascends(known: &Known<'_>, whole: &str) -> Result<(), Verdict> {
    let names = match known.key {
        "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => "minimum, default and maximum",
        "net.ipv4.tcp_mem" | "net.ipv4.udp_mem" => "low, pressure and high",
        _ => return Ok(()),
    };
    let words: Vec<i128> = whole.split(' ').filter_map(|w| w.parse().ok()).collect();
    if words.is_sorted() {
        return Ok(());
    }
    let why = format!("{whole} is then in force, and {names} must ascend");
    let source = "Documentation/networking/ip-sysctl.rst";
    Err(Box::new(Judged::new(LineVerdict::Harmful, why, source)))
}
