//! `nic.NIC.pause.rx` and its like: flow control with the other end of the wire.

use model::tune::Impact;
use probe::ask::ethtool::answers::Pause;

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Case, Knob, Refusal, cannot, nic_and, switch},
    knobs::nic_napi,
    phase::Phase,
    privilege::Need,
};

/// `ethtool -a` and `-A`.
pub struct NicPause;

const PARAMETERS: [&str; 3] = ["autoneg", "rx", "tx"];

fn parts(knob: &str) -> Option<(&str, &'static str)> {
    nic_and(knob, "pause", PARAMETERS.iter().copied())
}

fn now(host: &Host, nic: &str) -> Result<Pause, TuneError> {
    host.ethtool().pause(nic).map_err(|e| TuneError::read(&e))
}

fn slot<'p>(pause: &'p mut Pause, parameter: &str) -> &'p mut u32 {
    match parameter {
        "autoneg" => &mut pause.autoneg,
        "rx" => &mut pause.rx_pause,
        _ => &mut pause.tx_pause,
    }
}

impl Knob for NicPause {
    fn name(&self) -> &'static str {
        "nic_pause"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.pause.rx|tx|autoneg=on|off"
    }

    fn phase(&self, _: &str) -> Phase {
        Phase::Nic
    }

    fn takes(&self, knob: &str) -> bool {
        parts(knob).is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        let (nic, parameter) = parts(knob).unwrap_or_default();
        let on = *slot(&mut now(host, nic)?, parameter) != 0;
        Ok(if on { "on" } else { "off" }.into())
    }

    fn validate(
        &self,
        case: &Case<'_>,
        knob: &str,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if case.nic(parts(knob).unwrap_or_default().0).is_none() {
            return cannot("no such interface");
        }
        Ok(if switch(wanted)? == "1" { "on" } else { "off" }.into())
    }

    fn needs(&self, _: &Host, _: &str) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        let (nic, parameter) = parts(knob).unwrap_or_default();
        let mut pause = now(host, nic)?;
        *slot(&mut pause, parameter) = u32::from(value == "on");
        host.set_pause(nic, &pause)
    }

    fn impact(&self, case: &Case<'_>, knob: &str, _: &str, _: &str) -> Impact {
        case.act_impact(parts(knob).unwrap_or_default().0, Act::Pause)
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        String::new()
    }

    fn sets(&self, _: &str) -> &'static str {
        "pause"
    }

    /// A driver that closes the interface and opens it again makes its NAPI instances anew.
    fn coupled_settings(&self, host: &Host, knob: &str) -> Vec<String> {
        nic_napi::of_nic(host, parts(knob).unwrap_or_default().0, None)
    }
}
