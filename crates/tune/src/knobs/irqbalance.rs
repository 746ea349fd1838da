//! `irqbalance.banned_irqs` and `irqbalance.paused`: interrupts that the running irqbalance
//! ignores, and pausing it.

use model::{IrqId, knob::Target};

use crate::{
    Host, TuneError,
    host::irqbalance::Irqbalance as Process,
    knob::{Kind, Knob, PlanContext, Refusal, Undone, cannot, list_of, switch, usage},
    need::Need,
    phase::Phase,
};

/// Bans go to irqbalance's socket and last until it ends. `paused` is SIGSTOP and SIGCONT, so it
/// loses no state. **Source**: the socket's `setup`, `/proc/PID/stat`. An exact value is the
/// process's number and start time, and the value.
pub const KIND: Kind = Kind {
    name: "irqbalance",
    spelling: "irqbalance.banned_irqs=LIST|+LIST|none, irqbalance.paused=on|off",
    parse: |target| match target {
        Target::Irqbalance(setting @ ("banned_irqs" | "paused")) => {
            Some(Box::new(Irqbalance { pause: setting == "paused" }))
        }
        _ => None,
    },
};

struct Irqbalance {
    pause: bool,
}

pub(super) fn exact(it: Process, value: &str) -> String {
    format!("{} {} {value}\n", it.pid, it.start)
}

/// Splits an exact value into process and value.
pub(super) fn parsed(exact: &str) -> Option<(Process, &str)> {
    let mut words = exact.trim_end().splitn(3, ' ');
    let (pid, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((Process { pid, start }, words.next()?))
}

/// Result of undoing after irqbalance ended or was restarted: its settings ended with it.
///
/// # Errors
/// The journal's value is damaged, or processes cannot be read.
pub(super) fn gone(knob: Target<'_>, host: &Host, old: &str) -> Result<Option<Undone>, TuneError> {
    let Some((then, _)) = parsed(old) else {
        return Err(TuneError::Environment(format!("{knob}: the journal makes no sense")));
    };
    match host.irqbalance() {
        Ok(now) if now == then => Ok(None),
        Ok(_) => Ok(Some(Undone::Lost("irqbalance was restarted since".into()))),
        Err(TuneError::Absent(_)) => Ok(Some(Undone::Lost("irqbalance ended since".into()))),
        Err(e) => Err(e),
    }
}

/// The same, as a reason for which nothing needs restoring.
pub(super) fn reported_another(knob: Target<'_>, host: &Host, old: &str) -> Option<String> {
    match gone(knob, host, old) {
        Ok(Some(Undone::Lost(why))) => Some(why),
        _ => None,
    }
}

/// The files that set irqbalance's options at start.
pub(super) fn settings_files(context: &PlanContext<'_>) -> String {
    let it = context.facts.tuners.iter().find(|r| r.kind == "irqbalance");
    match it.map(|r| r.settings_files.join(", ")) {
        Some(files) if !files.is_empty() => format!("{files}, when it is restarted"),
        _ => String::new(),
    }
}

fn spelled(irqs: &[IrqId]) -> String {
    match irqs {
        [] => "none".into(),
        some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}

fn irqs(text: &str) -> Result<Vec<IrqId>, Refusal> {
    if text == "none" {
        return Ok(vec![]);
    }
    match list_of(text) {
        Ok(all) if !all.is_empty() => Ok(all.iter().map(|n| IrqId(n.0)).collect()),
        _ => usage(format!("{text:?} is no list of interrupts such as 24-27, nor none")),
    }
}

impl Knob for Irqbalance {
    fn target(&self) -> Target<'_> {
        Target::Irqbalance(if self.pause { "paused" } else { "banned_irqs" })
    }

    /// Before interrupt affinities, so that undoing restores those first. Bans come before the
    /// pause, and undoing continues irqbalance before it restores the bans: a stopped irqbalance
    /// does not answer.
    fn phase(&self) -> Phase {
        if self.pause { Phase::IrqbalancePause } else { Phase::IrqbalanceBans }
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let it = host.irqbalance()?;
        let value = match self.pause {
            true => if host.is_paused(it)? { "on" } else { "off" }.to_owned(),
            false => spelled(&host.banned_irqs(it)?),
        };
        Ok(exact(it, &value))
    }

    fn show(&self, exact: &str) -> String {
        parsed(exact).map_or_else(|| exact.trim().to_owned(), |(_, value)| value.to_owned())
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        old: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if self.pause {
            return Ok(if switch(wanted)? == "1" { "on" } else { "off" }.into());
        }
        let mut all = match wanted.strip_prefix('+') {
            Some(more) => {
                let mut all = irqs(&self.show(old))?;
                all.extend(irqs(more)?);
                all
            }
            None => irqs(wanted)?,
        };
        all.sort_unstable();
        all.dedup();
        let known = context.facts.irqs.known();
        let gone = |i: &&IrqId| known.is_some_and(|k| !k.iter().any(|f| f.irq == **i));
        if let Some(none) = all.iter().find(gone) {
            return cannot(format!("there is no interrupt {none}"));
        }
        Ok(spelled(&all))
    }

    fn needs(&self, host: &Host) -> Vec<Need> {
        match (self.pause, host.irqbalance()) {
            (true, Ok(it)) => vec![Need::Signal(it.pid)],
            _ => vec![],
        }
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let it = host.irqbalance()?;
        if self.pause {
            return host.pause(it, value == "on");
        }
        let irqs =
            irqs(value).map_err(|r| TuneError::Usage(format!("{}: {}", self.target(), r.why)))?;
        host.ban_irqs(it, &irqs)
    }

    /// An irqbalance started since has neither setting.
    fn undo(&self, host: &Host, old: &str, _: &str) -> Result<Undone, TuneError> {
        if let Some(gone) = gone(self.target(), host, old)? {
            return Ok(gone);
        }
        // A stopped irqbalance does not answer.
        if self.pause || self.read(host)? != old {
            self.write(host, &self.show(old))?;
        }
        self.came_back(host, old)
    }

    fn lost(&self, host: &Host, old: &str) -> Option<String> {
        reported_another(self.target(), host, old)
    }

    fn undo_text(&self) -> String {
        match self.pause {
            true => "it is resumed and scans the interrupts again".into(),
            false => "it is told the old list".into(),
        }
    }

    fn owner(&self, context: &PlanContext<'_>) -> String {
        if self.pause { String::new() } else { settings_files(context) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_value_names_the_process() {
        let it = Process { pid: 7, start: 99 };
        let text = exact(it, &spelled(&[IrqId(24), IrqId(27)]));
        assert_eq!(parsed(&text), Some((it, "24,27")));
        let bans = Irqbalance { pause: false };
        assert_eq!(bans.show(&text), "24,27");
        assert!(bans.verify("24,27", &text) && !bans.verify("24", &text));
        assert_eq!(irqs("24-25,27").unwrap(), [IrqId(24), IrqId(25), IrqId(27)]);
        assert_eq!(spelled(&irqs("none").unwrap()), "none");
        for bad in ["", "all", "1,x"] {
            assert!(irqs(bad).is_err(), "{bad:?} was taken");
        }
    }
}
