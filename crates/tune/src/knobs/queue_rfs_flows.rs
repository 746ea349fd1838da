//! `nic.NIC.queue.rx-N.rfs_flows`: flows that this queue steers to the CPU of their reader (RFS); a
//! power of two. RFS also needs `net.core.rps_sock_flow_entries`.

use crate::{
    knob::{Kind, PlanContext, Refusal, number, usage},
    nic_attribute::{NicAttribute, same_line},
};

/// **Source**: `/sys/class/net/X/queues/rx-N/rps_flow_cnt`, a count of flows.
pub const KIND: Kind = Kind {
    name: "queue_rfs_flows",
    spelling: "nic.NIC.queue.rx-N.rfs_flows=ENTRIES",
    parse: |target| FILE.at(target),
};

static FILE: NicAttribute = NicAttribute {
    setting: "rfs_flows",
    side: Some("rx"),
    sets: "rfs",
    unit: "entries",
    judge,
    same: same_line,
    disturbs: Some("flows may change their CPU once"),
    napi: None,
};

fn judge(_: &PlanContext<'_>, wanted: &str) -> Result<String, Refusal> {
    let flows = number(wanted, 0, 1 << 30, "entries")?;
    // `store_rps_dev_flow_table_cnt` rounds up silently.
    if flows != 0 && !flows.is_power_of_two() {
        return usage(format!(
            "the kernel rounds {flows} up to {}: write that",
            flows.next_power_of_two()
        ));
    }
    Ok(flows.to_string())
}
