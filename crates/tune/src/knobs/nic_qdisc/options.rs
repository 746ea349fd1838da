//! Options of queueing disciplines: their spelling, and the kernel's encoding.
//!
//! **Source**: `include/uapi/linux/pkt_sched.h`; names as `tc` has them (tc-fq(8),
//! tc-fq_codel(8), tc-pfifo(8)).

use model::{BitsPerSec, Bytes, Nanos};
use parse::netlink::{Request, attributes, u32_at};

use crate::knob::{Refusal, usage};

/// The meaning of a numeric option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Count,
    Bytes,
    /// Microseconds in the kernel's attribute.
    Us,
    /// Microseconds, which the kernel keeps in units of 1,024 ns.
    CodelUs,
    /// Nanoseconds in the kernel's attribute.
    Ns,
    /// Bytes per second; all ones means no limit.
    Rate,
    /// A power of two; the kernel takes its logarithm.
    Log2,
    /// A switch with a separate name for off, one or four bytes wide.
    Switch(&'static str, usize),
}

/// Kind, name, attribute (0: the whole of the options is this number), meaning.
type Spec = (&'static str, &'static str, u16, Unit);

const SPECS: &[Spec] = &[
    ("pfifo", "limit", 0, Unit::Count),
    ("bfifo", "limit", 0, Unit::Bytes),
    ("fq", "limit", 1, Unit::Count),
    ("fq", "flow_limit", 2, Unit::Count),
    ("fq", "quantum", 3, Unit::Bytes),
    ("fq", "initial_quantum", 4, Unit::Bytes),
    ("fq", "pacing", 5, Unit::Switch("nopacing", 4)),
    ("fq", "maxrate", 7, Unit::Rate),
    ("fq", "buckets", 8, Unit::Log2),
    ("fq", "refill_delay", 9, Unit::Us),
    ("fq", "orphan_mask", 10, Unit::Count),
    ("fq", "low_rate_threshold", 11, Unit::Rate),
    ("fq", "ce_threshold", 12, Unit::Us),
    ("fq", "timer_slack", 13, Unit::Ns),
    ("fq", "horizon", 14, Unit::Us),
    ("fq", "horizon_drop", 15, Unit::Switch("horizon_cap", 1)),
    ("fq_codel", "target", 1, Unit::CodelUs),
    ("fq_codel", "limit", 2, Unit::Count),
    ("fq_codel", "interval", 3, Unit::CodelUs),
    ("fq_codel", "ecn", 4, Unit::Switch("noecn", 4)),
    ("fq_codel", "flows", 5, Unit::Count),
    ("fq_codel", "quantum", 6, Unit::Bytes),
    ("fq_codel", "ce_threshold", 7, Unit::CodelUs),
    ("fq_codel", "drop_batch", 8, Unit::Count),
    ("fq_codel", "memory_limit", 9, Unit::Bytes),
];

/// Disciplines that can be requested.
pub const KINDS: [&str; 6] = ["fq", "fq_codel", "pfifo", "bfifo", "pfifo_fast", "noqueue"];

/// Whether a discipline's options, as the kernel dumps them, restore it exactly.
pub fn comes_back(kind: &str) -> bool {
    KINDS.contains(&kind) || matches!(kind, "mq" | "tbf" | "noop")
}

/// An option with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    attribute: u16,
    bytes: Vec<u8>,
    text: String,
    /// The bytes that the kernel dumps after taking it.
    shown: Vec<u8>,
}

/// Parses options such as `limit 1000 pacing` for a kind.
///
/// # Errors
/// The unknown word.
pub fn parse(kind: &str, words: &[&str]) -> Result<Vec<Set>, Refusal> {
    let mut all: Vec<Set> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let named = |s: &&Spec| s.0 == kind && (s.1 == *word || off(s.3) == Some(*word));
        let Some(spec) = SPECS.iter().find(named) else {
            let has: Vec<&str> = SPECS.iter().filter(|s| s.0 == kind).map(|s| s.1).collect();
            return usage(format!("{kind} has no option {word:?}; it has: {}", has.join(", ")));
        };
        let set = match spec.3 {
            Unit::Switch(..) => switch(spec, word),
            _ => match words.next() {
                Some(value) => set(spec, value)?,
                None => return usage(format!("{kind} {word}: a value is missing")),
            },
        };
        if all.iter().any(|s| s.attribute == set.attribute) {
            return usage(format!("{kind} {word} is there twice"));
        }
        all.push(set);
    }
    Ok(all)
}

fn off(unit: Unit) -> Option<&'static str> {
    if let Unit::Switch(off, _) = unit { Some(off) } else { None }
}

fn switch(spec: &Spec, word: &str) -> Set {
    let width = if let Unit::Switch(_, width) = spec.3 { width } else { 4 };
    let on = u32::from(spec.1 == word).to_ne_bytes();
    // One byte wide, the value is the same in either byte order.
    let bytes = if width == 1 { vec![u8::from(spec.1 == word)] } else { on.to_vec() };
    Set { attribute: spec.2, shown: bytes.clone(), bytes, text: word.into() }
}

fn set(spec: &Spec, value: &str) -> Result<Set, Refusal> {
    let (kind, name, attribute, unit) = *spec;
    let bare = value.parse::<u64>().ok();
    let n = match unit {
        Unit::Count | Unit::Log2 => bare,
        Unit::Bytes => bare.or_else(|| value.parse::<Bytes>().ok().map(|b| b.0)),
        // A bare number is refused: tc reads it as microseconds, other tools as seconds.
        Unit::Us | Unit::CodelUs => value.parse::<Nanos>().ok().map(|t| t.0 / 1000),
        Unit::Ns => value.parse::<Nanos>().ok().map(|t| t.0),
        Unit::Rate => value.parse::<BitsPerSec>().ok().map(|r| r.0 / 8),
        Unit::Switch(..) => None,
    };
    let n = n.and_then(|n| u32::try_from(n).ok());
    let Some(n) = n.filter(|n| unit != Unit::Log2 || n.is_power_of_two()) else {
        return usage(format!("{kind} {name}: {value:?} is no {}", means(unit)));
    };
    let (sent, shown) = match unit {
        Unit::Log2 => (n.trailing_zeros(), n.trailing_zeros()),
        Unit::CodelUs => (n, codel(n)),
        _ => (n, n),
    };
    let bytes = sent.to_ne_bytes().to_vec();
    Ok(Set {
        attribute,
        bytes,
        shown: shown.to_ne_bytes().to_vec(),
        text: format!("{name} {value}"),
    })
}

fn means(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "whole number of 32 bits",
        Unit::Bytes => "size such as 1514 or 32M",
        Unit::Us | Unit::CodelUs | Unit::Ns => "time such as 5ms",
        Unit::Rate => "rate such as 1Gbit, below 34 Gbit/s",
        Unit::Log2 => "power of two",
        Unit::Switch(..) => "switch",
    }
}

/// Microseconds after CoDel's conversion and back (`codel_time_to_us`, `CODEL_SHIFT` 10).
fn codel(us: u32) -> u32 {
    let kept = u64::from(us) * 1000 / 1024;
    u32::try_from(kept * 1024 / 1000).unwrap_or(u32::MAX)
}

/// Encodes these options as the payload of `TCA_OPTIONS`.
pub fn encode(all: &[Set]) -> Vec<u8> {
    if let [Set { attribute: 0, bytes, .. }] = all {
        return bytes.clone();
    }
    run(all.iter().map(|s| (s.attribute, s.bytes.clone())))
}

fn run(all: impl Iterator<Item = (u16, Vec<u8>)>) -> Vec<u8> {
    let none = Request::one(0, &[]);
    let head = none.bytes(0).len();
    let whole = all.fold(none, |r, (kind, bytes)| r.with(kind, &bytes)).bytes(0);
    whole.get(head..).unwrap_or_default().to_vec()
}

/// Whether dumped options hold all of these.
pub fn hold(dumped: &[u8], all: &[Set]) -> bool {
    all.iter().all(|s| match s.attribute {
        0 => dumped.get(..4) == Some(s.shown.as_slice()),
        kind => attributes(dumped).any(|a| a.kind == kind && a.bytes == s.shown),
    })
}

/// Dumped options in the form that restores them.
pub fn to_restore(kind: &str, dumped: &[u8]) -> Vec<u8> {
    match kind {
        "mq" | "noqueue" | "pfifo_fast" | "noop" => vec![],
        // A dump rounds times down, so restoring it as it is would shrink the time on every round.
        "fq_codel" => run(attributes(dumped).map(|a| match (a.kind, u32_at(a.bytes, 0)) {
            (1 | 3 | 7, Some(us)) => (a.kind, us.saturating_add(1).to_ne_bytes().to_vec()),
            _ => (a.kind, a.bytes.to_vec()),
        })),
        _ => dumped.to_vec(),
    }
}

pub fn spelled(all: &[Set]) -> String {
    all.iter().map(|s| format!(" {}", s.text)).collect()
}

/// Dumped options for the user: those of [`SPECS`] by name, others in hex.
pub fn show(kind: &str, dumped: &[u8]) -> String {
    let spec = |attribute| SPECS.iter().find(|s| s.0 == kind && s.2 == attribute);
    if let (Some((_, name, ..)), Some(n)) = (spec(0), u32_at(dumped, 0)) {
        return format!(" {name} {n}");
    }
    if matches!(kind, "mq" | "noqueue" | "pfifo_fast" | "noop") {
        return String::new();
    }
    let one = |a: parse::netlink::Attribute<'_>| match (spec(a.kind), a.unsigned()) {
        (Some((_, name, _, unit)), Some(n)) => match unit {
            Unit::Switch(off, _) => format!(" {}", if n > 0 { name } else { off }),
            Unit::Us | Unit::CodelUs => format!(" {name} {n}us"),
            Unit::Ns => format!(" {name} {n}ns"),
            Unit::Rate if n == u64::from(u32::MAX) => format!(" {name} none"),
            Unit::Rate => format!(" {name} {}bit", n * 8),
            Unit::Log2 => format!(" {name} {}", 1u64.checked_shl(n as u32).unwrap_or(0)),
            Unit::Count | Unit::Bytes => format!(" {name} {n}"),
        },
        _ => format!(" #{} {}", a.kind, hex(a.bytes)),
    };
    attributes(dumped).map(one).collect()
}

/// Bytes as hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spelled_is_encoded_held_and_shown() {
        let all =
            parse("fq", &["limit", "20000", "nopacing", "buckets", "2048", "maxrate", "1Gbit"])
                .unwrap();
        let bytes = encode(&all);
        assert!(hold(&bytes, &all));
        assert_eq!(show("fq", &bytes), " limit 20000 nopacing buckets 2048 maxrate 1000000000bit");
        assert_eq!(spelled(&all), " limit 20000 nopacing buckets 2048 maxrate 1Gbit");
        let fifo = parse("pfifo", &["limit", "77"]).unwrap();
        assert_eq!(encode(&fifo), 77u32.to_ne_bytes());
        assert!(hold(&encode(&fifo), &fifo) && !hold(&78u32.to_ne_bytes(), &fifo));
        for bad in [
            &["limit"][..],
            &["limit", "x"],
            &["blue", "1"],
            &["buckets", "1000"],
            &["maxrate", "1"],
            &["limit", "1", "limit", "2"],
            &["limit", "99999999999"],
        ] {
            assert!(parse("fq", bad).is_err(), "{bad:?} was taken");
        }
    }

    /// CoDel dumps 5 ms as 4.999 ms; writing 4.999 back would store less.
    #[test]
    fn codels_times_come_back_exactly() {
        for us in (0..200_000).step_by(37) {
            let shown = codel(us);
            assert_eq!(codel(shown + 1), shown, "{us}");
            let target = run([(1u16, shown.to_ne_bytes().to_vec())].into_iter());
            let again = to_restore("fq_codel", &target);
            let sent = attributes(&again).next().unwrap().u32().unwrap();
            assert_eq!(codel(sent), shown);
        }
        assert_eq!(codel(5000), 4999);
    }
}
