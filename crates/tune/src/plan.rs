//! Turns change requests and current values into a plan. [`look`] reads, [`make`] is pure.

mod fits;

use std::collections::BTreeMap;

use model::{
    SCHEMA_VERSION,
    knob::{NicSetting, Target},
    sysctls::{self, Verdict},
    tune::{HostId, Plan, PlanNote, Planned, Refused, RefusedAs, Unchanged},
};
use parse::sysctl_conf;

use crate::{
    Host, TuneError,
    change_request::{self, ChangeRequest, ChangeRequests, RequestMode},
    knob::{Knob, PlanContext, Refusal, harmful, irq_of, is_of_nic, mtu_of},
    knobs, members,
    phase::Phase,
    profile,
    side_effects::{self, CoupledKnobs},
    stacked, suggestion,
};

pub use fits::{found_here, name_interfaces, still_fits};

/// Current state of the requested knobs.
#[derive(Debug, Clone, Default)]
pub struct ReadValues {
    /// The current value of each, exact to the byte.
    values: BTreeMap<String, Result<String, TuneError>>,
    /// Knobs that cannot be written here, with the reason.
    fixed: BTreeMap<String, TuneError>,
    /// Missing knobs of which the reason is known.
    missing: BTreeMap<String, Refusal>,
    /// The side effects of each knob's write.
    coupled: CoupledKnobs,
}

/// Reads every requested knob.
pub fn look(host: &Host, change_requests: &[ChangeRequest]) -> ReadValues {
    let mut seen = ReadValues::default();
    for w in change_requests {
        let Some(knob) = knobs::find(&w.knob) else { continue };
        if knob.never().is_some_and(|no| !is_beside_it(host, &*knob, &no)) {
            continue;
        }
        let read = knob.read(host);
        if let Some(why) = read.is_err().then(|| knob.missing(host)).flatten() {
            seen.missing.insert(w.knob.clone(), why);
        }
        seen.values.insert(w.knob.clone(), read);
        seen.coupled.insert(w.knob.clone(), knob.coupled_settings(host));
        if let Err(e) = knob.settable(host) {
            seen.fixed.insert(w.knob.clone(), e);
        }
    }
    seen
}

/// Whether a refusal is moot, because this kernel does not have the knob. An existing file is not
/// read: reading some files triggers an action.
fn is_beside_it(host: &Host, knob: &dyn Knob, no: &Refusal) -> bool {
    let one_way = matches!(no.verdict, Some((Verdict::NotUndone, _)));
    one_way && knob.is_absent(host)
}

/// Makes the plan: changes and refusals side by side. Pure.
pub fn make(
    mut context: PlanContext<'_>,
    id: HostId,
    change_requests: &ChangeRequests,
    seen: &ReadValues,
) -> Plan {
    context.meant = change_requests.understood || change_requests.trial;
    let judged = judge(&mut context, change_requests, seen);
    let mut plan = Plan {
        schema_version: SCHEMA_VERSION,
        host: id,
        changes: vec![],
        refused: change_requests.refused.clone(),
        unchanged: judged.unchanged,
        notes: vec![],
    };
    plan.refused.extend(judged.refused);
    let mut phased = judged.phased;
    phased.sort_by_key(|(phase, _)| *phase);
    let changes = phased.into_iter().map(|(_, p)| p).collect();
    let changes = without_irqbalance(changes, &mut plan.refused);
    let changes = stacked::in_order(context.facts, changes);
    let changes = members::in_turn(context.facts, changes);
    plan.changes = side_effects::in_order(&seen.coupled, changes);
    plan.notes = notes(&context, &plan);
    plan
}

/// Verdict on the change requests.
#[derive(Default)]
struct Judged {
    phased: Vec<(Phase, Planned)>,
    refused: Vec<Refused>,
    unchanged: Vec<Unchanged>,
}

/// Judges every change request against the MTUs that the other requests set; refused requests set
/// none.
fn judge(
    context: &mut PlanContext<'_>,
    change_requests: &ChangeRequests,
    seen: &ReadValues,
) -> Judged {
    let planned_mtu = |knob: &str, value: &str| {
        let nic = mtu_of(knob)?.to_owned();
        Some((nic, value.trim().parse::<u64>().ok()?))
    };
    context.mtus = change_requests
        .change_requests
        .iter()
        .filter_map(|w| planned_mtu(&w.knob, &w.value))
        .collect();
    loop {
        let judged = judge_once(context, change_requests, seen);
        let made = judged.phased.iter().filter_map(|(_, c)| planned_mtu(&c.knob, &c.new));
        let made: BTreeMap<String, u64> = made.collect();
        // Each round has fewer MTUs left.
        let before = context.mtus.len();
        context.mtus.retain(|nic, _| made.contains_key(nic));
        if context.mtus.len() == before {
            return judged;
        }
    }
}

fn judge_once(
    context: &PlanContext<'_>,
    change_requests: &ChangeRequests,
    seen: &ReadValues,
) -> Judged {
    let mut judged = Judged::default();
    let mut asked: BTreeMap<String, &ChangeRequest> = BTreeMap::new();
    for change_request in &change_requests.change_requests {
        let value = knobs::value(&change_request.knob);
        if zero_of_other_unit(change_request, &value, &change_requests.change_requests) {
            continue;
        }
        if let Some(first) = asked.get(&value) {
            judged.refused.extend(twice(change_request, first));
            continue;
        }
        asked.insert(value, change_request);
        match one(context, change_request, seen, change_requests.understood) {
            Ok(Some(planned)) => judged.phased.push(planned),
            Ok(None) => judged.unchanged.push(unchanged(change_request, seen)),
            Err(refusal) => judged.refused.push(refused(change_request, refusal)),
        }
    }
    judged
}

/// Whether the request is the 0 of an unused unit next to a request in the other unit
/// (`vm.dirty_ratio=0` with `vm.dirty_bytes`): writing it would turn both off.
fn zero_of_other_unit(change_request: &ChangeRequest, value: &str, all: &[ChangeRequest]) -> bool {
    let counts = |w: &ChangeRequest| {
        w.knob != change_request.knob && w.value != "0" && knobs::value(&w.knob) == value
    };
    change_request.value == "0"
        && knobs::find(&change_request.knob).is_some_and(|k| k.other_unit_counts())
        && all.iter().any(counts)
}

/// Refusal of a second request for one value; `None` if the requests are equal.
fn twice(change_request: &ChangeRequest, first: &ChangeRequest) -> Option<Refused> {
    let why = match first.knob == change_request.knob {
        true if first.value == change_request.value && first.mode == change_request.mode => {
            return None;
        }
        true => format!("{} asks for it too", first.asked_by),
        false => {
            format!("is the same value as {} of this plan: ask for one of them", first.knob)
        }
    };
    Some(refused(change_request, Refusal::new(RefusedAs::Usage, why)))
}

fn one(
    context: &PlanContext<'_>,
    change_request: &ChangeRequest,
    seen: &ReadValues,
    understood: bool,
) -> Result<Option<(Phase, Planned)>, Refusal> {
    match &change_request.mode {
        RequestMode::Refuted(why) => match judged(context, change_request, seen) {
            Err(refusal) if matches!(refusal.kind, RefusedAs::Harmful | RefusedAs::NoEffect) => {
                Err(refusal)
            }
            _ => Err(Refusal::new(RefusedAs::Harmful, why)),
        },
        _ => {
            let made = judged(context, change_request, seen)?;
            let danger = knobs::find(&change_request.knob).and_then(|k| k.danger());
            match danger.filter(|_| made.is_some() && !understood) {
                Some(danger) => harmful(format!("{danger}; --i-understand lets it pass")),
                None => Ok(made),
            }
        }
    }
}

fn judged(
    context: &PlanContext<'_>,
    change_request: &ChangeRequest,
    seen: &ReadValues,
) -> Result<Option<(Phase, Planned)>, Refusal> {
    let Some(knob) = knobs::find(&change_request.knob) else {
        if let Some(judged) = sysctls::command(&change_request.knob) {
            return Err(judged.into());
        }
        let unknown = || Refusal::new(RefusedAs::Usage, unknown(&change_request.knob));
        return Err(
            change_request::left_whole(change_request, context.facts).unwrap_or_else(unknown)
        );
    };
    if let Some(refusal) = knob.never().filter(|_| !seen.values.contains_key(&change_request.knob))
    {
        return Err(refusal);
    }
    let fixed = seen.fixed.get(&change_request.knob);
    let exact = match seen.values.get(&change_request.knob) {
        Some(Ok(exact)) => exact,
        Some(Err(e)) => {
            if let Some(missing) = seen.missing.get(&change_request.knob) {
                return Err(missing.clone());
            }
            let e = fixed.unwrap_or(e);
            let why = no_interface(context, &change_request.knob).unwrap_or_else(|| e.to_string());
            return Err(Refusal::new(e.kind(), why));
        }
        None => return Err(Refusal::new(RefusedAs::Environment, "was not read")),
    };
    let value = match change_request.mode {
        RequestMode::AtLeast => raised(context, change_request, &knob.show(exact))?,
        _ => change_request.value.clone(),
    };
    if change_request.mode == RequestMode::AtLeast && knob.verify(&value, exact) {
        return Ok(None);
    }
    let new = knob.validate(context, exact, &value)?;
    if knob.verify(&new, exact) {
        return Ok(None);
    }
    if let Some(e) = fixed {
        return Err(Refusal::new(e.kind(), e.to_string()));
    }
    Ok(Some((knob.phase(), planned(context, &*knob, change_request, exact, new))))
}

/// Refusal of a knob whose interface does not exist.
fn no_interface(context: &PlanContext<'_>, knob: &str) -> Option<String> {
    let nics = &context.facts.nics;
    let is_one = knob.starts_with("nic.") && !nics.is_empty();
    if !is_one || nics.iter().any(|n| is_of_nic(knob, &n.name)) {
        return None;
    }
    let typed = knob.split('.').nth(1).unwrap_or_default();
    let there = suggestion::hint(typed, nics.iter().map(|n| n.name.as_str()));
    Some(format!("there is no such interface here; {there}"))
}

/// The value that "at least" results in here.
fn raised(
    context: &PlanContext<'_>,
    change_request: &ChangeRequest,
    now: &str,
) -> Result<String, Refusal> {
    let key = change_request.knob.strip_prefix("sysctl.").unwrap_or_default();
    let default = context.facts.sysctls.get(key).and_then(|f| f.default.known());
    profile::raise(now, default.map(String::as_str), &change_request.value).ok_or_else(|| {
        let why =
            format!("at least {:?}: it is {now} now, which does not compare", change_request.value);
        Refusal::new(RefusedAs::Usage, why)
    })
}

fn planned(
    context: &PlanContext<'_>,
    knob: &dyn Knob,
    change_request: &ChangeRequest,
    exact: &str,
    new: String,
) -> Planned {
    let name = &change_request.knob;
    let impact = knob.impact(context, exact, &new);
    Planned {
        knob: name.clone(),
        old: knob.show(exact),
        unit: knob.unit().into(),
        member: members::of(context.facts, name, &impact),
        nic: None,
        impact,
        owner: knob.owner(context),
        undo: knob.undo_text(),
        command: knob.command(&new),
        asked_by: change_request.asked_by.clone(),
        why: change_request.why.clone(),
        new,
    }
}

/// A plan that stops irqbalance cannot also change its settings.
fn without_irqbalance(changes: Vec<Planned>, refused: &mut Vec<Refused>) -> Vec<Planned> {
    const RUNNING: &str = "irqbalance.running";
    if !changes.iter().any(|c| c.knob == RUNNING && c.new == "off") {
        return changes;
    }
    let needs_running = |c: &Planned| c.knob.starts_with("irqbalance.") && c.knob != RUNNING;
    let (lost, kept): (Vec<_>, Vec<_>) = changes.into_iter().partition(needs_running);
    refused.extend(lost.into_iter().map(|c| Refused {
        asked_by: c.asked_by,
        knob: c.knob,
        new: c.new,
        kind: RefusedAs::Environment,
        why: format!("{RUNNING}=off of the same plan stops irqbalance, so this cannot be set"),
        verdict: None,
        source: String::new(),
    }));
    kept
}

fn refused(change_request: &ChangeRequest, refusal: Refusal) -> Refused {
    let Refusal { kind, why, verdict } = refusal;
    Refused {
        asked_by: change_request.asked_by.clone(),
        knob: change_request.knob.clone(),
        new: change_request.value.clone(),
        kind,
        why,
        verdict: verdict.map(|(verdict, _)| verdict),
        source: verdict.map(|(_, source)| source.to_owned()).unwrap_or_default(),
    }
}

fn unchanged(change_request: &ChangeRequest, seen: &ReadValues) -> Unchanged {
    let exact = seen.values.get(&change_request.knob).and_then(|s| s.as_ref().ok());
    let show = |e: &String| knobs::find(&change_request.knob).map_or(e.clone(), |k| k.show(e));
    Unchanged {
        asked_by: change_request.asked_by.clone(),
        knob: change_request.knob.clone(),
        value: exact.map(show).unwrap_or_default(),
    }
}

/// The text for an unknown knob name.
fn unknown(knob: &str) -> String {
    let kinds = ["sysctl", "nic", "irq", "irqbalance", "cpu", "pci", "process"];
    let kind = knob.split('.').next().unwrap_or_default();
    let of_kind = |kind: &str| -> Vec<&'static str> {
        let all = knobs::ALL.iter().map(|k| k.spelling);
        all.filter(|s| s.split('.').next() == Some(kind)).collect()
    };
    if kind == "sysctl" && sysctl_conf::is_glob(knob) {
        return "a pattern stands for several settings: name each".into();
    }
    if !kinds.contains(&kind) {
        let meant = suggestion::nearest(kind, kinds.into_iter());
        let meant = meant.map(|n| format!("did you mean {n}.…? ")).unwrap_or_default();
        return format!(
            "no such knob; {meant}names begin with sysctl., nic., route., irq., irqbalance., cpu., \
             memory., process., pci. or boot."
        );
    }
    match suggestion::nearest_spelling(knob, &of_kind(kind)) {
        Some(meant) => format!("no such knob; did you mean {meant}?"),
        None => format!("no such knob; there are {}", of_kind(kind).join(", ")),
    }
}

fn notes(context: &PlanContext<'_>, plan: &Plan) -> Vec<PlanNote> {
    let mut notes = Vec::new();
    if plan.reaches_operator() {
        let from = context.session.remote.clone().unwrap_or_default();
        notes.push(PlanNote::MayCutConnection { from });
    }
    notes.extend(queues_to_come(plan));
    notes.extend(members::notes(context.facts, &plan.changes));
    notes.extend(stacked::notes(context.facts, &plan.changes));
    notes
}

/// A note that a policy only covers the queues that exist now.
fn queues_to_come(plan: &Plan) -> Option<PlanNote> {
    let nic = plan.changes.iter().find_map(|c| match Target::parse(&c.knob)? {
        Target::Nic(nic, NicSetting::Plain("channels")) => Some(nic),
        _ => None,
    })?;
    let changes = plan.changes.iter().map(|c| &c.knob);
    let mut all = changes.chain(plan.unchanged.iter().map(|u| &u.knob));
    let placed = all.any(|knob| irq_of(knob).is_some());
    placed.then(|| PlanNote::QueuesWillChange { nic: nic.to_owned() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod recipe;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use model::Reading;

    use super::*;
    use crate::session::Session;

    #[test]
    fn irqbalance_gets_all_its_bans_before_it_is_stopped() {
        let facts = include_str!("../../diagnose/tests/golden/_base/facts.json");
        let facts: model::Facts = serde_json::from_str(facts).unwrap();
        let irq = facts.irqs.known().unwrap().first().unwrap().irq;
        let session = Session::default();
        let context = || PlanContext::new(&facts, &session);
        let id = HostId {
            name: Reading::default(),
            machine_id: Reading::default(),
            boot_id: Reading::default(),
            net_namespace: Reading::default(),
            net_cookie: Reading::default(),
        };
        let now = [
            ("irqbalance.paused", "7 99 off\n"),
            ("irqbalance.banned_irqs", "7 99 none\n"),
            ("irqbalance.banned_cpus", "7 99 none its own: none\n"),
        ];
        let values = now.map(|(knob, exact)| (knob.to_owned(), Ok(exact.to_owned())));
        let seen = ReadValues { values: values.into_iter().collect(), ..ReadValues::default() };
        let mut asks = [
            "irqbalance.paused=on".to_owned(),
            format!("irqbalance.banned_irqs=+{irq}"),
            "irqbalance.banned_cpus=+0".to_owned(),
        ];
        let stop = ["irqbalance.running=off".to_owned(), asks[1].clone()];
        let mut running = seen.clone();
        running.values.insert("irqbalance.running".into(), Ok("on systemd\n".into()));
        let plan =
            make(context(), id.clone(), &change_request::arguments(&stop).unwrap(), &running);
        assert_eq!((plan.changes.len(), plan.refused.len()), (1, 1), "{plan:?}");
        assert!(plan.refused[0].why.contains("of the same plan stops irqbalance"));
        for _ in 0..2 {
            let plan =
                make(context(), id.clone(), &change_request::arguments(&asks).unwrap(), &seen);
            assert_eq!(plan.refused, []);
            let order: Vec<&str> = plan.changes.iter().map(|c| c.knob.as_str()).collect();
            assert_eq!(order.last(), Some(&"irqbalance.paused"), "{order:?}");
            asks.reverse();
        }
    }
}
