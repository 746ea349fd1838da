//! Proposed changes, as `tune` and as the classic commands write them.

use std::fmt::Display;

use model::{
    Change, CpuId, Reading,
    drivers::{self, Act},
    irq::Irq,
    knob::Target,
    nic::Nic,
    sysctl::Origin,
};

use crate::{
    Case,
    rule::{Draft, Missing, Proposal, need},
};

/// A known value, which a change can start from or lead to. An unknown one gives its reason, and
/// nothing is proposed.
pub(crate) trait Reported {
    fn reported(self, knob: &str) -> Result<String, Missing>;
}

impl Reported for &str {
    fn reported(self, knob: &str) -> Result<String, Missing> {
        match self {
            "" => Err(Missing(format!("{knob}: a value is not known"))),
            value => Ok(value.into()),
        }
    }
}

impl Reported for String {
    fn reported(self, knob: &str) -> Result<String, Missing> {
        self.as_str().reported(knob)
    }
}

impl Reported for &String {
    fn reported(self, knob: &str) -> Result<String, Missing> {
        self.as_str().reported(knob)
    }
}

impl<T: Display> Reported for &Reading<T> {
    fn reported(self, knob: &str) -> Result<String, Missing> {
        need(&format!("present value of {knob}"), self)?.to_string().reported(knob)
    }
}

impl Reported for Result<&str, Missing> {
    fn reported(self, knob: &str) -> Result<String, Missing> {
        self?.reported(knob)
    }
}

/// Advice that no knob covers.
pub(crate) fn advice(old: &str, new: &str, command: &str, risk: &str) -> Proposal {
    Ok(Change::advice(old, new, command, risk))
}

/// A change of a knob from a known value to a known value.
pub(crate) fn change(
    knob: impl Into<String>,
    old: impl Reported,
    new: impl Reported,
    risk: impl Into<String>,
) -> Proposal {
    let knob = knob.into();
    let new = new.reported(&knob)?;
    let command = Target::parse(&knob).map_or_else(String::new, |t| t.command(&new));
    change_by(knob, old, new, command, risk)
}

/// The same of what is no one knob: a group of CPUs, several parameters at once.
pub(crate) fn change_by(
    knob: impl Into<String>,
    old: impl Reported,
    new: impl Reported,
    command: impl Into<String>,
    risk: impl Into<String>,
) -> Proposal {
    let knob = knob.into();
    let (old, new) = (old.reported(&knob)?, new.reported(&knob)?);
    Ok(Change::of(knob, old, new, command, risk))
}

/// A change of a sysctl. Its risk names the owner of the value, which would set it again.
pub(crate) fn sysctl(case: &Case<'_>, key: &str, new: &str, risk: &str) -> Proposal {
    let old = case.sysctl_text(key);
    let owner = owner(case, key);
    let risk = if owner.is_empty() { risk.into() } else { format!("{risk}; {owner}") };
    change(format!("sysctl.{key}"), old, new, risk)
}

/// The tuner that sets it, as a clause; empty where none is known.
fn owner(case: &Case<'_>, key: &str) -> String {
    let Ok(sysctl) = case.sysctl(key) else { return String::new() };
    match &sysctl.origin {
        Origin::File { path, line, .. } => {
            format!("{path}:{line} sets it, so change that line too or it returns at boot")
        }
        Origin::Tuned { profile, path, line } => format!(
            "tuned profile {profile} sets it ({path}:{line}), so change the profile or it returns"
        ),
        Origin::KernelCmdline => {
            "the kernel cmdline sets it, so change that too or it returns".into()
        }
        Origin::Default | Origin::Unknown => String::new(),
    }
}

/// Where a value comes from, as evidence.
pub(crate) fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Default => "this kernel's default".into(),
        Origin::File { path, line, value } => format!("{path}:{line} ({value})"),
        Origin::Tuned { profile, path, line } => format!("tuned profile {profile}, {path}:{line}"),
        Origin::KernelCmdline => "sysctl. on the kernel cmdline".into(),
        Origin::Unknown => "not known who set it".into(),
    }
}

/// The file in which the kernel shows a setting.
pub(crate) fn sysctl_path(key: &str) -> String {
    format!("/proc/sys/{}", key.replace('.', "/"))
}

impl Draft {
    /// Quotes a setting and where it was set.
    pub(crate) fn show_sysctl(self, case: &Case<'_>, key: &str) -> Self {
        let (Ok(value), Ok(sysctl)) = (case.sysctl_text(key), case.sysctl(key)) else {
            return self;
        };
        let unit = match sysctl.unit.as_str() {
            "" | "boolean" | "mode" => String::new(),
            unit => format!(" {unit}"),
        };
        let shown = self.show(key, format!("{value}{unit}"), sysctl_path(key));
        match &sysctl.origin {
            Origin::Default | Origin::Unknown => shown,
            origin => shown.show(
                format!("{key} was set by"),
                origin_text(origin),
                "origin of the setting",
            ),
        }
    }
}

/// The impact on the NIC's link, in the words of `tune`.
pub(crate) fn impact(nic: &Nic, act: Act<'_>) -> String {
    let driver = nic.driver.known().map(String::as_str);
    let (disruption, why, _) = drivers::impact(driver, nic.kind == "physical", act);
    format!("{disruption}: {why}")
}

pub(crate) fn irq_affinity(case: &Case<'_>, irq: &Irq, new: CpuId) -> Proposal {
    let tuner = match case.running_tuner("irqbalance") {
        Some(_) => {
            "; irqbalance runs and may move it again unless the IRQ is banned there (--banirq)"
        }
        None => "",
    };
    let (old, irq) = (&irq.affinity, irq.irq);
    change(
        format!("irq.{irq}.affinity"),
        old,
        new.to_string(),
        format!(
            "low; EIO means the kernel manages this IRQ, ENOSPC that the CPU has no vector left{tuner}"
        ),
    )
}
