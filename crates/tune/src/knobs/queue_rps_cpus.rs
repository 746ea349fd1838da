//! `nic.NIC.queue.rx-N.rps_cpus`: CPUs that process this queue's received packets (RPS); 0 is off.

use crate::{
    knob::{Kind, PlanContext, Refusal, mask, same_mask},
    nic_attribute::NicAttribute,
};

/// **Source**: `/sys/class/net/X/queues/rx-N/rps_cpus`, a CPU mask.
pub const KIND: Kind = Kind {
    name: "queue_rps_cpus",
    spelling: "nic.NIC.queue.rx-N.rps_cpus=MASK",
    parse: |target| FILE.at(target),
};

static FILE: NicAttribute = NicAttribute {
    setting: "rps_cpus",
    side: Some("rx"),
    sets: "rps",
    unit: "",
    judge,
    same: same_mask,
    disturbs: Some("a flow may change its CPU once, and its packets their order"),
    napi: None,
};

fn judge(context: &PlanContext<'_>, wanted: &str) -> Result<String, Refusal> {
    let cpus = mask(wanted)?;
    context.online(&cpus)?;
    Ok(cpus.to_hex_mask())
}
