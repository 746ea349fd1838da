//! `nic.NIC.pause.rx` and its like: Ethernet flow control with the link partner.

use model::{
    knob::{NicSetting, Target},
    tune::Impact,
};
use probe::ask::ethtool::answers::Pause;

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Kind, Knob, PlanContext, Refusal, cannot, switch},
    knobs::nic_napi,
    need::Need,
    phase::Phase,
};

/// `ethtool -a` and `-A`.
pub const KIND: Kind = Kind {
    name: "nic_pause",
    spelling: "nic.NIC.pause.rx|tx|autoneg=on|off",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Pause(parameter)) if PARAMETERS.contains(&parameter) => {
            Some(Box::new(NicPause { nic, parameter }))
        }
        _ => None,
    },
};

struct NicPause<'k> {
    nic: &'k str,
    parameter: &'k str,
}

const PARAMETERS: [&str; 3] = ["autoneg", "rx", "tx"];

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

impl Knob for NicPause<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Pause(self.parameter))
    }

    fn phase(&self) -> Phase {
        Phase::Nic
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let on = *slot(&mut now(host, self.nic)?, self.parameter) != 0;
        Ok(if on { "on" } else { "off" }.into())
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if context.nic(self.nic).is_none() {
            return cannot("no such interface");
        }
        Ok(if switch(wanted)? == "1" { "on" } else { "off" }.into())
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let mut pause = now(host, self.nic)?;
        *slot(&mut pause, self.parameter) = u32::from(value == "on");
        host.set_pause(self.nic, &pause)
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        context.act_impact(self.nic, Act::Pause)
    }

    fn sets(&self) -> &'static str {
        "pause"
    }

    /// A driver that closes and reopens the interface recreates its NAPI instances.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        nic_napi::of_nic(host, self.nic, None)
    }
}
