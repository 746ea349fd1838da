//! `irqbalance.banned_cpus`: CPUs that the running irqbalance keeps free of interrupts.

use model::{CpuSet, knob::Target};

use super::{
    irq_affinity,
    irqbalance::{exact, gone, parsed, reported_another, settings_files},
};
use crate::{
    Host, TuneError,
    knob::{Kind, Knob, PlanContext, Refusal, Undone, cannot, cpus_of, harmful},
    phase::Phase,
};

/// Sent to irqbalance's socket; lasts until it ends. **Source**: the socket's `setup`, its
/// environment. An exact value is the process's number and start time, the banned CPUs, and the
/// CPUs of its own settings. If the two sets are equal, undoing returns irqbalance to its settings.
pub const KIND: Kind = Kind {
    name: "irqbalance_cpus",
    spelling: "irqbalance.banned_cpus=CPUS|+CPUS|none",
    parse: |target| match target {
        Target::Irqbalance("banned_cpus") => Some(Box::new(IrqbalanceCpus)),
        _ => None,
    },
};

struct IrqbalanceCpus;

const OWN: &str = " its own: ";

fn spelled(cpus: &CpuSet) -> String {
    if cpus.is_empty() { "none".into() } else { cpus.to_string() }
}

fn cpus(text: &str) -> Result<CpuSet, Refusal> {
    if text == "none" { Ok(CpuSet::default()) } else { cpus_of(text) }
}

/// The banned CPUs of an exact value, and those of irqbalance's settings.
fn parts(exact: &str) -> Option<(&str, &str)> {
    parsed(exact)?.1.split_once(OWN)
}

impl Knob for IrqbalanceCpus {
    fn target(&self) -> Target<'_> {
        Target::Irqbalance("banned_cpus")
    }

    /// Before interrupt affinities, so that undoing restores those first.
    fn phase(&self) -> Phase {
        Phase::IrqbalanceBans
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let it = host.irqbalance()?;
        let own = host.irqbalance_own_cpus(it)?;
        let now = host.banned_cpus(it)?;
        Ok(exact(it, &format!("{}{OWN}{}", spelled(&now), spelled(&own))))
    }

    fn show(&self, exact: &str) -> String {
        parts(exact).map_or_else(|| exact.trim().to_owned(), |(now, _)| now.to_owned())
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        old: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let (now, own) = parts(old).unwrap_or(("none", "none"));
        let (now, own) = (cpus(now)?, cpus(own)?);
        let all = match wanted.strip_prefix('+') {
            Some(more) => now.union(&cpus_of(more)?),
            None => cpus(wanted)?,
        };
        context.online(&all.difference(&now))?;
        if all.is_empty() && !own.is_empty() {
            return cannot(format!(
                "its settings ban {own}, and its socket accepts another list, but not an empty one"
            ));
        }
        if context.facts.host.cpus_online.known().is_some_and(|online| online.is_subset(&all)) {
            return harmful("no CPU would be left for interrupts");
        }
        Ok(spelled(&all))
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let it = host.irqbalance()?;
        let cpus =
            cpus(value).map_err(|r| TuneError::Usage(format!("{}: {}", self.target(), r.why)))?;
        let own = host.irqbalance_own_cpus(it)?;
        host.ban_cpus(it, if cpus == own { None } else { Some(&cpus) })
    }

    /// An irqbalance started since follows its settings.
    fn undo(&self, host: &Host, old: &str, _: &str) -> Result<Undone, TuneError> {
        if let Some(gone) = gone(self.target(), host, old)? {
            return Ok(gone);
        }
        if self.read(host)? != old {
            self.write(host, &self.show(old))?;
        }
        self.came_back(host, old)
    }

    fn lost(&self, host: &Host, old: &str) -> Option<String> {
        reported_another(self.target(), host, old)
    }

    fn undo_text(&self) -> String {
        "the old list is sent to it, and interrupts that it moved are moved back; each takes up to \
         two of its scans (20 s by default)"
            .into()
    }

    fn owner(&self, context: &PlanContext<'_>) -> String {
        settings_files(context)
    }

    /// irqbalance moves the interrupts of these CPUs.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        irq_affinity::all(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::irqbalance::Irqbalance as Process;

    #[test]
    fn an_exact_value_names_its_own_cpus_too() {
        let it = Process { pid: 7, start: 99 };
        let text = exact(it, "0-1,8 its own: none");
        assert_eq!(parts(&text), Some(("0-1,8", "none")));
        assert_eq!(IrqbalanceCpus.show(&text), "0-1,8");
        assert!(IrqbalanceCpus.verify("0-1,8", &text) && !IrqbalanceCpus.verify("0-1", &text));
        assert_eq!(spelled(&cpus("none").unwrap()), "none");
        assert!(cpus("all").is_err());
    }
}
