//! Evidence that a rule asks for, and what is said where it is not there.

use model::Reading;

/// Evidence that is not there: `what: why`.
#[derive(Debug, Clone)]
pub(crate) struct Missing(pub(crate) String);

/// A known value, or which one is missing and why.
pub(crate) fn need<'a, T>(what: &str, reading: &'a Reading<T>) -> Result<&'a T, Missing> {
    match reading {
        Reading::Known(v) => Ok(v),
        Reading::Absent(why) => Err(Missing(reason(what, why))),
        Reading::Denied(why) => Err(Missing(reason(what, &format!("denied: {why}")))),
    }
}

/// `what: why`, or the reason alone where it names the thing itself.
fn reason(what: &str, why: &str) -> String {
    let named = what.split([' ', ',']).next().unwrap_or(what);
    if why.contains(named) { why.into() } else { format!("{what}: {why}") }
}
