//! Wishes and what is there now → a plan. [`look`] reads, [`make`] is pure.

use std::collections::BTreeMap;

use model::{
    SCHEMA_VERSION,
    tune::{HostId, Plan, Planned, Refused, RefusedAs, Unchanged},
};

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, harmful},
    knobs, members, netns, profile,
    wish::{self, Mode, Wish, Wishes},
};

/// What each knob reads now, exactly.
pub type Seen = BTreeMap<String, Result<String, TuneError>>;

/// Reads every knob that is wished for.
pub fn look(host: &Host, wishes: &[Wish]) -> Seen {
    let read = |w: &Wish| {
        let knob = knobs::find(&w.knob).filter(|k| k.never(&w.knob).is_none())?;
        Some((w.knob.clone(), knob.read(host, &w.knob)))
    };
    wishes.iter().filter_map(read).collect()
}

/// The plan: what is refused stands beside what is planned. Pure.
pub fn make(case: &Case<'_>, id: HostId, wishes: &Wishes, seen: &Seen) -> Plan {
    let mut plan = Plan {
        schema_version: SCHEMA_VERSION,
        host: id,
        changes: vec![],
        refused: wishes.refused.clone(),
        unchanged: vec![],
        notes: vec![],
    };
    let mut phased: Vec<(u8, Planned)> = Vec::new();
    let mut asked: BTreeMap<&str, &str> = BTreeMap::new();
    for wish in &wishes.wishes {
        if let Some(first) = asked.insert(&wish.knob, &wish.asked_by) {
            plan.refused.push(refused(wish, RefusedAs::Usage, format!("{first} asks for it too")));
            continue;
        }
        match one(case, wish, seen, wishes.understood) {
            Ok(Some(planned)) => phased.push(planned),
            Ok(None) => plan.unchanged.push(unchanged(wish, seen)),
            Err(refusal) => plan.refused.push(refused(wish, refusal.kind, refusal.why)),
        }
    }
    phased.sort_by_key(|(phase, _)| *phase);
    let changes = phased.into_iter().map(|(_, p)| p).collect();
    plan.changes = members::in_turn(case.facts, changes);
    plan.notes = notes(case, &plan);
    plan
}

fn one(
    case: &Case<'_>,
    wish: &Wish,
    seen: &Seen,
    understood: bool,
) -> Result<Option<(u8, Planned)>, Refusal> {
    match &wish.mode {
        Mode::Refuted(why) => match judged(case, wish, seen) {
            Err(refusal) if refusal.kind == RefusedAs::Harmful => Err(refusal),
            _ => Err(Refusal { kind: RefusedAs::Harmful, why: why.clone() }),
        },
        _ => {
            let made = judged(case, wish, seen)?;
            let danger = knobs::find(&wish.knob).and_then(|k| k.danger(&wish.knob));
            match danger.filter(|_| made.is_some() && !understood) {
                Some(danger) => harmful(format!("{danger}; --i-understand lets it pass")),
                None => Ok(made),
            }
        }
    }
}

fn judged(case: &Case<'_>, wish: &Wish, seen: &Seen) -> Result<Option<(u8, Planned)>, Refusal> {
    let Some(knob) = knobs::find(&wish.knob) else {
        let unknown = || Refusal { kind: RefusedAs::Usage, why: unknown(&wish.knob) };
        return Err(wish::left_whole(wish, case.facts).unwrap_or_else(unknown));
    };
    if let Some(why) = knob.never(&wish.knob) {
        let why = format!("{why}, so it is nothing to undo; sysctl -w does it");
        return Err(Refusal { kind: RefusedAs::Environment, why });
    }
    let exact = match seen.get(&wish.knob) {
        Some(Ok(exact)) => exact,
        Some(Err(e)) => return Err(Refusal { kind: e.kind(), why: e.to_string() }),
        None => return Err(Refusal { kind: RefusedAs::Environment, why: "was not read".into() }),
    };
    let value = match wish.mode {
        Mode::AtLeast => raised(case, wish, &knob.show(exact))?,
        _ => wish.value.clone(),
    };
    if wish.mode == Mode::AtLeast && knob.verify(&value, exact) {
        return Ok(None);
    }
    let new = knob.validate(case, &wish.knob, exact, &value)?;
    if knob.verify(&new, exact) {
        return Ok(None);
    }
    Ok(Some((knob.phase(), planned(case, knob, wish, exact, new))))
}

/// What "at least" comes to here.
fn raised(case: &Case<'_>, wish: &Wish, now: &str) -> Result<String, Refusal> {
    let key = wish.knob.strip_prefix("sysctl.").unwrap_or_default();
    let default = case.facts.sysctls.get(key).and_then(|f| f.default.known());
    profile::raise(now, default.map(String::as_str), &wish.value).ok_or_else(|| Refusal {
        kind: RefusedAs::Usage,
        why: format!("at least {:?}: it is {now} now, which does not compare", wish.value),
    })
}

fn planned(case: &Case<'_>, knob: &dyn Knob, wish: &Wish, exact: &str, new: String) -> Planned {
    let name = &wish.knob;
    let radius = knob.radius(case, name, exact, &new);
    Planned {
        knob: name.clone(),
        old: knob.show(exact),
        unit: knob.unit(case, name),
        member: members::of(case.facts, name, &radius),
        radius,
        owner: knob.owner(case, name),
        undo: knob.undo_text(name),
        command: knob.command(name, &new),
        asked_by: wish.asked_by.clone(),
        why: wish.why.clone(),
        new,
    }
}

fn refused(wish: &Wish, kind: RefusedAs, why: String) -> Refused {
    Refused {
        asked_by: wish.asked_by.clone(),
        knob: wish.knob.clone(),
        new: wish.value.clone(),
        kind,
        why,
    }
}

fn unchanged(wish: &Wish, seen: &Seen) -> Unchanged {
    let exact = seen.get(&wish.knob).and_then(|s| s.as_ref().ok());
    let show = |e: &String| knobs::find(&wish.knob).map_or(e.clone(), |k| k.show(e));
    Unchanged {
        asked_by: wish.asked_by.clone(),
        knob: wish.knob.clone(),
        value: exact.map(show).unwrap_or_default(),
    }
}

/// What to say of a name that is nobody's.
fn unknown(knob: &str) -> String {
    let kind = knob.split('.').next().unwrap_or_default();
    let near: Vec<&str> = knobs::ALL
        .iter()
        .map(|k| k.spelling())
        .filter(|s| s.split('.').next() == Some(kind))
        .collect();
    if near.is_empty() {
        "no such knob; names begin with sysctl., nic., irq., irqbalance., cpu., pci. or process."
            .into()
    } else {
        format!("no such knob; there are {}", near.join(", "))
    }
}

fn notes(case: &Case<'_>, plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.reaches_operator() {
        let from = case.session.remote.as_deref().unwrap_or_default();
        notes.push(format!(
            "your own connection from {from} may be cut: apply waits for a confirmation and undoes \
             all without one"
        ));
    }
    notes.extend(members::notes(case.facts, &plan.changes));
    notes
}

/// Whether a plan made before still fits: the same host, the same boot, the same values.
///
/// # Errors
/// [`TuneError::Changed`] with the first thing that does not.
pub fn still_fits(made: &Plan, now: &Plan) -> Result<(), TuneError> {
    let differs = |what: &str| {
        let name = |p: &Plan| p.host.name.known().cloned().unwrap_or_else(|| "unnamed".into());
        TuneError::Changed(format!(
            "the plan was made for another {what} (of {}, this is {}); nothing was written",
            name(made),
            name(now)
        ))
    };
    if made.host.machine_id.known() != now.host.machine_id.known() {
        return Err(differs("host"));
    }
    if made.host.boot_id.known() != now.host.boot_id.known() {
        return Err(differs("boot of this host"));
    }
    let known = made.host.net_namespace.is_known() == now.host.net_namespace.is_known();
    if !known || !netns::same(&made.host, &now.host) {
        return Err(differs("network namespace"));
    }
    for (i, change) in made.changes.iter().enumerate() {
        let old = now.changes.iter().find(|c| c.knob == change.knob).map(|c| &c.old);
        let done = now.unchanged.iter().find(|u| u.knob == change.knob).map(|u| &u.value);
        if let Some(is) = old.or(done).filter(|is| **is != change.old) {
            return Err(TuneError::Changed(format!(
                "change {}: {} was {} when the plan was made and is {is} now; nothing was written",
                i + 1,
                change.knob,
                change.old
            )));
        }
    }
    Ok(())
}
