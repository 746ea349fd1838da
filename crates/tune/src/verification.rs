//! Verification at the end of an apply: reads the written values and those that needed no change. A
//! later write may have moved either as a side effect.

use model::tune::{Planned, Unchanged};

use crate::{Host, TuneError, coupled_values::Moving, journal::step, knobs};

/// A value expected after the last write.
struct RequestedValue<'a> {
    knob: &'a str,
    value: &'a str,
    /// The step that wrote it; `None` if it needed no change.
    step: Option<usize>,
}

/// Checks all values, except those that change by themselves and those of ended processes.
///
/// # Errors
/// The first wrong value, with the step that moved it, or else the step that wrote it.
pub fn look(
    host: &Host,
    changes: &[Planned],
    unchanged: &[Unchanged],
) -> Result<(), (usize, TuneError)> {
    let written = changes.iter().enumerate();
    let written =
        written.map(|(n, c)| RequestedValue { knob: &c.knob, value: &c.new, step: Some(n) });
    let so =
        unchanged.iter().map(|u| RequestedValue { knob: &u.knob, value: &u.value, step: None });
    let moving = Moving::default();
    for asked in written.chain(so) {
        if moving.has(host, asked.knob) || ends_with_irqbalance(changes, asked.knob) {
            continue;
        }
        if let Some(is) = otherwise(host, &asked) {
            return Err(blamed(host, changes, &asked, &is));
        }
    }
    Ok(())
}

/// The current value, if it is not the expected one.
fn otherwise(host: &Host, asked: &RequestedValue<'_>) -> Option<String> {
    let knob = knobs::find(asked.knob)?;
    match knob.read(host) {
        Ok(now) if knob.verify(asked.value, &now) || knob.show(&now) == asked.value => None,
        Ok(now) => Some(format!("is {}", knob.show(&now))),
        // The process ended meanwhile.
        Err(_) if knob.lost(host, "").is_some() => None,
        Err(e) => Some(format!("cannot be read ({e})")),
    }
}

/// irqbalance's settings end with it.
fn ends_with_irqbalance(changes: &[Planned], knob: &str) -> bool {
    const RUNNING: &str = "irqbalance.running";
    let ends = |c: &Planned| c.knob == RUNNING && c.new == "off";
    knob.starts_with("irqbalance.") && knob != RUNNING && changes.iter().any(ends)
}

fn blamed(
    host: &Host,
    changes: &[Planned],
    asked: &RequestedValue<'_>,
    is: &str,
) -> (usize, TuneError) {
    let RequestedValue { knob, value, .. } = asked;
    match overwriting_step(host, changes, asked) {
        Some((n, by)) => {
            let step = step(n, changes.len());
            let why = format!(
                "{knob} was to be {value} and {is} after {step}, {}={}, which moves it along: apply \
                 it by itself afterwards",
                by.knob, by.new
            );
            (n, TuneError::Environment(why))
        }
        None => {
            let last = changes.len().saturating_sub(1);
            let why = format!(
                "{knob} was to be {value} and {is} after the last step: another program changes \
                 it, or a later step does"
            );
            (asked.step.unwrap_or(last), TuneError::Changed(why))
        }
    }
}

/// The last step after the value's own that overwrites the value.
fn overwriting_step<'c>(
    host: &Host,
    changes: &'c [Planned],
    asked: &RequestedValue<'_>,
) -> Option<(usize, &'c Planned)> {
    let value = knobs::value(asked.knob);
    let moves = |c: &Planned| {
        let along = knobs::find(&c.knob).map(|k| k.coupled_settings(host));
        along.is_some_and(|all| all.iter().any(|k| knobs::value(k) == value))
    };
    let later = changes.iter().enumerate().rev().take_while(|(n, _)| asked.step != Some(*n));
    later.into_iter().find(|(_, c)| moves(c))
}
