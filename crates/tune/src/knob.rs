//! What a knob is: how one setting is read, judged, written, checked and put back.
//!
//! A new knob is a file under `knobs/` with one [`Kind`], named in [`crate::knobs::ALL`]; a test
//! compares the list with the files.

mod case;
mod refusal;
mod value;

use model::{
    knob::{NicSetting, Target},
    tune::Impact,
    tuner::Tuner,
};
use parse::sysctl_conf;

use crate::{Host, TuneError, need::Need, phase::Phase};

pub use case::Case;
pub use refusal::{Refusal, cannot, harmful, usage};
pub use value::{cpu, cpus_of, list_of, mask, nanoseconds, number, same_mask, switch};

/// What came of putting a value back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// It is there again: what was read back.
    Restored(String),
    /// It is not there at this moment, and may come back with our value.
    Gone(String),
    /// The thing it was a setting of is gone for good, and the value with it.
    Lost(String),
}

/// One kind of setting.
pub struct Kind {
    /// That of its file under `knobs/`.
    pub name: &'static str,
    /// How it is spelled, for help: `nic.NIC.mtu=BYTES`.
    pub spelling: &'static str,
    /// The knob that a target is, if it is one of this kind.
    pub parse: for<'k> fn(Target<'k>) -> Option<Box<dyn Knob + 'k>>,
}

/// One setting of this host, its name taken apart once.
pub trait Knob: Sync {
    /// What it is a setting of; its full name is how this is written.
    fn target(&self) -> Target<'_>;

    /// When it is written within a plan.
    fn phase(&self) -> Phase;

    /// Why a name is never touched, whatever its value; asked before it is read.
    fn never(&self) -> Option<Refusal> {
        None
    }

    /// Whether there is no such file here, told without reading it.
    fn is_absent(&self, host: &Host) -> bool {
        let _ = host;
        false
    }

    /// Why a name that is not there is not: it went with an older kernel, or it is mistyped. Asked
    /// once reading it came to nothing.
    fn missing(&self, host: &Host) -> Option<Refusal> {
        let _ = host;
        None
    }

    /// The one name of its value, where that has several (`ip_forward` is `conf.all.forwarding`).
    /// Pure.
    fn same_as(&self) -> Option<String> {
        None
    }

    /// Whether its value has a name in another unit, of which one counts and the other one reads 0:
    /// a 0 beside the one that counts asks for nothing. Pure.
    fn other_unit_counts(&self) -> bool {
        false
    }

    /// What may go wrong beyond what undoing repairs: such a change is asked for twice
    /// (`--i-understand`).
    fn danger(&self) -> Option<&'static str> {
        None
    }

    /// The value now, exactly, line end included: what undoing puts back.
    ///
    /// # Errors
    /// As the kernel answered.
    fn read(&self, host: &Host) -> Result<String, TuneError>;

    /// Whether it can be written here at all, whatever the value; asked while a plan is made, so
    /// that nothing is promised that nobody can do.
    ///
    /// # Errors
    /// Why not.
    fn settable(&self, host: &Host) -> Result<(), TuneError> {
        let _ = host;
        Ok(())
    }

    /// What writing it needs of whoever writes; asked before the first write of a plan. What cannot
    /// be told before is left out: the write tells.
    fn needs(&self, host: &Host) -> Vec<Need> {
        let _ = host;
        vec![]
    }

    /// An exact value for people and for comparison: one line.
    fn show(&self, exact: &str) -> String {
        sysctl_conf::folded(exact)
    }

    /// Judges a value and puts it into the kernel's form. Pure.
    ///
    /// # Errors
    /// Why it is refused.
    fn validate(&self, case: &Case<'_>, old: &str, wanted: &str) -> Result<String, Refusal>;

    /// Writes a value in the kernel's form.
    ///
    /// # Errors
    /// As the kernel answered.
    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError>;

    /// Whether what was read back is what was written.
    fn verify(&self, written: &str, back: &str) -> bool {
        self.show(written) == self.show(back)
    }

    /// Puts an exact value back and reads it again. `written` is what we had written over it.
    ///
    /// # Errors
    /// As the kernel answered, or when it reads otherwise afterwards.
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

    /// The end of every undo: reads again what was put back.
    ///
    /// # Errors
    /// As the kernel answered, or when it reads otherwise.
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

    /// Why there is nothing to put back: what it was a setting of is gone for good, and the value with
    /// it. Interfaces are looked for before a knob is asked.
    fn lost(&self, host: &Host, old: &str) -> Option<String> {
        let _ = (host, old);
        None
    }

    /// Whether what has the value is not there at this moment, and is made anew with the old value: nothing
    /// is to be put back. Asked of what another knob's write disturbed, once that is undone.
    fn is_made_anew(&self, host: &Host, old: &str) -> bool {
        let _ = (host, old);
        false
    }

    /// Whether a value is none that somebody set, but what is there once the kernel took ours away.
    fn is_nothing(&self, exact: &str) -> bool {
        let _ = exact;
        false
    }

    /// How undoing works, and what of it does not come back.
    fn undo_text(&self) -> String {
        "the old value is written back".into()
    }

    /// What a change may disturb. Pure.
    fn impact(&self, case: &Case<'_>, old: &str, new: &str) -> Impact {
        let _ = (case, old, new);
        Impact::none()
    }

    /// Unit of its values, empty for names, masks and switches.
    fn unit(&self) -> &'static str {
        ""
    }

    /// What it sets, in the words of [`Tuner::owns`]; empty when none of them fits.
    fn sets(&self) -> &'static str {
        ""
    }

    /// Who sets it otherwise; empty when nobody is known to.
    fn owner(&self, case: &Case<'_>) -> String {
        let sets = self.sets();
        let owners = case.facts.tuners.iter().filter(|r| owns(r, self.target(), sets));
        owners.map(|r| r.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The classic command that does the same: [`Target::command`].
    fn command(&self, new: &str) -> String {
        self.target().command(new)
    }

    /// Other knobs whose values this write may disturb, in the order in which they are put
    /// back. Those that cannot be read are left out.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        let _ = host;
        vec![]
    }
}

/// The interface whose MTU a knob is.
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

/// What is said of a process whose settings are gone with it.
pub fn ended(pid: u32) -> String {
    format!("process {pid} ended")
}

/// Whether a knob is a setting of this interface. Names may hold dots: `nic.eth0.100.mtu` is one of
/// `eth0.100`, and of an `eth0` too; where both are there the longer name counts.
pub fn is_of_nic(knob: &str, nic: &str) -> bool {
    let rest = knob.strip_prefix("nic.").and_then(|r| r.strip_prefix(nic));
    rest.is_some_and(|r| r.starts_with('.'))
}

/// A file of an interface in sysfs.
pub fn nic_file(nic: &str, file: &str) -> String {
    format!("/sys/class/net/{nic}/{file}")
}

/// Whether it owns what such a knob sets: whichever the interface, for its match is not evaluated.
pub fn owns(tuner: &Tuner, target: Target<'_>, sets: &str) -> bool {
    let any_nic = |o: &str| o == "nic settings" && target.nic().is_some();
    !sets.is_empty() && tuner.owns.iter().any(|o| o == sets || any_nic(o))
}
