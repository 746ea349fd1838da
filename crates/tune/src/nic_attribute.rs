//! Knobs backed by one sysfs file of an interface or of one of its queues.

use model::{
    knob::{NicSetting, Target},
    tune::{Disruption, Impact},
};

use crate::{
    Host, TuneError,
    knob::{Knob, PlanContext, Refusal, cannot},
    knobs::nic_napi,
    need::Need,
    phase::Phase,
};

/// One such file, and the functions that judge its values.
pub struct NicAttribute {
    /// Last part of the knob's full name. [`Target::file`] maps it to the file.
    pub setting: &'static str,
    /// `rx` or `tx` for a queue's file; `None` for an interface's.
    pub side: Option<&'static str>,
    /// Topic for tuner conflicts, as in [`Knob::sets`]; empty if none fits.
    pub sets: &'static str,
    /// Unit of its values, empty for masks and switches.
    pub unit: &'static str,
    /// Judges a value and puts it into the kernel's form.
    pub judge: fn(&PlanContext<'_>, &str) -> Result<String, Refusal>,
    /// Whether the value read back equals the value written.
    pub same: fn(&str, &str) -> bool,
    /// Brief disturbance that a change causes, if any.
    pub disturbs: Option<&'static str>,
    /// NAPI setting that the write also overwrites on each instance.
    pub napi: Option<&'static str>,
}

/// Whether two values are equal after trimming.
pub fn same_line(written: &str, back: &str) -> bool {
    written.trim() == back.trim()
}

impl NicAttribute {
    /// The knob for this target, if its setting is this attribute.
    pub fn at<'k>(&'static self, target: Target<'k>) -> Option<Box<dyn Knob + 'k>> {
        let (nic, setting) = match (self.side, target) {
            (None, Target::Nic(nic, NicSetting::Plain(setting))) => (nic, setting),
            (Some(side), Target::Queue(nic, queue, setting)) if queue.starts_with(side) => {
                (nic, setting)
            }
            _ => return None,
        };
        let it = NicAttributeKnob { attribute: self, nic, target };
        (setting == self.setting).then(|| Box::new(it) as Box<dyn Knob>)
    }
}

/// The file of one interface or queue.
struct NicAttributeKnob<'k> {
    attribute: &'static NicAttribute,
    nic: &'k str,
    target: Target<'k>,
}

impl NicAttributeKnob<'_> {
    fn file(&self) -> String {
        self.target.file().unwrap_or_default()
    }
}

impl Knob for NicAttributeKnob<'_> {
    fn target(&self) -> Target<'_> {
        self.target
    }

    fn phase(&self) -> Phase {
        if self.attribute.side.is_some() { Phase::Queue } else { Phase::Nic }
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        host.text(&self.file())
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if context.nic(self.nic).is_none() {
            return cannot("no such interface");
        }
        (self.attribute.judge)(context, wanted)
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        // **Source**: `capable` in net/core/net-sysfs.c; only `threaded` asks its namespace alone.
        let net = if self.attribute.setting == "threaded" { Need::Net } else { Need::HostNet };
        vec![Need::File(self.file()), net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let none = || {
            self.attribute.napi.is_some() && host.napis(self.nic).is_ok_and(|all| all.is_empty())
        };
        host.write(&self.file(), value).map_err(|e| match none() {
            true => TuneError::Environment(format!(
                "{e}: {} has no NAPI now (its link is down, or its driver registers none)",
                self.nic
            )),
            false => e,
        })
    }

    fn verify(&self, written: &str, back: &str) -> bool {
        (self.attribute.same)(written, back)
    }

    fn undo_text(&self) -> String {
        match self.attribute.napi {
            Some(_) => "the old value is written back, then each NAPI's own".into(),
            None => "the old value is written back".into(),
        }
    }

    fn impact(&self, context: &PlanContext<'_>, old: &str, _: &str) -> Impact {
        let disruption = |why| context.nic_impact(self.nic, Disruption::BriefStall, why);
        let mut impact = self.attribute.disturbs.map_or_else(Impact::none, disruption);
        impact.also.extend(
            self.attribute.napi.and_then(|n| nic_napi::side_effects(context, self.nic, n, old)),
        );
        impact
    }

    /// Since Linux 6.13 each NAPI instance has its own value, which writing the interface's
    /// overwrites.
    ///
    /// **Source**: `netdev_set_gro_flush_timeout` and its like in `net/core/dev.h`.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        let own = |name| nic_napi::of_nic(host, self.nic, Some(name));
        self.attribute.napi.map(own).unwrap_or_default()
    }

    fn unit(&self) -> &'static str {
        self.attribute.unit
    }

    fn sets(&self) -> &'static str {
        self.attribute.sets
    }
}
