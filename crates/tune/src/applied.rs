//! The settings that are to be in force, read again: what `doctor` judges.

use std::time::{SystemTime, UNIX_EPOCH};

use model::{
    Facts, Reading,
    applied::AppliedSetting,
    tune::{ChangeSet, ChangeState, Drift, Now},
};

use crate::{Host, Store, TuneError, status};

/// Every setting of a change set in force, as it is now. Those of another network namespace are left
/// out. **Source**: the journal, and the kernel.
pub fn settings(host: &Host, store: &Store, facts: &Facts) -> Reading<Vec<AppliedSetting>> {
    let status = match status::status(host, store, Some(facts)) {
        Ok(status) => status,
        Err(TuneError::Denied(why)) => return Reading::denied(why),
        Err(e) => return Reading::absent(e.to_string()),
    };
    if let Some(damaged) = status.damaged.first() {
        return Reading::absent(damaged.to_string());
    }
    let in_force = |set: &&ChangeSet| {
        set.namespace.is_empty()
            && matches!(set.state, ChangeState::InForce | ChangeState::AwaitingConfirmation)
    };
    let sets: Vec<&ChangeSet> = status.sets.iter().filter(in_force).collect();
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now_ms = u64::try_from(now_ms).unwrap_or(u64::MAX);
    let of = |now: Now| {
        let set = sets.iter().find(|s| s.id == now.id)?;
        let (in_force, suspects) = match now.drift {
            Drift::None => (true, vec![]),
            Drift::Changed { suspects } => (false, suspects),
            _ => (false, vec![]),
        };
        Some(AppliedSetting {
            set: now.id,
            age_s: now_ms.saturating_sub(set.begun_unix_ms) / 1_000,
            knob: if now.called.is_empty() { now.knob } else { now.called },
            before: now.before,
            written: now.written,
            now: now.now,
            in_force,
            suspects,
        })
    };
    let written = status.values.into_iter().filter(|v| v.beside.is_empty());
    Reading::Known(written.filter_map(of).collect())
}
