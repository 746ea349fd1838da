//! `nic.NIC.queue.rx-N.rps_cpus`: CPUs to which received packets are handed on (RPS); 0 is off.

use model::tune::{Radius, Reach};

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, mask, nic_file, queue_of, same_mask},
};

/// **Source**: `/sys/class/net/X/queues/rx-N/rps_cpus`.
pub struct QueueRpsCpus;

fn place(knob: &str) -> (&str, &str) {
    queue_of(knob, "rx", "rps_cpus").unwrap_or_default()
}

fn file(knob: &str) -> String {
    let (nic, queue) = place(knob);
    nic_file(nic, &format!("queues/{queue}/rps_cpus"))
}

impl Knob for QueueRpsCpus {
    fn name(&self) -> &'static str {
        "queue_rps_cpus"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.queue.rx-N.rps_cpus=MASK"
    }

    fn phase(&self) -> u8 {
        60
    }

    fn takes(&self, knob: &str) -> bool {
        queue_of(knob, "rx", "rps_cpus").is_some()
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
            "a flow may change its CPU once, and its packets their order",
        )
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        "".into()
    }

    fn owner(&self, case: &Case<'_>, knob: &str) -> String {
        case.nic_owner(place(knob).0, "rps_cpus")
    }

    fn command(&self, knob: &str, new: &str) -> String {
        format!("echo {new} > {}", file(knob))
    }
}
