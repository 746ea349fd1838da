//! `nic.NIC.queue.rx-N.rfs_flows`: flows that this queue steers to where their reader runs (RFS); a power of two. The other half is `net.core.rps_sock_flow_entries`.

use model::tune::{Radius, Reach};

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, nic_file, number, queue_of, usage},
};

/// **Source**: `/sys/class/net/X/queues/rx-N/rps_flow_cnt`.
pub struct QueueRfsFlows;

fn place(knob: &str) -> (&str, &str) {
    queue_of(knob, "rx", "rfs_flows").unwrap_or_default()
}

fn file(knob: &str) -> String {
    let (nic, queue) = place(knob);
    nic_file(nic, &format!("queues/{queue}/rps_flow_cnt"))
}

impl Knob for QueueRfsFlows {
    fn name(&self) -> &'static str {
        "queue_rfs_flows"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.queue.rx-N.rfs_flows=ENTRIES"
    }

    fn phase(&self) -> u8 {
        60
    }

    fn takes(&self, knob: &str) -> bool {
        queue_of(knob, "rx", "rfs_flows").is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        host.text(&file(knob))
    }

    fn validate(
        &self,
        case: &Case<'_>,
        knob: &str,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if case.nic(place(knob).0).is_none() {
            return cannot("no such interface");
        }
        let flows = number(wanted, 0, 1 << 30, "entries")?;
        // `store_rps_dev_flow_table_cnt` rounds up without a word.
        if flows != 0 && !flows.is_power_of_two() {
            return usage(format!(
                "the kernel rounds {flows} up to {}: write that",
                flows.next_power_of_two()
            ));
        }
        Ok(flows.to_string())
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        host.write(&file(knob), value)
    }

    fn radius(&self, case: &Case<'_>, knob: &str, _: &str, _: &str) -> Radius {
        case.nic_radius(place(knob).0, Reach::BriefStall, "flows may change their CPU once")
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        "entries".into()
    }

    fn owner(&self, case: &Case<'_>, knob: &str) -> String {
        case.nic_owner(place(knob).0, "rfs_flows")
    }

    fn command(&self, knob: &str, new: &str) -> String {
        format!("echo {new} > {}", file(knob))
    }
}
