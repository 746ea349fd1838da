//! What a knob is: how one setting is read, judged, written, checked and put back.
//!
//! A new knob is a file under `knobs/` with one [`Kind`], named in [`crate::knobs::ALL`]; a test
//! compares the list with the files.

use std::collections::BTreeMap;

use model::{
    CpuId, CpuSet, Facts, NumaNode, Reading,
    cpu::Cpu,
    knob::{NicSetting, Target},
    nic::Nic,
    settings::{Judgement, Verdict},
    tune::{AtStake, Disruption, Impact, RefusedAs},
    tuner::Tuner,
};
use parse::{hexmask, sysctl_conf};

use crate::{Host, TuneError, phase::Phase, privilege::Need, session::Session};

/// What a plan is made from, beside the values themselves.
pub struct Case<'a> {
    pub facts: &'a Facts,
    /// The operator's own connection.
    pub session: &'a Session,
    /// What the same plan makes of the MTU of interfaces, by name.
    pub mtus: BTreeMap<String, u64>,
    /// Whether values that lower something, or do nothing, are meant: an operator who said so, or
    /// a measurement that is to show it.
    pub meant: bool,
}

impl<'a> Case<'a> {
    /// Of a plan that is not made yet.
    pub fn new(facts: &'a Facts, session: &'a Session) -> Self {
        Self { facts, session, mtus: BTreeMap::new(), meant: false }
    }
}

/// Why a value is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// By who can do something about it.
    pub kind: RefusedAs,
    /// The reason, in one line.
    pub why: String,
    /// What a kernel setting's value is, and what that rests on.
    pub verdict: Option<(Verdict, &'static str)>,
}

impl Refusal {
    /// For a reason of its own.
    pub fn new(kind: RefusedAs, why: impl Into<String>) -> Self {
        Self { kind, why: why.into(), verdict: None }
    }
}

/// What the table of settings says against a value.
impl From<Judgement> for Refusal {
    fn from(judged: Judgement) -> Self {
        let Judgement { verdict, why, source } = judged;
        let kind = match verdict {
            Verdict::NoEffect => RefusedAs::NoEffect,
            Verdict::Gone => RefusedAs::Environment,
            _ => RefusedAs::Harmful,
        };
        let why = match verdict {
            Verdict::NoEffect => format!("no effect: {why}"),
            Verdict::Dangerous => format!("{why}; netwright never does that"),
            Verdict::NotUndone => format!("{why}, so it is nothing to undo; sysctl -w does it"),
            _ => why,
        };
        let why = match verdict {
            Verdict::NoEffect | Verdict::Lowers => format!("{why}; --i-understand lets it pass"),
            _ => why,
        };
        Self { kind, why, verdict: Some((verdict, source)) }
    }
}

/// Not a value of the knob.
pub fn usage<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(RefusedAs::Usage, why))
}

/// A value that does harm.
pub fn harmful<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(RefusedAs::Harmful, why))
}

/// A value that this host cannot take.
pub fn cannot<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(RefusedAs::Environment, why))
}

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

impl Case<'_> {
    pub fn nic(&self, name: &str) -> Option<&Nic> {
        self.facts.nics.iter().find(|n| n.name == name)
    }

    /// A reach upon one interface, with who depends on it.
    pub fn nic_impact(&self, nic: &str, disruption: Disruption, why: &str) -> Impact {
        if disruption == Disruption::None {
            return Impact::none();
        }
        let mut impact = Impact::of(disruption, why);
        impact.own_connection = self.session.passes(nic);
        let master = self.nic(nic).and_then(|n| n.master.known());
        if let Some(master) = master.filter(|m| !m.is_empty() && *m != "none") {
            let (nic, master) = (nic.to_owned(), master.clone());
            impact.also.push(AtStake::Member { nic, master });
        }
        if self.session.default_route.iter().any(|d| d == nic) {
            impact.also.push(AtStake::DefaultRoute { nic: nic.to_owned() });
        }
        impact
    }

    /// A set of CPUs as [`cpus_of`] takes it, `node:1` for a node's, or `local:eth0` for those of a NIC's
    /// node; of the last two those that are online and not isolated.
    ///
    /// # Errors
    /// When it is none of these, or no such node or CPU is known.
    pub fn cpus(&self, wanted: &str) -> Result<CpuSet, Refusal> {
        let nodes = &self.facts.numa_nodes;
        let node = match wanted.split_once(':') {
            Some(("node", number)) => match number.parse() {
                Ok(number) => NumaNode(number),
                Err(_) => return usage(format!("{wanted:?} is not node:NUMBER")),
            },
            Some(("local", name)) => {
                let Some(nic) = self.nic(name) else {
                    return cannot(format!("no such interface: {name}"));
                };
                match (nic.numa_node.get(), nodes.as_slice()) {
                    (Some(node), _) => node,
                    (None, [only]) => only.id,
                    (None, _) => return cannot(format!("the node of {name} is not known")),
                }
            }
            _ => return cpus_of(wanted),
        };
        let Some(node) = nodes.iter().find(|n| n.id == node) else {
            return cannot(format!("there is no node {node}"));
        };
        let takes = |c: &&Cpu| {
            let on = node.cpus.contains(c.id) && c.online.get() != Some(false);
            on && c.isolated.get() != Some(true) && c.nohz_full.get() != Some(true)
        };
        let cpus: CpuSet = self.facts.cpus.iter().filter(takes).map(|c| c.id).collect();
        match cpus.is_empty() {
            true => cannot(format!("node {} has no CPU that is online and not isolated", node.id)),
            false => Ok(cpus),
        }
    }

    /// Refuses CPUs that are not online.
    ///
    /// # Errors
    /// Names them.
    pub fn online(&self, cpus: &CpuSet) -> Result<(), Refusal> {
        let Reading::Known(online) = &self.facts.host.cpus_online else {
            return cannot("which CPUs are online is not known");
        };
        if cpus.is_subset(online) {
            return Ok(());
        }
        cannot(format!("CPU {} is not online (online: {online})", cpus.difference(online)))
    }
}

/// A whole number between two bounds.
///
/// # Errors
/// When it is none, or out of range.
pub fn number(wanted: &str, low: u64, high: u64, unit: &str) -> Result<u64, Refusal> {
    match wanted.parse::<u64>() {
        Ok(n) if (low..=high).contains(&n) => Ok(n),
        Ok(n) => usage(format!("{n} is out of range: {low} to {high} {unit}").trim_end()),
        Err(_) if wanted.starts_with(|c: char| c.is_ascii_digit()) && !unit.is_empty() => {
            usage(format!("{wanted:?} has another unit: it is a plain number of {unit}"))
        }
        Err(_) => usage(format!("{wanted:?} is no number")),
    }
}

/// A switch: `0`, `1`, `off`, `on`.
///
/// # Errors
/// For anything else.
pub fn switch(wanted: &str) -> Result<&'static str, Refusal> {
    match wanted {
        "0" | "off" => Ok("0"),
        "1" | "on" => Ok("1"),
        _ => usage(format!("{wanted:?} is neither on nor off")),
    }
}

/// A set of CPUs as a hex mask (`f`, `3,00000000`) or, with `cpus:` before it, as a list.
///
/// # Errors
/// When it is neither.
pub fn mask(wanted: &str) -> Result<CpuSet, Refusal> {
    let parsed = match wanted.strip_prefix("cpus:") {
        Some(list) => return list_of(list),
        None => hexmask::parse(wanted.as_bytes()),
    };
    parsed.or_else(|_| {
        usage(format!(
            "{wanted:?} is no hex mask such as f or 3,00000000; for a list write cpus:0-3"
        ))
    })
}

/// A set of CPUs as a list (`0-3,8`).
///
/// # Errors
/// When it is none.
pub fn list_of(wanted: &str) -> Result<CpuSet, Refusal> {
    wanted
        .parse::<CpuSet>()
        .or_else(|_| usage(format!("{wanted:?} is no list of CPUs such as 0-3,8")))
}

/// A set of CPUs as a list, or as a hex mask that cannot be one: with a letter, after `0x`, or in groups
/// of eight digits (`0000ffff,ffffffff`), as irqbalance and the kernel write it.
///
/// # Errors
/// When it is neither.
pub fn cpus_of(wanted: &str) -> Result<CpuSet, Refusal> {
    let hex = wanted.strip_prefix("mask:").or(wanted.strip_prefix("0x"));
    let mut groups = wanted.split(',').skip(usize::from(wanted.contains(',')));
    let grouped = groups.all(|g| g.len() == 8) && wanted.split(',').all(|g| g.len() <= 8);
    let letters = wanted.bytes().any(|b| b.is_ascii_alphabetic());
    match hex.or_else(|| (grouped || letters).then_some(wanted)) {
        None => list_of(wanted),
        Some(hex) => hexmask::parse(hex.as_bytes()).or_else(|_| {
            usage(format!(
                "{wanted:?} is neither a list of CPUs such as 0-3,8 nor a hex mask such as ff"
            ))
        }),
    }
}

/// Whether two masks are the same set.
pub fn same_mask(a: &str, b: &str) -> bool {
    matches!((hexmask::parse(a.as_bytes()), hexmask::parse(b.as_bytes())), (Ok(a), Ok(b)) if a == b)
}

/// A CPU by its number.
pub fn cpu(id: u32) -> CpuSet {
    [CpuId(id)].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_that_cannot_be_a_list_is_one() {
        for (text, list) in [
            ("3", "3"),
            ("0,3", "0,3"),
            ("0-3,8", "0-3,8"),
            ("10000000-10000001", ""),
            ("ff", "0-7"),
            ("0x3", "0-1"),
            ("mask:3", "0-1"),
            ("00000003", "0-1"),
            ("0000ffff,ffffffff", "0-47"),
            ("00000001,00000000", "32"),
            ("1,00000000", "32"),
            ("12345678,1", ""),
            ("1,00000000,1", "0-1"),
            ("fg", ""),
            ("", ""),
        ] {
            let said = cpus_of(text).map(|c| c.to_string()).unwrap_or_default();
            assert_eq!(said, list, "{text:?}");
        }
    }
}
