//! Growth of interrupt counts.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CpuId, IrqId, Reading,
    irq::IrqCount,
    samples::{IrqDelta, IrqSample},
};

use super::{all_known, grown};
use crate::samples::raw::{Raw, RawIrqs};

/// Interrupts that counted up or broke. A reading costs memory only for counts above zero, and
/// so does this.
pub fn all(readings: &[Raw]) -> Reading<Vec<IrqSample>> {
    all_known(readings.iter().map(|r| r.irqs.as_ref())).map(|tables| {
        let ids: BTreeSet<IrqId> = tables.iter().flat_map(|t| t.rows.keys().copied()).collect();
        let columns: Vec<BTreeSet<CpuId>> =
            tables.iter().map(|t| t.cpus.iter().copied().collect()).collect();
        ids.into_iter().filter_map(|irq| one(&tables, &columns, irq)).collect()
    })
}

fn one(tables: &[&RawIrqs], columns: &[BTreeSet<CpuId>], irq: IrqId) -> Option<IrqSample> {
    let rows: Vec<Option<&Vec<IrqCount>>> =
        tables.iter().map(|t| t.rows.get(&irq).and_then(Option::as_ref)).collect();
    let mut by_cpu: BTreeMap<CpuId, Vec<(usize, u64)>> = BTreeMap::new();
    for (n, row) in rows.iter().enumerate() {
        for cell in row.iter().flat_map(|r| r.iter()) {
            by_cpu.entry(cell.cpu).or_default().push((n, cell.count));
        }
    }
    let value = |n: usize, cpu: CpuId, cells: &[(usize, u64)]| -> Option<u64> {
        rows.get(n).copied().flatten()?;
        let zero = || columns.get(n)?.contains(&cpu).then_some(0);
        let cell = cells.binary_search_by_key(&n, |c| c.0).ok().and_then(|i| cells.get(i));
        cell.map(|c| c.1).or_else(zero)
    };
    let cpus: Vec<IrqDelta> = by_cpu
        .iter()
        .map(|(&cpu, cells)| IrqDelta {
            cpu,
            count: grown((0..tables.len()).map(|n| value(n, cpu, cells))),
        })
        .filter(|d| d.count != Reading::Known(0))
        .collect();
    (!cpus.is_empty()).then_some(IrqSample { irq, cpus })
}
