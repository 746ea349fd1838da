//! `nic.NIC.rings.rx` and its like: ring size, in descriptors per queue.

use model::{
    knob::{NicSetting, Target},
    tune::Impact,
};
use probe::ask::ethtool::answers::Rings;

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Kind, Knob, PlanContext, Refusal, cannot, number},
    knobs::nic_napi,
    need::Need,
    phase::Phase,
};

/// `ethtool -g` and `-G`.
pub const KIND: Kind = Kind {
    name: "nic_rings",
    spelling: "nic.NIC.rings.rx|rx_mini|rx_jumbo|tx=DESCRIPTORS",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Ring(ring)) if RINGS.contains(&ring) => {
            Some(Box::new(NicRings { nic, ring }))
        }
        _ => None,
    },
};

struct NicRings<'k> {
    nic: &'k str,
    ring: &'k str,
}

const RINGS: [&str; 4] = ["rx", "rx_mini", "rx_jumbo", "tx"];

/// The field of one of the four rings.
fn slot<'r>(rings: &'r mut Rings, ring: &str) -> &'r mut u32 {
    match ring {
        "rx" => &mut rings.rx_pending,
        "rx_mini" => &mut rings.rx_mini_pending,
        "rx_jumbo" => &mut rings.rx_jumbo_pending,
        _ => &mut rings.tx_pending,
    }
}

impl Knob for NicRings<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Ring(self.ring))
    }

    fn phase(&self) -> Phase {
        Phase::Rings
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let mut rings = host.ethtool().rings(self.nic).map_err(|e| TuneError::read(&e))?;
        Ok(slot(&mut rings, self.ring).to_string())
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let Some(nic) = context.nic(self.nic) else { return cannot("no such interface") };
        let Some(rings) = nic.rings.known() else {
            return cannot(nic.rings.why_not().unwrap_or("no rings").to_owned());
        };
        let most = match self.ring {
            "rx" => rings.max_rx,
            "rx_mini" => rings.max_rx_mini,
            "rx_jumbo" => rings.max_rx_jumbo,
            _ => rings.max_tx,
        };
        Ok(number(wanted, 1, u64::from(most), "descriptors")?.to_string())
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let mut rings = host.ethtool().rings(self.nic).map_err(|e| TuneError::read(&e))?;
        *slot(&mut rings, self.ring) = value
            .parse()
            .map_err(|_| TuneError::Usage(format!("{}: {value:?} is no number", self.target())))?;
        host.set_rings(self.nic, &rings)
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        context.act_impact(self.nic, Act::Rings)
    }

    fn unit(&self) -> &'static str {
        "descriptors"
    }

    fn sets(&self) -> &'static str {
        "rings"
    }

    /// A driver that closes and reopens the interface recreates its NAPI instances.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        nic_napi::of_nic(host, self.nic, None)
    }
}
