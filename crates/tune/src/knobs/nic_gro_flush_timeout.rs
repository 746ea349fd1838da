//! `nic.NIC.gro_flush_timeout`: how long a packet may wait for more to join it, and with deferred interrupts how long until the next poll.

use crate::{
    attribute::{Attribute, same_line},
    knob::{Case, Kind, Refusal, number, usage},
};

/// **Source**: `/sys/class/net/X/gro_flush_timeout`.
pub const KIND: Kind = Kind {
    name: "nic_gro_flush_timeout",
    spelling: "nic.NIC.gro_flush_timeout=NANOSECONDS",
    parse: |target| FILE.at(target),
};

static FILE: Attribute = Attribute {
    setting: "gro_flush_timeout",
    side: None,
    sets: "gro",
    unit: "ns",
    judge,
    same: same_line,
    disturbs: None,
    napi: Some("gro_flush_timeout"),
};

fn judge(_: &Case<'_>, wanted: &str) -> Result<String, Refusal> {
    nanoseconds(wanted)
}

/// A time, in the kernel's nanoseconds.
pub fn nanoseconds(wanted: &str) -> Result<String, Refusal> {
    // A second of waiting is a mistake of the unit.
    let wanted = match wanted.parse::<model::Nanos>() {
        Ok(time) => time.0.to_string(),
        Err(_) if wanted.parse::<u64>().is_err() => {
            return usage(format!("{wanted:?} is no time such as 20us, or 20000 (ns)"));
        }
        Err(_) => wanted.to_owned(),
    };
    Ok(number(&wanted, 0, 1_000_000_000, "ns")?.to_string())
}
