//! The knob interface: how one setting is read, judged, written, verified and restored.
//!
//! A new knob is a file under `knobs/` with one [`Kind`], named in [`crate::knobs::ALL`]; a test
//! compares the list with the files.

mod plan_context;
mod refusal;
mod value;

use model::{
    knob::{NicSetting, Target},
    tune::Impact,
    tuner::Tuner,
};
use parse::sysctl_conf;

use crate::{Host, TuneError, need::Need, phase::Phase};

pub use plan_context::PlanContext;
pub use refusal::{Refusal, cannot, harmful, usage};
pub use value::{cpu, cpus_of, list_of, mask, nanoseconds, number, same_mask, switch};

/// Result of restoring a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// The old value is in place; the text is what was read back.
    Restored(String),
    /// The setting does not exist now, but may come back with our value.
    Gone(String),
    /// Its object (a process, a queue) is gone for good, and the value with it.
    Lost(String),
}

/// One kind of setting.
pub struct Kind {
    /// The name of its file under `knobs/`.
    pub name: &'static str,
    /// Spelling for help: `nic.NIC.mtu=BYTES`.
    pub spelling: &'static str,
    /// The knob for this target, if it is of this kind.
    pub parse: for<'k> fn(Target<'k>) -> Option<Box<dyn Knob + 'k>>,
}

/// One setting of this host, with its name parsed.
pub trait Knob: Sync {
    /// The target; its `Display` is the knob's full name.
    fn target(&self) -> Target<'_>;

    /// Position of its write within a plan.
    fn phase(&self) -> Phase;

    /// Why this knob is never written, whatever the value; checked before reading it.
    fn never(&self) -> Option<Refusal> {
        None
    }

    /// Whether the file is missing, without reading it.
    fn is_absent(&self, host: &Host) -> bool {
        let _ = host;
        false
    }

    /// Why the knob is missing: removed from older kernels, or mistyped. Called after reading
    /// failed.
    fn missing(&self, host: &Host) -> Option<Refusal> {
        let _ = host;
        None
    }

    /// Canonical name of the value if it has several (`ip_forward` is `conf.all.forwarding`). Pure.
    fn same_as(&self) -> Option<String> {
        None
    }

    /// Whether the value has a second name in another unit, of which the unused one reads 0. A 0
    /// next to the one in use then requests nothing. Pure.
    fn other_unit_counts(&self) -> bool {
        false
    }

    /// A risk that undoing does not repair: such a change needs `--i-understand`.
    fn danger(&self) -> Option<&'static str> {
        None
    }

    /// The current value, exact to the byte: undoing restores it.
    ///
    /// # Errors
    /// As the kernel answered.
    fn read(&self, host: &Host) -> Result<String, TuneError>;

    /// The current value of the object whose value was `old`: where the name alone may mean another
    /// one by now.
    ///
    /// # Errors
    /// As the kernel answered.
    fn read_again(&self, host: &Host, old: &str) -> Result<String, TuneError> {
        let _ = old;
        self.read(host)
    }

    /// Checks that the knob can be written here at all, for any value. Called while planning, so
    /// that a plan holds no change that must fail.
    ///
    /// # Errors
    /// The reason it cannot be written.
    fn settable(&self, host: &Host) -> Result<(), TuneError> {
        let _ = host;
        Ok(())
    }

    /// Privileges that a write needs; checked before the first write of a plan. Privileges that
    /// cannot be known beforehand are left out.
    fn needs(&self, host: &Host) -> Vec<Need> {
        let _ = host;
        vec![]
    }

    /// An exact value as one line, for the user and for comparison.
    fn show(&self, exact: &str) -> String {
        sysctl_conf::folded(exact)
    }

    /// Judges a value and puts it into the kernel's form. Pure.
    ///
    /// # Errors
    /// The reason for refusing the value.
    fn validate(
        &self,
        context: &PlanContext<'_>,
        old: &str,
        wanted: &str,
    ) -> Result<String, Refusal>;

    /// Writes a value in the kernel's form.
    ///
    /// # Errors
    /// As the kernel answered.
    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError>;

    /// Whether the value read back equals the value written.
    fn verify(&self, written: &str, back: &str) -> bool {
        self.show(written) == self.show(back)
    }

    /// Restores an exact value and reads it back. `written` is what the change wrote over it.
    ///
    /// # Errors
    /// As the kernel answered, or the value read back differs.
    fn undo(&self, host: &Host, old: &str, written: &str) -> Result<Undone, TuneError> {
        let _ = written;
        match self.read(host) {
            Ok(now) if now == old => return Ok(Undone::Restored(now)),
            Err(TuneError::Absent(why)) => return Ok(Undone::Gone(why)),
            _ => {}
        }
        self.write(host, old)?;
        self.came_back(host, old)
    }

    /// Last step of every undo: reads the restored value back.
    ///
    /// # Errors
    /// As the kernel answered, or the value read back differs.
    fn came_back(&self, host: &Host, old: &str) -> Result<Undone, TuneError> {
        let back = self.read(host)?;
        if back == old {
            return Ok(Undone::Restored(back));
        }
        Err(TuneError::Environment(format!(
            "{}: was {}, and after putting it back reads {}",
            self.target(),
            self.show(old),
            self.show(&back)
        )))
    }

    /// Why nothing can be restored: the knob's object is gone for good, and the value with it.
    /// Missing interfaces are detected before this is called.
    fn lost(&self, host: &Host, old: &str) -> Option<String> {
        let _ = (host, old);
        None
    }

    /// Whether the object does not exist now and will be recreated with the old value, so nothing
    /// needs restoring. Called for side effects of a knob that is already undone.
    fn is_made_anew(&self, host: &Host, old: &str) -> bool {
        let _ = (host, old);
        false
    }

    /// Whether the value is only what the kernel shows after it removed ours.
    fn is_nothing(&self, exact: &str) -> bool {
        let _ = exact;
        false
    }

    /// How undoing works, and what it does not restore.
    fn undo_text(&self) -> String {
        "the old value is written back".into()
    }

    /// Impact of a change. Pure.
    fn impact(&self, context: &PlanContext<'_>, old: &str, new: &str) -> Impact {
        let _ = (context, old, new);
        Impact::none()
    }

    /// Unit of the value; empty for names, masks and switches.
    fn unit(&self) -> &'static str {
        ""
    }

    /// Topic for tuner conflicts, as in [`Tuner::owns`]; empty if none fits.
    fn sets(&self) -> &'static str {
        ""
    }

    /// Other software that sets this knob; empty if none is known.
    fn owner(&self, context: &PlanContext<'_>) -> String {
        let sets = self.sets();
        let owners = context.facts.tuners.iter().filter(|r| owns(r, self.target(), sets));
        owners.map(|r| r.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The classic command that does the same: [`Target::command`].
    fn command(&self, new: &str) -> String {
        self.target().command(new)
    }

    /// Knobs that this write may change as a side effect, in the order in which undoing restores
    /// them. Knobs that cannot be read are left out.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        let _ = host;
        vec![]
    }
}

/// The interface of an MTU knob.
pub fn mtu_of(knob: &str) -> Option<&str> {
    match Target::parse(knob)? {
        Target::Nic(nic, NicSetting::Plain("mtu")) => Some(nic),
        _ => None,
    }
}

/// The interrupt of `irq.N.affinity`, as it was spelled.
pub fn irq_of(knob: &str) -> Option<&str> {
    knob.strip_prefix("irq.")?.strip_suffix(".affinity")
}

/// Reason for a process's settings that ended with it.
pub fn ended(pid: u32) -> String {
    format!("process {pid} ended")
}

/// Whether a knob belongs to this interface. Names may hold dots: `nic.eth0.100.mtu` matches both
/// `eth0.100` and `eth0`; if both exist, the longer name counts.
pub fn is_of_nic(knob: &str, nic: &str) -> bool {
    let rest = knob.strip_prefix("nic.").and_then(|r| r.strip_prefix(nic));
    rest.is_some_and(|r| r.starts_with('.'))
}

/// Path of an interface's file in sysfs.
pub fn nic_file(nic: &str, file: &str) -> String {
    format!("/sys/class/net/{nic}/{file}")
}

/// Whether a tuner sets this kind of knob on any interface: its match rules are not evaluated.
pub fn owns(tuner: &Tuner, target: Target<'_>, sets: &str) -> bool {
    let any_nic = |o: &str| o == "nic settings" && target.nic().is_some();
    !sets.is_empty() && tuner.owns.iter().any(|o| o == sets || any_nic(o))
}
