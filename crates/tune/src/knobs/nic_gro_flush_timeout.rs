//! `nic.NIC.gro_flush_timeout`: how long GRO holds a packet for more to merge with it. With
//! deferred interrupts, also the time until the next poll.

use crate::{
    knob::{Kind, PlanContext, Refusal, nanoseconds},
    nic_attribute::{NicAttribute, same_line},
};

/// **Source**: `/sys/class/net/X/gro_flush_timeout`, in nanoseconds.
pub const KIND: Kind = Kind {
    name: "nic_gro_flush_timeout",
    spelling: "nic.NIC.gro_flush_timeout=NANOSECONDS",
    parse: |target| FILE.at(target),
};

static FILE: NicAttribute = NicAttribute {
    setting: "gro_flush_timeout",
    side: None,
    sets: "gro",
    unit: "ns",
    judge,
    same: same_line,
    disturbs: None,
    napi: Some("gro_flush_timeout"),
};

fn judge(_: &PlanContext<'_>, wanted: &str) -> Result<String, Refusal> {
    nanoseconds(wanted)
}
