//! Checks that findings, or an earlier plan, match this host's current state.

use model::{
    Reading,
    tune::{HostId, Plan, Planned},
};

use crate::{Host, TuneError, identity::Finder, journal::step, netns};

/// Checks that findings are of this host, boot and network namespace. Fields that they omit are not
/// compared.
///
/// # Errors
/// [`TuneError::Changed`] with the first difference.
pub fn found_here(found: &HostId, here: &HostId) -> Result<(), TuneError> {
    fn differ(a: &Reading<String>, b: &Reading<String>) -> bool {
        a.known().is_some_and(|a| b.known() != Some(a))
    }
    let name = |h: &HostId| h.name.known().cloned().unwrap_or_else(|| "unnamed".into());
    let of_another = |what: String| {
        Err(TuneError::Changed(format!(
            "the findings are of another {what}: look again here (netwright doctor --json); nothing \
             was planned"
        )))
    };
    let machine = differ(&found.machine_id, &here.machine_id);
    if machine || differ(&found.name, &here.name) {
        return of_another(format!("host ({}, and this is {})", name(found), name(here)));
    }
    if differ(&found.boot_id, &here.boot_id) {
        return of_another(format!("boot of this host ({})", name(here)));
    }
    if !netns::same(found, here) {
        let number = |h: &HostId| h.net_namespace.known().map(u64::to_string).unwrap_or_default();
        let (then, now) = (number(found), number(here));
        return of_another(format!("network namespace (net:[{then}], and this is net:[{now}])"));
    }
    Ok(())
}

/// Records each change's interface.
pub fn name_interfaces(host: &Host, changes: &mut [Planned]) {
    let finder = Finder::new(host);
    for change in changes {
        change.nic = finder.of(&change.knob);
    }
}

/// Checks that an earlier plan still fits: same host, boot, interfaces and values.
///
/// # Errors
/// [`TuneError::Changed`] with the first difference.
pub fn still_fits(host: &Host, made: &Plan, now: &Plan) -> Result<(), TuneError> {
    let differs = |what: &str, of: &dyn Fn(&HostId) -> Option<String>| {
        let of = |host| of(host).unwrap_or_else(|| "not known".into());
        TuneError::Changed(format!(
            "the plan was made for another {what} ({}, this is {}); nothing was written",
            of(&made.host),
            of(&now.host)
        ))
    };
    if made.host.machine_id.known() != now.host.machine_id.known() {
        let who = |h: &HostId| {
            let name = h.name.known().map_or("unnamed", String::as_str);
            Some(format!("{name}, machine-id {}", h.machine_id.known()?))
        };
        return Err(differs("host", &who));
    }
    if made.host.boot_id.known() != now.host.boot_id.known() {
        return Err(differs("boot of this host", &|h| h.boot_id.known().cloned()));
    }
    let known = made.host.net_namespace.is_known() == now.host.net_namespace.is_known();
    if !known || !netns::same(&made.host, &now.host) {
        let number = |h: &HostId| h.net_namespace.known().map(|n| format!("net:[{n}]"));
        return Err(differs("network namespace", &number));
    }
    let finder = Finder::new(host);
    for (i, change) in made.changes.iter().enumerate() {
        finder.still_means(change).map_err(|e| {
            let step = step(i, made.changes.len());
            TuneError::Changed(format!("{step}: {e}; plan anew; nothing was written"))
        })?;
    }
    for (i, change) in made.changes.iter().enumerate() {
        let old = now.changes.iter().find(|c| c.knob == change.knob).map(|c| &c.old);
        let done = now.unchanged.iter().find(|u| u.knob == change.knob).map(|u| &u.value);
        if let Some(is) = old.or(done).filter(|is| **is != change.old) {
            return Err(TuneError::Changed(format!(
                "{}: {} was {} when the plan was made and is {is} now; nothing was written",
                step(i, made.changes.len()),
                change.knob,
                change.old
            )));
        }
    }
    Ok(())
}
