//! `nic.NIC.rings.rx` and its like: descriptors of a queue.

use model::tune::Impact;
use probe::ask::ethtool::answers::Rings;

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Case, Knob, Refusal, cannot, nic_and, number},
    knobs::nic_napi,
    phase::Phase,
    privilege::Need,
};

/// `ethtool -g` and `-G`.
pub struct NicRings;

const RINGS: [&str; 4] = ["rx", "rx_mini", "rx_jumbo", "tx"];

fn parts(knob: &str) -> Option<(&str, &'static str)> {
    nic_and(knob, "rings", RINGS.iter().copied())
}

/// One of the four numbers.
fn slot<'r>(rings: &'r mut Rings, ring: &str) -> &'r mut u32 {
    match ring {
        "rx" => &mut rings.rx_pending,
        "rx_mini" => &mut rings.rx_mini_pending,
        "rx_jumbo" => &mut rings.rx_jumbo_pending,
        _ => &mut rings.tx_pending,
    }
}

fn absent(knob: &str) -> TuneError {
    TuneError::Absent(format!("{knob}: no such ring"))
}

impl Knob for NicRings {
    fn name(&self) -> &'static str {
        "nic_rings"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.rings.rx|rx_mini|rx_jumbo|tx=DESCRIPTORS"
    }

    fn phase(&self, _: &str) -> Phase {
        Phase::Rings
    }

    fn takes(&self, knob: &str) -> bool {
        parts(knob).is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        let (nic, ring) = parts(knob).ok_or_else(|| absent(knob))?;
        let mut rings = host.ethtool().rings(nic).map_err(|e| TuneError::read(&e))?;
        Ok(slot(&mut rings, ring).to_string())
    }

    fn validate(
        &self,
        case: &Case<'_>,
        knob: &str,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let (name, ring) = parts(knob).unwrap_or_default();
        let Some(nic) = case.nic(name) else { return cannot("no such interface") };
        let Some(rings) = nic.rings.known() else {
            return cannot(nic.rings.why_not().unwrap_or("no rings").to_owned());
        };
        let most = match ring {
            "rx" => rings.max_rx,
            "rx_mini" => rings.max_rx_mini,
            "rx_jumbo" => rings.max_rx_jumbo,
            _ => rings.max_tx,
        };
        Ok(number(wanted, 1, u64::from(most), "descriptors")?.to_string())
    }

    fn needs(&self, _: &Host, _: &str) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        let (nic, ring) = parts(knob).ok_or_else(|| absent(knob))?;
        let mut rings = host.ethtool().rings(nic).map_err(|e| TuneError::read(&e))?;
        *slot(&mut rings, ring) = value
            .parse()
            .map_err(|_| TuneError::Usage(format!("{knob}: {value:?} is no number")))?;
        host.set_rings(nic, &rings)
    }

    fn impact(&self, case: &Case<'_>, knob: &str, _: &str, _: &str) -> Impact {
        let nic = parts(knob).unwrap_or_default().0;
        case.act_impact(nic, Act::Rings)
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        "descriptors".into()
    }

    fn sets(&self, _: &str) -> &'static str {
        "rings"
    }

    /// A driver that closes the interface and opens it again makes its NAPI instances anew.
    fn coupled_settings(&self, host: &Host, knob: &str) -> Vec<String> {
        nic_napi::of_nic(host, parts(knob).unwrap_or_default().0, None)
    }
}
