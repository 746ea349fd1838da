//! Growth of the pressure stall totals.

use model::{
    Reading,
    samples::{Delta, PressureSample},
};
use parse::pressure::Pressure;

use super::grown_readings;
use crate::samples::raw::{Raw, RawPressure};

/// Those of the last reading.
pub fn all(readings: &[Raw]) -> Reading<Vec<PressureSample>> {
    let Some(last) = readings.last() else { return Reading::absent("never read") };
    let one = |now: &RawPressure| {
        let growth = |pick: fn(&Pressure) -> Reading<u64>| -> Delta {
            let values: Vec<Reading<u64>> = readings
                .iter()
                .map(|r| {
                    let same = |p: &&RawPressure| p.file == now.file;
                    match r.pressure.iter().find(same) {
                        Some(then) => then.totals.as_ref().and_then(pick),
                        None => Reading::absent("not in every reading"),
                    }
                })
                .collect();
            grown_readings(&values).map(|us| us.saturating_mul(1_000))
        };
        PressureSample {
            resource: now.resource.to_owned(),
            cgroup: now.cgroup.clone(),
            file: now.file.clone(),
            some_ns: growth(|p| Reading::Known(p.some_us)),
            full_ns: growth(|p| match p.full_us {
                Some(us) => Reading::Known(us),
                None => Reading::absent("this kernel has no line full"),
            }),
        }
    };
    Reading::Known(last.pressure.iter().map(one).collect())
}
