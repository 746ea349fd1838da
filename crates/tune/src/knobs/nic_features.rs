//! `nic.NIC.features.NAME`: an offload or another switch of `ethtool -k`, by the kernel's name.

use model::tune::Impact;
use probe::ask::ethtool::answers::Feature;

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Case, Knob, Refusal, cannot, is_nic_name, switch},
    knobs::nic_napi,
    phase::Phase,
    privilege::Need,
};

/// `ethtool -k` and `-K`. An exact value is what is wanted, and where they differ what is: `on
/// (not in force)`, `off (forced on)`. What is wanted is what is put back.
pub struct NicFeatures;

fn parts(knob: &str) -> Option<(&str, &str)> {
    let (nic, feature) = knob.strip_prefix("nic.")?.rsplit_once(".features.")?;
    let fine = !feature.is_empty() && is_nic_name(nic);
    fine.then_some((nic, feature))
}

fn feature(host: &Host, knob: &str) -> Result<Feature, TuneError> {
    let (nic, name) = parts(knob).unwrap_or_default();
    let all = host.ethtool().features(nic).map_err(|e| TuneError::read(&e))?;
    all.into_iter()
        .find(|f| f.name == name)
        .ok_or_else(|| TuneError::Absent(format!("{knob}: this kernel has no such feature")))
}

impl Knob for NicFeatures {
    fn name(&self) -> &'static str {
        "nic_features"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.features.NAME=on|off"
    }

    fn phase(&self, _: &str) -> Phase {
        Phase::Features
    }

    fn takes(&self, knob: &str) -> bool {
        parts(knob).is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        let f = feature(host, knob)?;
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
        case: &Case<'_>,
        knob: &str,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let (name, feature) = parts(knob).unwrap_or_default();
        let Some(nic) = case.nic(name) else { return cannot("no such interface") };
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
            let forwards = case.facts.sysctls.get("net.ipv4.ip_forward");
            if forwards.and_then(|f| f.value.known()).is_some_and(|v| v == "1") {
                return cannot("this host forwards, and merged packets cannot be forwarded");
            }
        }
        Ok(if on { "on" } else { "off" }.into())
    }

    fn needs(&self, _: &Host, _: &str) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        let (nic, name) = parts(knob).unwrap_or_default();
        host.set_feature(nic, name, value.starts_with("on"))
    }

    fn impact(&self, case: &Case<'_>, knob: &str, _: &str, _: &str) -> Impact {
        let (nic, feature) = parts(knob).unwrap_or_default();
        case.act_impact(nic, Act::Feature(feature))
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        String::new()
    }

    fn sets(&self, _: &str) -> &'static str {
        "offloads"
    }

    /// A driver that closes the interface and opens it again makes its NAPI instances anew.
    fn coupled_settings(&self, host: &Host, knob: &str) -> Vec<String> {
        nic_napi::of_nic(host, parts(knob).unwrap_or_default().0, None)
    }
}
