//! `irq.N.affinity`: the CPUs that may handle an interrupt.

use std::time::Duration;

use model::{
    IrqId, Reading,
    irq::Irq,
    knob::Target,
    tune::{Disruption, Impact},
};

use probe::facts::irq::whole_list;

use crate::{
    Host, TuneError,
    knob::{Kind, Knob, PlanContext, Refusal, cannot, cpus_of, usage},
    need::Need,
    phase::Phase,
};

/// **Source**: `/proc/irq/N/smp_affinity_list`, a cpulist.
pub const KIND: Kind = Kind {
    name: "irq_affinity",
    spelling: "irq.N.affinity=CPUS",
    parse: |target| match target {
        Target::Irq(irq) => Some(Box::new(IrqAffinity { irq: IrqId(irq) })),
        _ => None,
    },
};

/// How long a written affinity may read as the old one, in milliseconds.
const MOVE_MS: u32 = 20;

struct IrqAffinity {
    irq: IrqId,
}

/// Knob names of all interrupts' affinities.
pub(super) fn all(host: &Host) -> Vec<String> {
    let mut irqs: Vec<u32> = host
        .root()
        .entries("/proc/irq")
        .unwrap_or_default()
        .iter()
        .filter_map(|n| n.parse().ok())
        .collect();
    irqs.sort_unstable();
    irqs.iter().map(|n| format!("irq.{n}.affinity")).collect()
}

impl IrqAffinity {
    fn file(&self) -> String {
        format!("/proc/irq/{}/smp_affinity_list", self.irq)
    }

    fn fact<'c>(&self, context: &PlanContext<'c>) -> Option<&'c Irq> {
        context.facts.irqs.known()?.iter().find(|i| i.irq == self.irq)
    }
}

impl Knob for IrqAffinity {
    fn target(&self) -> Target<'_> {
        Target::Irq(self.irq.0)
    }

    fn phase(&self) -> Phase {
        Phase::Irq
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        whole_list(
            || host.text(&self.file()),
            |text| text.as_ref().is_ok_and(|t| t.trim().is_empty()),
        )
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let cpus = cpus_of(wanted)?;
        if cpus.is_empty() {
            return usage("an interrupt needs a CPU");
        }
        context.online(&cpus)?;
        let Some(irq) = self.fact(context) else { return cannot("no such interrupt") };
        if irq.managed.get() == Some(true) {
            return cannot("the kernel manages this interrupt, and its affinity cannot be set");
        }
        Ok(cpus.to_string())
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::File(self.file())]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        host.write(&self.file(), value)?;
        // The kernel moves an interrupt while it handles one (`irq_move_masked_irq`). In the middle of
        // that the file has the old CPUs.
        for _ in 0..MOVE_MS {
            if self.read(host).is_ok_and(|now| now == value) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        let why = "its queue's packets may come out of order once";
        match self.fact(context).map(|i| &i.nic) {
            Some(Reading::Known(nic)) => context.nic_impact(nic, Disruption::BriefStall, why),
            _ => Impact::none(),
        }
    }

    fn sets(&self) -> &'static str {
        "irq affinity"
    }

    fn owner(&self, context: &PlanContext<'_>) -> String {
        let keeps_off = |r: &model::tuner::Tuner| {
            r.banned_irqs.known().is_some_and(|banned| banned.contains(&self.irq))
        };
        let running = |r: &&model::tuner::Tuner| {
            r.kind == "irqbalance" && r.running.get() == Some(true) && !keeps_off(r)
        };
        context.facts.tuners.iter().find(running).map_or(String::new(), |_| {
            "irqbalance, which may move it again unless it is banned there (--banirq)".into()
        })
    }
}
