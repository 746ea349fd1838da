//! `nic.NIC.gro_flush_timeout`: how long a packet may wait for more to join it, and with deferred interrupts how long until the next poll.

use model::tune::Radius;

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, nic_file, nic_of, number},
};

/// **Source**: `/sys/class/net/X/gro_flush_timeout`.
pub struct NicGroFlushTimeout;

fn nic(knob: &str) -> &str {
    nic_of(knob, "gro_flush_timeout").unwrap_or_default()
}

impl Knob for NicGroFlushTimeout {
    fn name(&self) -> &'static str {
        "nic_gro_flush_timeout"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.gro_flush_timeout=NANOSECONDS"
    }

    fn phase(&self) -> u8 {
        50
    }

    fn takes(&self, knob: &str) -> bool {
        nic_of(knob, "gro_flush_timeout").is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        host.text(&nic_file(nic(knob), "gro_flush_timeout"))
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
        // A second of waiting is a mistake of the unit.
        let wanted = match wanted.parse::<model::Nanos>() {
            Ok(time) => time.0.to_string(),
            Err(_) => wanted.to_owned(),
        };
        Ok(number(&wanted, 0, 1_000_000_000, "ns")?.to_string())
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        host.write(&nic_file(nic(knob), "gro_flush_timeout"), value)
    }

    fn radius(&self, _: &Case<'_>, _: &str, _: &str, _: &str) -> Radius {
        Radius::none()
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        "ns".into()
    }

    fn owner(&self, case: &Case<'_>, knob: &str) -> String {
        case.nic_owner(nic(knob), "gro_flush_timeout")
    }

    fn command(&self, knob: &str, new: &str) -> String {
        format!("echo {new} > {}", nic_file(nic(knob), "gro_flush_timeout"))
    }
}
