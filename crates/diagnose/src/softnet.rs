//! One column of `softnet_stat` over the window.

use model::{
    CpuId, CpuSet,
    samples::{Delta, SoftnetSample},
};

use crate::{
    Case,
    rule::{Missing, need},
};

pub(crate) struct Column {
    /// CPUs whose growth is known; never empty.
    pub(crate) rows: Vec<(CpuId, u64)>,
    /// Why a CPU is missing: the first reason.
    pub(crate) missing: Option<Missing>,
}

impl Column {
    /// Growth on these CPUs.
    pub(crate) fn sum(&self, cpus: &CpuSet) -> u64 {
        self.rows.iter().filter(|r| cpus.contains(r.0)).map(|r| r.1).sum()
    }
}

/// Reads a column; an error when no CPU reports it.
pub(crate) fn column(
    case: &Case<'_>,
    pick: impl Fn(&SoftnetSample) -> &Delta,
) -> Result<Column, Missing> {
    let (mut rows, mut missing) = (vec![], None);
    for cpu in &case.samples()?.cpus {
        let what = format!("/proc/net/softnet_stat of CPU {}", cpu.id);
        let value = need(&what, &cpu.softnet).and_then(|row| need(&what, pick(row)).copied());
        match value {
            Ok(n) => rows.push((cpu.id, n)),
            Err(m) => missing = missing.or(Some(m)),
        }
    }
    match (rows.is_empty(), missing) {
        (true, Some(m)) => Err(m),
        (true, None) => Err(Missing("/proc/net/softnet_stat: no CPU was sampled".into())),
        (false, missing) => Ok(Column { rows, missing }),
    }
}
