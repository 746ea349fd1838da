//! `irqbalance.running`: whether irqbalance runs, set through its service manager.

use model::knob::Target;

use super::{irq_affinity, irqbalance::settings_files};
use crate::{
    Host, TuneError,
    host::service::{self, Manager},
    knob::{Kind, Knob, PlanContext, Refusal, cannot, switch},
    phase::Phase,
};

/// `systemctl` or `rc-service`. **Source**: `/proc`, and the host's service manager. An exact value
/// is `on` or `off` and the manager, `-` if there is none.
pub const KIND: Kind = Kind {
    name: "irqbalance_running",
    spelling: "irqbalance.running=on|off",
    parse: |target| match target {
        Target::Irqbalance("running") => Some(Box::new(IrqbalanceRunning)),
        _ => None,
    },
};

struct IrqbalanceRunning;

const SERVICE: &str = "irqbalance";

impl Knob for IrqbalanceRunning {
    fn target(&self) -> Target<'_> {
        Target::Irqbalance("running")
    }

    /// Before irqbalance's other settings and before interrupt affinities.
    fn phase(&self) -> Phase {
        Phase::IrqbalanceRun
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let pid = match host.irqbalance() {
            Ok(it) => Some(it.pid),
            Err(TuneError::Absent(_)) => None,
            Err(e) => return Err(e),
        };
        let manager = service::manager(host, SERVICE, pid).map_or("-", Manager::name);
        Ok(format!("{} {manager}\n", if pid.is_some() { "on" } else { "off" }))
    }

    fn show(&self, exact: &str) -> String {
        exact.split_whitespace().next().unwrap_or_default().to_owned()
    }

    fn validate(&self, _: &PlanContext<'_>, old: &str, wanted: &str) -> Result<String, Refusal> {
        let wanted = if switch(wanted)? == "1" { "on" } else { "off" };
        if old.trim_end().ends_with('-') {
            return cannot(match self.show(old).as_str() {
                "on" => {
                    "no service manager runs this irqbalance, so it could not be started again as it was; irqbalance.paused=on stops it for a window"
                }
                _ => "there is no service manager here that has an irqbalance to start",
            });
        }
        Ok(wanted.into())
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let on = self.show(value) == "on";
        let pid = host.irqbalance().ok().map(|it| it.pid);
        let Some(manager) = service::manager(host, SERVICE, pid) else {
            return Err(TuneError::Environment(format!(
                "{}: no service manager runs it",
                self.target()
            )));
        };
        service::run(host, manager, SERVICE, on)?;
        service::settle(|| host.irqbalance().is_ok() == on);
        if host.irqbalance().is_ok() == on {
            return Ok(());
        }
        let (did, is) = if on { ("started", "does not run") } else { ("stopped", "runs") };
        Err(TuneError::Environment(format!(
            "{}: {} says that irqbalance was {did}, and it {is}: its status says why",
            self.target(),
            manager.name()
        )))
    }

    fn undo_text(&self) -> String {
        "it is started or stopped again, and interrupts that were moved are moved back; one that \
         was stopped starts with its settings files: lists that it received while it ran are lost"
            .into()
    }

    fn owner(&self, context: &PlanContext<'_>) -> String {
        settings_files(context)
    }

    /// A starting irqbalance moves interrupts.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        irq_affinity::all(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_state_whoever_manages_it() {
        let knob = IrqbalanceRunning;
        assert_eq!(knob.show("on systemd\n"), "on");
        assert!(knob.verify("off", "off systemd\n") && !knob.verify("on", "off -\n"));
    }
}
