//! `nic.NIC.txqueuelen`: packets that a queueing discipline which asks for it may hold.

use model::tune::Radius;

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, nic_file, nic_of, number},
};

/// **Source**: `/sys/class/net/X/tx_queue_len`.
pub struct NicTxqueuelen;

fn nic(knob: &str) -> &str {
    nic_of(knob, "txqueuelen").unwrap_or_default()
}

impl Knob for NicTxqueuelen {
    fn name(&self) -> &'static str {
        "nic_txqueuelen"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.txqueuelen=PACKETS"
    }

    fn phase(&self) -> u8 {
        50
    }

    fn takes(&self, knob: &str) -> bool {
        nic_of(knob, "txqueuelen").is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        host.text(&nic_file(nic(knob), "tx_queue_len"))
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
        Ok(number(wanted, 0, 10_000_000, "packets")?.to_string())
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        host.write(&nic_file(nic(knob), "tx_queue_len"), value)
    }

    fn radius(&self, _: &Case<'_>, _: &str, _: &str, _: &str) -> Radius {
        Radius::none()
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        "packets".into()
    }

    fn owner(&self, case: &Case<'_>, knob: &str) -> String {
        case.nic_owner(nic(knob), "txqueuelen")
    }

    fn command(&self, knob: &str, new: &str) -> String {
        format!("ip link set {} txqueuelen {new}", nic(knob))
    }
}
