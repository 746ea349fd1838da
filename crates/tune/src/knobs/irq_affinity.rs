//! `irq.N.affinity`: the CPUs on which an interrupt may be raised.

use model::{
    IrqId, Reading,
    irq::Irq,
    tune::{Disruption, Impact},
};

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, cpus_of, irq_of, usage},
    phase::Phase,
    privilege::Need,
};

/// **Source**: `/proc/irq/N/smp_affinity_list`.
pub struct IrqAffinity;

fn number(knob: &str) -> Option<u32> {
    irq_of(knob)?.parse().ok()
}

fn file(knob: &str) -> String {
    format!("/proc/irq/{}/smp_affinity_list", number(knob).unwrap_or_default())
}

/// The names of all interrupts' affinities.
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

fn irq<'c>(case: &Case<'c>, knob: &str) -> Option<&'c Irq> {
    let id = IrqId(number(knob)?);
    case.facts.irqs.known()?.iter().find(|i| i.irq == id)
}

impl Knob for IrqAffinity {
    fn name(&self) -> &'static str {
        "irq_affinity"
    }

    fn spelling(&self) -> &'static str {
        "irq.N.affinity=CPUS"
    }

    fn phase(&self, _: &str) -> Phase {
        Phase::Irq
    }

    fn takes(&self, knob: &str) -> bool {
        number(knob).is_some_and(|n| knob == format!("irq.{n}.affinity"))
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        host.text(&file(knob))
    }

    fn validate(
        &self,
        case: &Case<'_>,
        knob: &str,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let cpus = cpus_of(wanted)?;
        if cpus.is_empty() {
            return usage("an interrupt needs a CPU");
        }
        case.online(&cpus)?;
        let Some(irq) = irq(case, knob) else { return cannot("no such interrupt") };
        if irq.managed.get() == Some(true) {
            return cannot("the kernel manages this interrupt and lets nobody place it");
        }
        Ok(cpus.to_string())
    }

    fn needs(&self, _: &Host, knob: &str) -> Vec<Need> {
        vec![Need::File(file(knob))]
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        host.write(&file(knob), value)
    }

    fn impact(&self, case: &Case<'_>, knob: &str, _: &str, _: &str) -> Impact {
        let why = "its queue's packets may come out of order once";
        match irq(case, knob).map(|i| &i.nic) {
            Some(Reading::Known(nic)) => case.nic_impact(nic, Disruption::BriefStall, why),
            _ => Impact::none(),
        }
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        String::new()
    }

    fn sets(&self, _: &str) -> &'static str {
        "irq affinity"
    }

    fn owner(&self, case: &Case<'_>, knob: &str) -> String {
        let id = number(knob).map(IrqId);
        let keeps_off = |r: &model::tuner::Tuner| {
            r.banned_irqs.known().is_some_and(|banned| id.is_some_and(|id| banned.contains(&id)))
        };
        let running = |r: &&model::tuner::Tuner| {
            r.kind == "irqbalance" && r.running.get() == Some(true) && !keeps_off(r)
        };
        case.facts.tuners.iter().find(running).map_or(String::new(), |_| {
            "irqbalance, which may move it again unless it is banned there (--banirq)".into()
        })
    }
}
