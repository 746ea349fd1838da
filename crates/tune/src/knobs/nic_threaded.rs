//! `nic.NIC.threaded`: whether kernel threads poll the queues instead of softirqs; since 5.12.

use model::tune::Radius;

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, nic_file, nic_of, switch},
};

/// **Source**: `/sys/class/net/X/threaded`.
pub struct NicThreaded;

fn nic(knob: &str) -> &str {
    nic_of(knob, "threaded").unwrap_or_default()
}

impl Knob for NicThreaded {
    fn name(&self) -> &'static str {
        "nic_threaded"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.threaded=on|off"
    }

    fn phase(&self) -> u8 {
        50
    }

    fn takes(&self, knob: &str) -> bool {
        nic_of(knob, "threaded").is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        host.text(&nic_file(nic(knob), "threaded"))
    }

    fn validate(
        &self,
        case: &Case<'_>,
        knob: &str,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if case.nic(nic(knob)).is_none() {
            return cannot("no such interface");
        }
        switch(wanted).map(str::to_owned)
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        host.write(&nic_file(nic(knob), "threaded"), value)
    }

    fn radius(&self, _: &Case<'_>, _: &str, _: &str, _: &str) -> Radius {
        Radius::none()
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        "".into()
    }

    fn owner(&self, case: &Case<'_>, knob: &str) -> String {
        case.nic_owner(nic(knob), "threaded")
    }

    fn command(&self, knob: &str, new: &str) -> String {
        format!("echo {new} > {}", nic_file(nic(knob), "threaded"))
    }
}
