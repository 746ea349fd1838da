//! `nic.NIC.qdisc`: the queueing discipline of an interface.

mod options;

use model::{
    ids::Direction,
    knob::{NicSetting, OWN_QDISC, Target},
    tune::{Disruption, Impact},
};

use crate::{
    Host, TuneError,
    host::qdisc::{Qdisc, ROOT},
    knob::{Kind, Knob, PlanContext, Refusal, Undone, cannot, usage},
    need::Need,
    phase::Phase,
};
use options::{KINDS, Set};

/// `tc qdisc`. A value is `fq limit 20000`; `mq fq limit 20000` for one fq on each queue; or
/// `default`, the qdisc that the kernel installs itself. Options not named keep the kernel's
/// defaults. **Source**: `RTM_GETQDISC`, `RTM_NEWQDISC`. An exact value has a line for each qdisc:
/// kind, handle, parent, options, in hex; and a line if filters are attached.
pub const KIND: Kind = Kind {
    name: "nic_qdisc",
    spelling: "nic.NIC.qdisc='KIND OPTION VALUE …', 'mq KIND …' or default",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Plain("qdisc")) => Some(Box::new(NicQdisc { nic })),
        _ => None,
    },
};

struct NicQdisc<'k> {
    nic: &'k str,
}

/// Handles reserved for netwright; one of them is free.
const OURS: [u32; 2] = [0x4e57_0000, 0x4e58_0000];

/// A requested qdisc: its kind and options.
struct RequestedQdisc<'w> {
    /// Whether each queue gets its own qdisc under mq.
    mq: bool,
    /// `None` for `default` and for `mq` alone.
    kind: Option<&'w str>,
    options: Vec<Set>,
}

fn wanted(text: &str) -> Result<RequestedQdisc<'_>, Refusal> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (mq, words) = match words.as_slice() {
        ["mq", rest @ ..] => (true, rest),
        all => (false, all),
    };
    let (kind, options) = match words {
        [] if mq => (None, vec![]),
        ["default"] if !mq => (None, vec![]),
        [kind, rest @ ..] if KINDS.contains(kind) && !(mq && *kind == "noqueue") => {
            (Some(*kind), options::parse(kind, rest)?)
        }
        _ => {
            return usage(format!(
                "{text:?} is none of default, {}, each but the first and last also after mq",
                KINDS.join(", ")
            ));
        }
    };
    Ok(RequestedQdisc { mq, kind, options })
}

fn exact(all: &[Qdisc], filters: usize) -> String {
    let line = |q: &Qdisc| {
        let options = options::hex(&q.options);
        format!("{} {:x} {:x} {options}\n", q.kind, q.handle, q.parent)
    };
    let mut text: String = all.iter().map(line).collect();
    if filters > 0 {
        text += &format!("filters {filters}\n");
    }
    text
}

/// The qdiscs of an exact value, the root first.
fn parsed(exact: &str) -> Vec<Qdisc> {
    let line = |l: &str| {
        let mut words = l.split(' ');
        let kind = words.next()?.to_owned();
        let handle = u32::from_str_radix(words.next()?, 16).ok()?;
        let parent = u32::from_str_radix(words.next()?, 16).ok()?;
        let options = words.next()?.as_bytes().chunks(2);
        let byte = |c: &[u8]| u8::from_str_radix(std::str::from_utf8(c).ok()?, 16).ok();
        Some(Qdisc { kind, handle, parent, options: options.map(byte).collect::<Option<_>>()? })
    };
    exact.lines().filter_map(line).collect()
}

fn free_handle(now: &[Qdisc]) -> u32 {
    let [first, second] = OURS;
    if now.iter().any(|q| q.handle == first) { second } else { first }
}

/// Restores the kernel's default. A qdisc that the kernel created cannot be deleted, so another is
/// put over it first.
fn to_default(host: &Host, nic: &str, now: &[Qdisc]) -> Result<(), TuneError> {
    if now.first().is_some_and(|root| root.handle == 0) {
        cover(host, nic, now)?;
    }
    host.drop_root_qdisc(nic)
}

/// Installs a plain queue at the root, with an unused handle.
fn cover(host: &Host, nic: &str, now: &[Qdisc]) -> Result<(), TuneError> {
    let handle = free_handle(now);
    let plain = Qdisc { kind: "pfifo".into(), handle, parent: ROOT, options: vec![] };
    host.put_qdisc(nic, &plain)
}

/// Restores the old qdiscs: the root, then those below it that the kernel does not create itself.
fn put_back(host: &Host, nic: &str, old: &[Qdisc], now: &[Qdisc]) -> Result<(), TuneError> {
    let Some((root, below)) = old.split_first().filter(|(root, _)| root.handle != 0) else {
        return to_default(host, nic, now);
    };
    if now.iter().any(|q| q.handle == root.handle) {
        cover(host, nic, now)?;
    }
    for q in std::iter::once(root).chain(below.iter().filter(|q| q.handle != 0)) {
        let options = options::to_restore(&q.kind, &q.options);
        host.put_qdisc(nic, &Qdisc { options, ..q.clone() })?;
    }
    Ok(())
}

/// Whether the qdiscs are the kernel's default. An interface never up in its network namespace has
/// none yet, and gets the default when it comes up.
fn is_default(all: &[Qdisc]) -> bool {
    all.first().is_none_or(|root| root.handle == 0)
}

fn none_yet(nic: &str) -> String {
    format!(
        "{nic} has no discipline while it is down, and gets the kernel's default when it comes up"
    )
}

impl Knob for NicQdisc<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Plain("qdisc"))
    }

    /// After the channels and before the MTU: fq derives its defaults from the MTU, and undoing
    /// runs the other way.
    fn phase(&self) -> Phase {
        Phase::Qdisc
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let all = host.qdiscs(self.nic)?;
        let filters = match all.first() {
            Some(root) => host.filters(self.nic, root.handle)?,
            None => 0,
        };
        Ok(exact(&all, filters))
    }

    fn show(&self, exact: &str) -> String {
        let all = parsed(exact);
        let Some((root, below)) = all.split_first() else { return exact.trim().to_owned() };
        let own = |q: &Qdisc| if q.handle == 0 { OWN_QDISC } else { "" };
        let text = |q: &Qdisc| format!("{}{}", q.kind, options::show(&q.kind, &q.options));
        let mut kinds: Vec<String> = below.iter().map(text).collect();
        kinds.dedup();
        match kinds.as_slice() {
            [] => format!("{}{}", text(root), own(root)),
            kinds => format!("{} {}{}", text(root), kinds.join(", "), own(root)),
        }
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        old: &str,
        value: &str,
    ) -> Result<String, Refusal> {
        let Some(nic) = context.nic(self.nic) else { return cannot("no such interface") };
        let wanted = wanted(value)?;
        let queues = nic.queues.iter().filter(|q| q.id.direction == Direction::Tx).count();
        if wanted.mq && queues == 1 {
            return cannot("it sends by one queue: leave out mq");
        }
        let there = parsed(old);
        if let Some(q) = there.iter().find(|q| !options::comes_back(&q.kind)) {
            return cannot(format!(
                "{} is in place, and could not be restored as it was; tc qdisc replaces it without \
                 undo",
                q.kind
            ));
        }
        if old.lines().any(|l| l.starts_with("filters ")) {
            return cannot("filters are attached to it, and could not be restored");
        }
        let kind = wanted.kind.map_or(String::new(), |k| format!(" {k}"));
        let mq = if wanted.mq { " mq" } else { "" };
        let text = format!("{mq}{kind}{}", options::spelled(&wanted.options));
        Ok(if text.is_empty() { "default".into() } else { text.trim_start().into() })
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let nic = self.nic;
        let wanted =
            wanted(value).map_err(|r| TuneError::Usage(format!("{}: {}", self.target(), r.why)))?;
        let now = host.qdiscs(nic)?;
        let one = |kind: &str, handle, parent| Qdisc {
            kind: kind.into(),
            handle,
            parent,
            options: options::encode(&wanted.options),
        };
        let handle = free_handle(&now);
        match wanted.kind {
            None if !wanted.mq => return to_default(host, nic, &now),
            Some(kind) if !wanted.mq => return host.put_qdisc(nic, &one(kind, handle, ROOT)),
            _ => {}
        }
        host.put_qdisc(nic, &Qdisc { options: vec![], ..one("mq", handle, ROOT) })?;
        let Some(kind) = wanted.kind else { return Ok(()) };
        for place in host.qdiscs(nic)?.iter().filter(|q| q.parent != ROOT) {
            host.put_qdisc(nic, &one(kind, 0, place.parent))?;
        }
        Ok(())
    }

    fn verify(&self, written: &str, back: &str) -> bool {
        let (Ok(wanted), all) = (wanted(written), parsed(back)) else { return written == back };
        let Some((root, below)) = all.split_first() else { return false };
        let fits = |q: &Qdisc| {
            wanted.kind.is_none_or(|k| k == q.kind) && options::hold(&q.options, &wanted.options)
        };
        match (wanted.mq, wanted.kind) {
            (true, _) => root.kind == "mq" && below.iter().all(fits),
            (false, None) => root.handle == 0,
            (false, Some(_)) => fits(root),
        }
    }

    fn undo(&self, host: &Host, old: &str, _: &str) -> Result<Undone, TuneError> {
        let name = self.nic;
        match self.read(host) {
            Ok(now) if now == old => return Ok(Undone::Restored(now)),
            Err(TuneError::Absent(why)) => return Ok(Undone::Gone(why)),
            now => {
                let (old, now) = (parsed(old), parsed(&now?));
                if !(is_default(&old) && now.is_empty()) {
                    put_back(host, name, &old, &now)?;
                }
            }
        }
        let (back, then) = (self.read(host)?, parsed(old));
        match parsed(&back) {
            none if is_default(&then) && none.is_empty() => Ok(Undone::Lost(none_yet(name))),
            now if then.is_empty() && is_default(&now) => Ok(Undone::Restored(back)),
            _ => self.came_back(host, old),
        }
    }

    fn lost(&self, host: &Host, old: &str) -> Option<String> {
        let none = || self.read(host).is_ok_and(|now| self.is_nothing(&now));
        (is_default(&parsed(old)) && none()).then(|| none_yet(self.nic))
    }

    fn is_nothing(&self, exact: &str) -> bool {
        parsed(exact).is_empty()
    }

    fn undo_text(&self) -> String {
        "what was there is put back with its handle and options (the kernel's default by taking ours \
         away); its counters start at zero"
            .into()
    }

    fn impact(&self, context: &PlanContext<'_>, old: &str, new: &str) -> Impact {
        let many = parsed(old).first().is_some_and(|root| root.kind == "mq");
        let single = many && !new.starts_with("mq") && new != "default";
        let why = if single {
            "packets that wait are dropped; all queues then share one lock (mq keeps one for each)"
        } else {
            "packets that wait are dropped"
        };
        context.nic_impact(self.nic, Disruption::BriefStall, why)
    }

    fn sets(&self) -> &'static str {
        "qdisc"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_value_is_read_again_and_held_against_what_is_asked() {
        let one = |kind: &str, handle, parent, options: &[u8]| Qdisc {
            kind: kind.into(),
            handle,
            parent,
            options: options.to_vec(),
        };
        let limit = 77u32.to_ne_bytes();
        let all = [one("mq", 0x10000, ROOT, &[]), one("pfifo", 0x8001_0000, 0x10001, &limit)];
        let text = exact(&all, 0);
        assert_eq!(parsed(&text), all);
        let knob = NicQdisc { nic: "v0" };
        assert_eq!(knob.show(&text), "mq pfifo limit 77");
        for (written, holds) in [
            ("mq", true),
            ("mq pfifo", true),
            ("mq pfifo limit 77", true),
            ("mq pfifo limit 78", false),
            ("pfifo limit 77", false),
            ("default", false),
        ] {
            assert_eq!(knob.verify(written, &text), holds, "{written}");
        }
        let own = exact(&[one("noqueue", 0, ROOT, &[])], 1);
        assert_eq!(knob.show(&own), "noqueue (the kernel's default)");
        let queues = exact(&[one("mq", 0, ROOT, &[]), one("pfifo", 0, 1, &limit)], 0);
        for shown in [knob.show(&own), knob.show(&queues), "default".into()] {
            let line = knob.command(&shown);
            assert_eq!(line, "tc qdisc del dev v0 root", "{shown}");
        }
        assert!(knob.verify("default", &own));
        for bad in ["", "htb", "mq htb", "mq noqueue", "default 1", "fq limit", "mq default"] {
            assert!(wanted(bad).is_err(), "{bad:?} was taken");
        }
    }
}
