//! `nic.NIC.queue.tx-N.xps_cpus`: CPUs that send through this queue (XPS); 0 for no CPU.

use crate::{
    knob::{Kind, PlanContext, Refusal, mask, same_mask},
    nic_attribute::NicAttribute,
};

/// **Source**: `/sys/class/net/X/queues/tx-N/xps_cpus`, a CPU mask.
pub const KIND: Kind = Kind {
    name: "queue_xps_cpus",
    spelling: "nic.NIC.queue.tx-N.xps_cpus=MASK",
    parse: |target| FILE.at(target),
};

static FILE: NicAttribute = NicAttribute {
    setting: "xps_cpus",
    side: Some("tx"),
    sets: "xps",
    unit: "",
    judge,
    same: same_mask,
    disturbs: Some("a flow may change its queue once, and its packets their order"),
    napi: None,
};

fn judge(context: &PlanContext<'_>, wanted: &str) -> Result<String, Refusal> {
    let cpus = mask(wanted)?;
    context.online(&cpus)?;
    Ok(cpus.to_hex_mask())
}
