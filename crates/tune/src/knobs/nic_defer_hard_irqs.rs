//! `nic.NIC.napi_defer_hard_irqs`: empty polls before interrupts are switched on again; since 5.7.

use model::tune::Radius;

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, nic_file, nic_of, number},
};

/// **Source**: `/sys/class/net/X/napi_defer_hard_irqs`.
pub struct NicDeferHardIrqs;

fn nic(knob: &str) -> &str {
    nic_of(knob, "napi_defer_hard_irqs").unwrap_or_default()
}

impl Knob for NicDeferHardIrqs {
    fn name(&self) -> &'static str {
        "nic_defer_hard_irqs"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.napi_defer_hard_irqs=POLLS"
    }

    fn phase(&self) -> u8 {
        50
    }

    fn takes(&self, knob: &str) -> bool {
        nic_of(knob, "napi_defer_hard_irqs").is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        host.text(&nic_file(nic(knob), "napi_defer_hard_irqs"))
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
        Ok(number(wanted, 0, i32::MAX as u64, "polls")?.to_string())
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        host.write(&nic_file(nic(knob), "napi_defer_hard_irqs"), value)
    }

    fn radius(&self, _: &Case<'_>, _: &str, _: &str, _: &str) -> Radius {
        Radius::none()
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        "empty polls".into()
    }

    fn owner(&self, case: &Case<'_>, knob: &str) -> String {
        case.nic_owner(nic(knob), "napi_defer_hard_irqs")
    }

    fn command(&self, knob: &str, new: &str) -> String {
        format!("echo {new} > {}", nic_file(nic(knob), "napi_defer_hard_irqs"))
    }
}
