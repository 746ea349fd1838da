//! Whether a knob takes a value on a host of given facts, without reading or writing that host.

use model::Facts;

use crate::{
    knob::{Knob, PlanContext, Refusal},
    session::Session,
};

/// The value in the kernel's form. `old` is the current value; empty where it is not known.
///
/// # Errors
/// The reason for which the knob refuses it.
pub fn accepted(
    facts: &Facts,
    knob: &dyn Knob,
    old: &str,
    wanted: &str,
) -> Result<String, Refusal> {
    knob.validate(&PlanContext::new(facts, &Session::default()), old, wanted)
}
