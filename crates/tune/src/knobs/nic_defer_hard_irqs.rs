//! `nic.NIC.napi_defer_hard_irqs`: empty polls before interrupts are switched on again; since 5.7.

use crate::{
    knob::{Kind, PlanContext, Refusal, number},
    nic_attribute::{NicAttribute, same_line},
};

/// **Source**: `/sys/class/net/X/napi_defer_hard_irqs`, a count of polls.
pub const KIND: Kind = Kind {
    name: "nic_defer_hard_irqs",
    spelling: "nic.NIC.napi_defer_hard_irqs=POLLS",
    parse: |target| FILE.at(target),
};

static FILE: NicAttribute = NicAttribute {
    setting: "napi_defer_hard_irqs",
    side: None,
    sets: "interrupt coalescing",
    unit: "empty polls",
    judge,
    same: same_line,
    disturbs: None,
    napi: Some("defer_hard_irqs"),
};

fn judge(_: &PlanContext<'_>, wanted: &str) -> Result<String, Refusal> {
    Ok(number(wanted, 0, i32::MAX as u64, "polls")?.to_string())
}
