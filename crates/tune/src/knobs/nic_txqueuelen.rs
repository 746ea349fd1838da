//! `nic.NIC.txqueuelen`: queue length, in packets, for qdiscs that use the interface's value.

use crate::{
    knob::{Kind, PlanContext, Refusal, number},
    nic_attribute::{NicAttribute, same_line},
};

/// **Source**: `/sys/class/net/X/tx_queue_len`, in packets.
pub const KIND: Kind = Kind {
    name: "nic_txqueuelen",
    spelling: "nic.NIC.txqueuelen=PACKETS",
    parse: |target| FILE.at(target),
};

static FILE: NicAttribute = NicAttribute {
    setting: "txqueuelen",
    side: None,
    sets: "txqueuelen",
    unit: "packets",
    judge,
    same: same_line,
    disturbs: None,
    napi: None,
};

fn judge(_: &PlanContext<'_>, wanted: &str) -> Result<String, Refusal> {
    Ok(number(wanted, 0, 10_000_000, "packets")?.to_string())
}
