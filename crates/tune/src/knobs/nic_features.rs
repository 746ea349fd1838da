//! `nic.NIC.features.NAME`: an offload or another switch of `ethtool -k`, by the kernel's name.

use model::{
    knob::{NicSetting, Target},
    tune::Impact,
};
use probe::ask::ethtool::answers::Feature;

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Kind, Knob, PlanContext, Refusal, cannot, switch},
    knobs::nic_napi,
    need::Need,
    phase::Phase,
};

/// `ethtool -k` and `-K`. An exact value is the wanted state, and the active one if it differs: `on
/// (not in force)`, `off (forced on)`. Undoing restores the wanted state.
pub const KIND: Kind = Kind {
    name: "nic_features",
    spelling: "nic.NIC.features.NAME=on|off",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Feature(name)) => Some(Box::new(NicFeatures { nic, name })),
        _ => None,
    },
};

struct NicFeatures<'k> {
    nic: &'k str,
    name: &'k str,
}

impl NicFeatures<'_> {
    fn now(&self, host: &Host) -> Result<Feature, TuneError> {
        let all = host.ethtool().features(self.nic).map_err(|e| TuneError::read(&e))?;
        all.into_iter().find(|f| f.name == self.name).ok_or_else(|| {
            TuneError::Absent(format!("{}: this kernel has no such feature", self.target()))
        })
    }
}

impl Knob for NicFeatures<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Feature(self.name))
    }

    fn phase(&self) -> Phase {
        Phase::Features
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let f = self.now(host)?;
        let text = match (f.requested, f.active) {
            (true, true) => "on",
            (false, false) => "off",
            (true, false) => "on (not in force)",
            (false, true) => "off (forced on)",
        };
        Ok(text.into())
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let feature = self.name;
        let Some(nic) = context.nic(self.nic) else { return cannot("no such interface") };
        let on = switch(wanted)? == "1";
        let known = nic.features.known().and_then(|f| f.get(feature));
        if known.is_some_and(|f| f.fixed) {
            return cannot("the driver does not let it change");
        }
        if feature == "rx-ntuple-filter"
            && !on
            && let Some(rules @ 1..) = nic.ntuple_rules.get()
        {
            return cannot(format!("{rules} rules are in use, and would be lost with it"));
        }
        if feature == "rx-lro" && on {
            let forwards = context.facts.sysctls.get("net.ipv4.ip_forward");
            if forwards.and_then(|f| f.value.known()).is_some_and(|v| v == "1") {
                return cannot("this host forwards, and merged packets cannot be forwarded");
            }
        }
        Ok(if on { "on" } else { "off" }.into())
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        host.set_feature(self.nic, self.name, value.starts_with("on"))
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        context.act_impact(self.nic, Act::Feature(self.name))
    }

    fn sets(&self) -> &'static str {
        "offloads"
    }

    /// A driver that closes and reopens the interface recreates its NAPI instances.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        nic_napi::of_nic(host, self.nic, None)
    }
}
