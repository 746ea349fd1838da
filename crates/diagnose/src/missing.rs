//! Missing evidence, and the text about it.

use model::Reading;

/// A piece of missing evidence: `what: why`.
#[derive(Debug, Clone)]
pub(crate) struct Missing(pub(crate) String);

/// A known value, or its name and the reason why it is missing.
pub(crate) fn need<'a, T>(what: &str, reading: &'a Reading<T>) -> Result<&'a T, Missing> {
    match reading {
        Reading::Known(v) => Ok(v),
        Reading::Absent(why) => Err(Missing(reason(what, why))),
        Reading::Denied(why) => Err(Missing(reason(what, &format!("denied: {why}")))),
    }
}

/// `what: why`, or the reason alone where it names the object.
fn reason(what: &str, why: &str) -> String {
    let named = what.split([' ', ',']).next().unwrap_or(what);
    if why.contains(named) { why.into() } else { format!("{what}: {why}") }
}
