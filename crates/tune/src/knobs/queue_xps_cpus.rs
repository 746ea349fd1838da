//! `nic.NIC.queue.tx-N.xps_cpus`: CPUs that send through this queue (XPS); 0 is none.

use model::tune::{Radius, Reach};

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, mask, nic_file, queue_of, same_mask},
};

/// **Source**: `/sys/class/net/X/queues/tx-N/xps_cpus`.
pub struct QueueXpsCpus;

fn place(knob: &str) -> (&str, &str) {
    queue_of(knob, "tx", "xps_cpus").unwrap_or_default()
}

fn file(knob: &str) -> String {
    let (nic, queue) = place(knob);
    nic_file(nic, &format!("queues/{queue}/xps_cpus"))
}

impl Knob for QueueXpsCpus {
    fn name(&self) -> &'static str {
        "queue_xps_cpus"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.queue.tx-N.xps_cpus=MASK"
    }

    fn phase(&self) -> u8 {
        60
    }

    fn takes(&self, knob: &str) -> bool {
        queue_of(knob, "tx", "xps_cpus").is_some()
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
        let cpus = mask(wanted)?;
        case.online(&cpus)?;
        Ok(cpus.to_hex_mask())
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        host.write(&file(knob), value)
    }

    fn verify(&self, written: &str, back: &str) -> bool {
        same_mask(written, back)
    }

    fn radius(&self, case: &Case<'_>, knob: &str, _: &str, _: &str) -> Radius {
        case.nic_radius(
            place(knob).0,
            Reach::BriefStall,
            "a flow may change its queue once, and its packets their order",
        )
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        "".into()
    }

    fn owner(&self, case: &Case<'_>, knob: &str) -> String {
        case.nic_owner(place(knob).0, "xps_cpus")
    }

    fn command(&self, knob: &str, new: &str) -> String {
        format!("echo {new} > {}", file(knob))
    }
}
