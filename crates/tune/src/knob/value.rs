//! Parsers for typed values.

use model::{CpuId, CpuSet, Nanos};
use parse::hexmask;

use super::refusal::{Refusal, usage};

/// An integer between two bounds, inclusive.
///
/// # Errors
/// The text is no integer, or out of range.
pub fn number(wanted: &str, low: u64, high: u64, unit: &str) -> Result<u64, Refusal> {
    match wanted.parse::<u64>() {
        Ok(n) if (low..=high).contains(&n) => Ok(n),
        Ok(n) => usage(format!("{n} is out of range: {low} to {high} {unit}").trim_end()),
        Err(_) if wanted.starts_with(|c: char| c.is_ascii_digit()) && !unit.is_empty() => {
            usage(format!("{wanted:?} has another unit: it is a plain number of {unit}"))
        }
        Err(_) => usage(format!("{wanted:?} is no number")),
    }
}

/// A time, returned as the kernel's nanoseconds.
///
/// # Errors
/// The text is no time, or is more than a second.
pub fn nanoseconds(wanted: &str) -> Result<String, Refusal> {
    // Waiting more than a second is a unit mistake.
    let wanted = match wanted.parse::<Nanos>() {
        Ok(time) => time.0.to_string(),
        Err(_) if wanted.parse::<u64>().is_err() => {
            return usage(format!("{wanted:?} is no time such as 20us, or 20000 (ns)"));
        }
        Err(_) => wanted.to_owned(),
    };
    Ok(number(&wanted, 0, 1_000_000_000, "ns")?.to_string())
}

/// A switch: `0`, `1`, `off`, `on`.
///
/// # Errors
/// For anything else.
pub fn switch(wanted: &str) -> Result<&'static str, Refusal> {
    match wanted {
        "0" | "off" => Ok("0"),
        "1" | "on" => Ok("1"),
        _ => usage(format!("{wanted:?} is neither on nor off")),
    }
}

/// A set of CPUs as a hex mask (`f`, `3,00000000`) or, with `cpus:` before it, as a list.
///
/// # Errors
/// The text is neither.
pub fn mask(wanted: &str) -> Result<CpuSet, Refusal> {
    let parsed = match wanted.strip_prefix("cpus:") {
        Some(list) => return list_of(list),
        None => hexmask::parse(wanted.as_bytes()),
    };
    parsed.or_else(|_| {
        usage(format!(
            "{wanted:?} is no hex mask such as f or 3,00000000; for a list write cpus:0-3"
        ))
    })
}

/// A set of CPUs as a list (`0-3,8`).
///
/// # Errors
/// The text is no CPU list.
pub fn list_of(wanted: &str) -> Result<CpuSet, Refusal> {
    wanted
        .parse::<CpuSet>()
        .or_else(|_| usage(format!("{wanted:?} is no list of CPUs such as 0-3,8")))
}

/// A CPU set as a list, or as a hex mask that cannot be a list: with a letter, with `0x`, or in
/// groups of eight digits (`0000ffff,ffffffff`), as irqbalance and the kernel write it.
///
/// # Errors
/// The text is neither.
pub fn cpus_of(wanted: &str) -> Result<CpuSet, Refusal> {
    let hex = wanted.strip_prefix("mask:").or(wanted.strip_prefix("0x"));
    let mut groups = wanted.split(',').skip(usize::from(wanted.contains(',')));
    let grouped = groups.all(|g| g.len() == 8) && wanted.split(',').all(|g| g.len() <= 8);
    let letters = wanted.bytes().any(|b| b.is_ascii_alphabetic());
    match hex.or_else(|| (grouped || letters).then_some(wanted)) {
        None => list_of(wanted),
        Some(hex) => hexmask::parse(hex.as_bytes()).or_else(|_| {
            usage(format!(
                "{wanted:?} is neither a list of CPUs such as 0-3,8 nor a hex mask such as ff"
            ))
        }),
    }
}

/// Whether two masks are the same set.
pub fn same_mask(a: &str, b: &str) -> bool {
    matches!((hexmask::parse(a.as_bytes()), hexmask::parse(b.as_bytes())), (Ok(a), Ok(b)) if a == b)
}

/// A set of one CPU.
pub fn cpu(id: u32) -> CpuSet {
    [CpuId(id)].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_that_cannot_be_a_list_is_one() {
        for (text, list) in [
            ("3", "3"),
            ("0,3", "0,3"),
            ("0-3,8", "0-3,8"),
            ("10000000-10000001", ""),
            ("ff", "0-7"),
            ("0x3", "0-1"),
            ("mask:3", "0-1"),
            ("00000003", "0-1"),
            ("0000ffff,ffffffff", "0-47"),
            ("00000001,00000000", "32"),
            ("1,00000000", "32"),
            ("12345678,1", ""),
            ("1,00000000,1", "0-1"),
            ("fg", ""),
            ("", ""),
        ] {
            let said = cpus_of(text).map(|c| c.to_string()).unwrap_or_default();
            assert_eq!(said, list, "{text:?}");
        }
    }
}
