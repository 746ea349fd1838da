//! Pressure stalls: the share of the window for which tasks waited for a resource.

use model::samples::PressureSample;

use crate::{
    Case,
    rule::{Draft, Missing, need},
    text,
};

/// The sample of one resource of the whole host.
pub(crate) fn host<'a>(case: &Case<'a>, resource: &str) -> Result<&'a PressureSample, Missing> {
    all(case)?
        .iter()
        .find(|p| p.resource == resource && p.cgroup.is_empty())
        .ok_or_else(|| Missing(format!("/proc/pressure/{resource}: not in the samples")))
}

pub(crate) fn all<'a>(case: &Case<'a>) -> Result<&'a [PressureSample], Missing> {
    need("pressure stalls", &case.samples()?.pressure).map(Vec::as_slice)
}

/// The share of the window in which some task waited.
pub(crate) fn some(case: &Case<'_>, sample: &PressureSample) -> Result<f64, Missing> {
    share(case, *need(&format!("{}, some", sample.file), &sample.some_ns)?)
}

/// The share of the window in which all tasks that were not idle waited.
pub(crate) fn full(case: &Case<'_>, sample: &PressureSample) -> Result<f64, Missing> {
    share(case, *need(&format!("{}, full", sample.file), &sample.full_ns)?)
}

fn share(case: &Case<'_>, ns: u64) -> Result<f64, Missing> {
    Ok((ns as f64 / 1e9 / case.window_s()?).min(1.0))
}

impl Draft {
    /// Quotes for which share of the window tasks waited; nothing where that is not known.
    pub(crate) fn show_pressure(self, case: &Case<'_>, sample: &PressureSample) -> Self {
        match some(case, sample) {
            Ok(share) => self.show(
                format!("tasks waited for {} {}", sample.resource, case.over()),
                format!("{} of the time", text::percent(share)),
                sample.file.clone(),
            ),
            Err(_) => self,
        }
    }
}
