//! `nic.NIC.coalesce.PARAMETER`: the delay and packet count before an interrupt.

use model::{
    Reading,
    knob::{NicSetting, Target},
    nic::Coalesce as Known,
    tune::Impact,
};
use probe::ask::ethtool::answers::Coalesce;

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Kind, Knob, PlanContext, Refusal, cannot, number, switch},
    knobs::nic_napi,
    need::Need,
    phase::Phase,
};

/// `ethtool -c` and `-C`; `PARAMETERS` holds the units.
pub const KIND: Kind = Kind {
    name: "nic_coalesce",
    spelling: "nic.NIC.coalesce.rx_usecs|tx_usecs|rx_max_frames|tx_max_frames|adaptive_rx|…=VALUE",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Coalesce(name)) => {
            Some(Box::new(NicCoalesce { nic, parameter: PARAMETERS.iter().find(|p| p.0 == name)? }))
        }
        _ => None,
    },
};

struct NicCoalesce<'k> {
    nic: &'k str,
    parameter: &'static Parameter,
}

/// Accessor for a parameter's field.
type Slot = fn(&mut Coalesce) -> &mut u32;

/// Name, unit (empty for a switch), field.
type Parameter = (&'static str, &'static str, Slot);

const PARAMETERS: &[Parameter] = &[
    ("adaptive_rx", "", |c| &mut c.use_adaptive_rx_coalesce),
    ("adaptive_tx", "", |c| &mut c.use_adaptive_tx_coalesce),
    ("rx_max_frames", "packets", |c| &mut c.rx_max_coalesced_frames),
    ("rx_usecs", "us", |c| &mut c.rx_coalesce_usecs),
    ("rx_usecs_irq", "us", |c| &mut c.rx_coalesce_usecs_irq),
    ("stats_block_usecs", "us", |c| &mut c.stats_block_coalesce_usecs),
    ("tx_max_frames", "packets", |c| &mut c.tx_max_coalesced_frames),
    ("tx_usecs", "us", |c| &mut c.tx_coalesce_usecs),
    ("tx_usecs_irq", "us", |c| &mut c.tx_coalesce_usecs_irq),
];

fn now(host: &Host, nic: &str) -> Result<Coalesce, TuneError> {
    host.ethtool().coalesce(nic).map_err(|e| TuneError::read(&e))
}

/// Why the driver lacks a parameter, if it is known to.
fn why_not(known: &Known, parameter: &str) -> Option<String> {
    let why = |r: &Reading<u32>| r.why_not().map(str::to_owned);
    match parameter {
        "adaptive_rx" => known.adaptive_rx.why_not().map(str::to_owned),
        "adaptive_tx" => known.adaptive_tx.why_not().map(str::to_owned),
        "rx_max_frames" => why(&known.rx_max_frames),
        "rx_usecs" => why(&known.rx_usecs),
        "rx_usecs_irq" => why(&known.rx_usecs_irq),
        "stats_block_usecs" => why(&known.stats_block_usecs),
        "tx_max_frames" => why(&known.tx_max_frames),
        "tx_usecs" => why(&known.tx_usecs),
        _ => why(&known.tx_usecs_irq),
    }
}

impl Knob for NicCoalesce<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Coalesce(self.parameter.0))
    }

    fn phase(&self) -> Phase {
        Phase::Nic
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let (_, unit, slot) = self.parameter;
        let value = *slot(&mut now(host, self.nic)?);
        Ok(match (unit.is_empty(), value) {
            (true, 0) => "off".into(),
            (true, _) => "on".into(),
            (false, n) => n.to_string(),
        })
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let (parameter, unit, _) = self.parameter;
        let Some(nic) = context.nic(self.nic) else { return cannot("no such interface") };
        let known = match &nic.coalesce {
            Reading::Known(known) => known,
            other => return cannot(other.why_not().unwrap_or("no coalescing").to_owned()),
        };
        if let Some(why) = why_not(known, parameter) {
            return cannot(why);
        }
        if unit.is_empty() {
            return Ok(if switch(wanted)? == "1" { "on" } else { "off" }.into());
        }
        let in_us =
            wanted.parse::<model::Nanos>().ok().filter(|t| *unit == "us" && t.0 % 1000 == 0);
        let plain = in_us.map_or_else(|| wanted.to_owned(), |t| (t.0 / 1000).to_string());
        // A tenth of a second without an interrupt is a unit mistake.
        Ok(number(&plain, 0, 100_000, unit)?.to_string())
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let mut all = now(host, self.nic)?;
        *(self.parameter.2)(&mut all) = match value {
            "on" => 1,
            "off" => 0,
            n => n.parse().map_err(|_| {
                TuneError::Usage(format!("{}: {value:?} is no number", self.target()))
            })?,
        };
        host.set_coalesce(self.nic, &all)
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        context.act_impact(self.nic, Act::Coalesce(self.parameter.0))
    }

    fn unit(&self) -> &'static str {
        self.parameter.1
    }

    fn sets(&self) -> &'static str {
        "interrupt coalescing"
    }

    /// A driver that closes and reopens the interface recreates its NAPI instances.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        nic_napi::of_nic(host, self.nic, None)
    }
}
