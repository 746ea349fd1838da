//! `nic.NIC.threaded`: NAPI polling in kernel threads instead of softirqs; since 5.12.

use crate::{
    knob::{Kind, PlanContext, Refusal, switch},
    nic_attribute::{NicAttribute, same_line},
};

/// **Source**: `/sys/class/net/X/threaded`, `0` or `1`.
pub const KIND: Kind = Kind {
    name: "nic_threaded",
    spelling: "nic.NIC.threaded=on|off",
    parse: |target| FILE.at(target),
};

static FILE: NicAttribute = NicAttribute {
    setting: "threaded",
    side: None,
    sets: "threaded napi",
    unit: "",
    judge,
    same: same_line,
    disturbs: None,
    napi: Some("threaded"),
};

fn judge(_: &PlanContext<'_>, wanted: &str) -> Result<String, Refusal> {
    switch(wanted).map(str::to_owned)
}
