//! Changes on trial, for `prove` and `fix`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use model::{
    Reading,
    tune::{By, Plan, State},
};
use tune::{
    Host, Store, TuneError, status,
    trial::Bench,
    wish::{Wish, Wishes},
};

use super::{by, failure, plan, store};
use crate::{
    exit::{Done, Failure},
    output::note,
};

/// The host to make experiments on, alone. What killed experiments left is undone before.
pub fn bench(what: &str, quiet: bool) -> Result<Bench, Failure> {
    let host = Host::live();
    let by = by(&host)?;
    let mut say = |text: &str| {
        if !quiet {
            note(&format!("netwright: {text}"));
        }
    };
    let bench = Bench::open(host, store(None), by, what, &mut say).map_err(failure)?;
    for line in bench.clear().map_err(failure)? {
        note(&format!("netwright: {line}"));
    }
    Ok(bench)
}

/// The journal, for a look.
pub fn journal(state_dir: Option<PathBuf>) -> Store {
    store(state_dir)
}

/// What stands in the journal of changes that were made from afar, before the address.
pub const LENT: &str = "netwright fix at ";

/// Puts back what one who was killed had on trial; waits until the kernel has let go of the
/// lock.
pub fn lent_and_lost(state_dir: &Path) -> Result<(), Failure> {
    let host = Host::live();
    let by = by(&host)?;
    let store = store(Some(state_dir.to_owned()));
    let bench = Bench::open(host, store, by, "the warden", &mut |_| {}).map_err(failure)?;
    bench.clear().map_err(failure)?;
    Ok(())
}

/// This host for somebody at the other end of a connection, who does not wait for it. `state_dir`
/// as for `tune`.
pub fn lent(state_dir: Option<PathBuf>, to: &str) -> Result<Bench, Failure> {
    let host = Host::live();
    let by = By { login: Reading::Known(format!("{to}, from the far end")), ..by(&host)? };
    let store = store(state_dir);
    let busy = |e: TuneError| {
        Failure::Environment(format!(
            "{e}; two ends on one machine need a journal each: serve --state-dir DIR"
        ))
    };
    drop(store.lock(Some(Duration::from_secs(1)), &mut |_| {}).map_err(busy)?);
    let what = format!("{LENT}{to}");
    let bench = Bench::open(host, store, by, &what, &mut |_| {}).map_err(failure)?;
    bench.clear().map_err(failure)?;
    Ok(bench)
}

/// Undoes what killed experiments left, for one that changes nothing itself but would find it.
/// Whoever may not leaves it: every command says that it is there.
pub fn clear(what: &str, quiet: bool) -> Result<(), Failure> {
    let (sets, _) = status::standing(&Host::live(), &store(None));
    if !sets.iter().any(|(s, state)| *state == State::Unfinished && s.trial.is_some()) {
        return Ok(());
    }
    match bench(what, quiet) {
        Ok(_) | Err(Failure::Denied(_)) => Ok(()),
        Err(e) => Err(e),
    }
}

/// A plan for each of several sets of wishes, as the host is now; the refusal of the first that
/// `tune plan` would refuse (an error, or a no that was told). `own_connection` allows what may
/// cut the operator's.
pub fn plans(
    host: &Host,
    sets: Vec<Vec<Wish>>,
    own_connection: bool,
) -> Result<Result<Vec<Plan>, Done>, Failure> {
    let all = Wishes { wishes: sets.iter().flatten().cloned().collect(), ..Wishes::default() };
    let facts = plan::facts(host, &all);
    let mut plans = Vec::new();
    for wishes in sets {
        let wishes = Wishes { wishes, ..Wishes::default() };
        let plan = plan::of_facts(host, &facts, wishes)?;
        if !plan.refused.is_empty() {
            return plan::worst(&plan).map(Err);
        }
        if let Some(why) = cuts(&plan).filter(|_| !own_connection) {
            return Err(Failure::Usage(why));
        }
        plans.push(plan);
    }
    Ok(Ok(plans))
}

/// The change that may cut the operator's own connection, if one may.
pub fn cuts(plan: &Plan) -> Option<String> {
    let change = plan.changes.iter().find(|c| c.radius.own_connection)?;
    Some(format!(
        "{}={}: your own connection may be cut ({}), which an experiment would do again and \
         again; --own-connection allows it",
        change.knob, change.new, change.radius.why
    ))
}
