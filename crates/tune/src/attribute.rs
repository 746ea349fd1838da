//! Knobs that are one file of an interface, or of one of its queues, in sysfs.

use model::tune::{Disruption, Impact};

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, nic_file, nic_of, queue_of},
    knobs::nic_napi,
    phase::Phase,
    privilege::Need,
};

/// One such file, and how its values are judged.
pub struct Attribute {
    pub name: &'static str,
    /// For help: `nic.NIC.threaded=on|off`.
    pub spelling: &'static str,
    /// The last part of its full names.
    pub suffix: &'static str,
    /// The file below `/sys/class/net/X/`, or below a queue's folder there.
    pub file: &'static str,
    /// `rx` or `tx` for a queue's file.
    pub side: Option<&'static str>,
    /// See [`Knob::sets`].
    pub sets: &'static str,
    /// Unit of its values, empty for masks and switches.
    pub unit: &'static str,
    /// Judges a value and puts it into the kernel's form.
    pub judge: fn(&Case<'_>, &str) -> Result<String, Refusal>,
    /// Whether what was read back is what was written.
    pub same: fn(&str, &str) -> bool,
    /// What a change disturbs for a moment, if anything.
    pub disturbs: Option<&'static str>,
    /// The setting of each NAPI instance that writing it sets too.
    pub napi: Option<&'static str>,
}

/// Whether two values are the same line.
pub fn same_line(written: &str, back: &str) -> bool {
    written.trim() == back.trim()
}

impl Attribute {
    /// The NIC and, for a queue's file, the queue.
    fn place<'k>(&self, knob: &'k str) -> Option<(&'k str, Option<&'k str>)> {
        match self.side {
            Some(side) => queue_of(knob, side, self.suffix).map(|(nic, queue)| (nic, Some(queue))),
            None => nic_of(knob, self.suffix).map(|nic| (nic, None)),
        }
    }

    fn nic<'k>(&self, knob: &'k str) -> &'k str {
        self.place(knob).unwrap_or_default().0
    }

    fn path(&self, knob: &str) -> String {
        match self.place(knob).unwrap_or_default() {
            (nic, Some(queue)) => nic_file(nic, &format!("queues/{queue}/{}", self.file)),
            (nic, None) => nic_file(nic, self.file),
        }
    }
}

impl Knob for Attribute {
    fn name(&self) -> &'static str {
        self.name
    }

    fn spelling(&self) -> &'static str {
        self.spelling
    }

    fn phase(&self, _: &str) -> Phase {
        if self.side.is_some() { Phase::Queue } else { Phase::Nic }
    }

    fn takes(&self, knob: &str) -> bool {
        self.place(knob).is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        host.text(&self.path(knob))
    }

    fn validate(
        &self,
        case: &Case<'_>,
        knob: &str,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if case.nic(self.nic(knob)).is_none() {
            return cannot("no such interface");
        }
        (self.judge)(case, wanted)
    }

    fn needs(&self, _: &Host, knob: &str) -> Vec<Need> {
        // **Source**: `capable` in net/core/net-sysfs.c; only `threaded` asks its namespace alone.
        let net = if self.file == "threaded" { Need::Net } else { Need::HostNet };
        vec![Need::File(self.path(knob)), net]
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        let nic = self.nic(knob);
        let none = || self.napi.is_some() && host.napis(nic).is_ok_and(|all| all.is_empty());
        host.write(&self.path(knob), value).map_err(|e| match none() {
            true => TuneError::Environment(format!(
                "{e}: {nic} has no NAPI now (its link is down, or its driver registers none)"
            )),
            false => e,
        })
    }

    fn verify(&self, written: &str, back: &str) -> bool {
        (self.same)(written, back)
    }

    fn undo_text(&self, _: &str) -> String {
        match self.napi {
            Some(_) => "the old value is written back, then each NAPI's own".into(),
            None => "the old value is written back".into(),
        }
    }

    fn impact(&self, case: &Case<'_>, knob: &str, old: &str, _: &str) -> Impact {
        let nic = self.nic(knob);
        let disruption = |why| case.nic_impact(nic, Disruption::BriefStall, why);
        let mut impact = self.disturbs.map_or_else(Impact::none, disruption);
        impact.also.extend(self.napi.and_then(|n| nic_napi::side_effects(case, nic, n, old)));
        impact
    }

    /// Since Linux 6.13 each NAPI instance has a value of its own, which the interface's overwrites.
    ///
    /// **Source**: `netdev_set_gro_flush_timeout` and its like in `net/core/dev.h`.
    fn coupled_settings(&self, host: &Host, knob: &str) -> Vec<String> {
        let own = |name| nic_napi::of_nic(host, self.nic(knob), Some(name));
        self.napi.map(own).unwrap_or_default()
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        self.unit.into()
    }

    fn sets(&self, _: &str) -> &'static str {
        self.sets
    }
}
