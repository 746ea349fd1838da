//! 39: the hypervisor runs other guests on this guest's CPUs.

use model::{Confidence, CpuSet, Severity};

use crate::{
    Case, Rule,
    knob::advice,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

/// Catalogue number 39. No setting of the guest moves this limit.
pub static RULE: Rule = Rule {
    id: "cpu_steal",
    number: 39,
    title: "the hypervisor takes CPU time from this guest",
    needs: &["steal time of /proc/stat over a window", "the hypervisor"],
    explained_by: &[],
    judge,
};

const SOURCE: &str = "/proc/stat, column 8";
/// Share of all CPUs' time that warns: netdata's `20min_steal_cpu`.
const WARNS: f64 = 0.10;
/// The share from which netdata's alarm stays raised.
const NOTED: f64 = 0.05;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let hypervisor = need("the hypervisor", &case.facts.host.hypervisor)?;
    if hypervisor == "none" {
        return clear("no hypervisor", [&case.facts.host.hypervisor]);
    }
    case.cpus_read()?;
    let (mut stolen, mut all) = (0u64, 0u64);
    let mut by_cpu = vec![];
    for cpu in &case.samples()?.cpus {
        let stat = need(&format!("/proc/stat of CPU {}", cpu.id), &cpu.proc_stat)?;
        let steal = *need(SOURCE, &stat.steal_ns)?;
        let total = stat.total_ns().ok_or_else(|| {
            Missing(format!("/proc/stat of CPU {}: a column is not known", cpu.id))
        })?;
        stolen += steal;
        all += total;
        by_cpu.push((cpu.id, steal as f64 / total.max(1) as f64));
    }
    if all == 0 {
        return Err(Missing("/proc/stat: no tick passed".into()));
    }
    let share = stolen as f64 / all as f64;
    by_cpu.sort_by(|a, b| b.1.total_cmp(&a.1));
    // On a host with many CPUs, one with high steal changes the total little.
    let worst = by_cpu.first().map_or(0.0, |(_, share)| *share);
    if share < NOTED && worst < WARNS {
        let text =
            format!("steal {}, at most {} of a CPU", text::percent(share), text::percent(worst));
        let each = case.samples()?.cpus.iter().try_for_each(|c| {
            let stat = need(&format!("/proc/stat of CPU {}", c.id), &c.proc_stat)?;
            need(SOURCE, &stat.steal_ns).map(drop)
        });
        return clear(text, [&each]);
    }
    let hit: CpuSet = by_cpu.iter().filter(|(_, s)| *s >= NOTED).map(|(id, _)| *id).collect();
    let severity = if share >= WARNS { Severity::Warning } else { Severity::Info };
    let mut draft = Draft::new(
        "steal",
        match by_cpu.first() {
            Some((id, worst)) if share < NOTED => {
                format!("the hypervisor ({hypervisor}) took {} of CPU {id}", text::percent(*worst))
            }
            _ => format!(
                "the hypervisor ({hypervisor}) took {} of the CPUs' time",
                text::percent(share)
            ),
        },
    )
    .weigh(severity, Confidence::High)
    .explain(
        "These CPUs had work and did not run: the hypervisor gave their time to other guests. Every \
         packet and request that came meanwhile waited. No setting of this guest moves that limit.",
    )
    .gain(Gain::Unblocks, "the CPU time that this guest asks for")
    .show(format!("steal of all CPUs {}", case.over()), text::percent(share), SOURCE);
    for (id, share) in by_cpu.iter().take(2) {
        draft = draft.show(format!("steal of CPU {id}"), text::percent(*share), SOURCE);
    }
    Ok(draft
        .change(advice(
            "this guest's share of its host",
            "fewer guests on the same host, dedicated CPUs, or another instance type",
            "none on this host",
            "none",
        ))
        .on_cpus(&hit)
        .found())
}
