//! 5: the kernel stopped polling with packets left.

use model::{Confidence, CpuId, CpuSet, Severity};

use crate::{
    Case, Rule, knob, rate,
    rule::{Draft, Gain, Judgement, Proposal, clear, settle},
    softnet, text,
};

/// Catalogue number 5. A symptom: after the load is spread, a larger budget is rarely needed.
pub static RULE: Rule = Rule {
    id: "time_squeeze",
    number: 5,
    title: "polls end with packets left (time_squeeze)",
    needs: &["softnet_stat over a window"],
    explained_by: &[
        "few_channels",
        "irqs_piled_up",
        "rps_missing",
        "flow_skew",
        "below_kernel_default",
    ],
    judge,
};

/// The share of all squeezes on one CPU from which that CPU's load is the cause, not the budget.
const ONE_CPU: f64 = 0.80;

/// CPUs that have a line each.
const SHOWN: usize = 8;

const BUDGET: &str = "net.core.netdev_budget";
const BUDGET_USECS: &str = "net.core.netdev_budget_usecs";

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let (rows, missing, window) =
        match (softnet::column(case, |s| &s.time_squeeze), case.window_s()) {
            (Ok(column), Ok(window)) => (column.rows, column.missing, window),
            (Err(m), _) | (_, Err(m)) => return vec![m.of("")],
        };
    let mut out: Vec<Judgement> = missing.into_iter().map(|m| m.of("")).collect();
    let over: Vec<(CpuId, u64, Confidence)> = rows
        .iter()
        .filter_map(|&(cpu, n)| rate::sustained(n, window).map(|sure| (cpu, n, sure)))
        .collect();
    if over.is_empty() {
        let most = rows.iter().map(|r| r.1).max().unwrap_or(0);
        let text = match most {
            0 => format!("none {}", case.over()),
            n => format!("at most {} a CPU {}: a few are noise", text::count(n), case.over()),
        };
        // CPUs without a value are named in the evidence.
        out.push(settle("", clear(text, [&softnet::column(case, |s| &s.time_squeeze)])));
        return out;
    }
    out.push(finding(case, &rows, &over));
    out
}

fn finding(case: &Case<'_>, rows: &[(CpuId, u64)], over: &[(CpuId, u64, Confidence)]) -> Judgement {
    let cpus: CpuSet = over.iter().map(|o| o.0).collect();
    let total: u64 = rows.iter().map(|r| r.1).sum();
    let worst = over.iter().max_by_key(|o| o.1).map_or((CpuId(0), 0), |o| (o.0, o.1));
    let sure = over.iter().map(|o| o.2).max().unwrap_or(Confidence::Low);
    let severity = if sure == Confidence::Low { Severity::Info } else { Severity::Warning };
    let alone = worst.1 as f64 >= total as f64 * ONE_CPU && case.housekeeping().len() > 1;
    let mut draft = Draft::new(
        text::cpus(&cpus).to_lowercase(),
        format!(
            "polling on {} stopped with packets left, {} times {}",
            text::cpus(&cpus),
            text::count(over.iter().map(|o| o.1).sum()),
            case.over()
        ),
    )
    .weigh(severity, sure)
    .explain(
        "A softirq run ended by its budget or its time while packets were waiting; they wait for \
         the next run or for ksoftirqd.",
    )
    .add(&rate::Pattern::of_softnet(case, worst.0, "time_squeeze").text())
    .gain(Gain::Tidies, "shorter waits in the receive queue under load");
    for (cpu, n, _) in over.iter().take(SHOWN) {
        draft = draft.show(
            format!("time_squeeze on CPU {cpu} {}", case.over()),
            text::count(*n),
            "/proc/net/softnet_stat, column 3",
        );
    }
    if let Some(rest @ [_, ..]) = over.get(SHOWN..) {
        draft = draft.show(
            format!("time_squeeze on {} more CPUs {}", rest.len(), case.over()),
            text::count(rest.iter().map(|o| o.1).sum()),
            "/proc/net/softnet_stat, column 3",
        );
    }
    let others = total.saturating_sub(over.iter().map(|o| o.1).sum());
    if others > 0 {
        draft = draft
            .add(&format!("Further CPUs have {} in all, which is noise.", text::count(others)));
    }
    draft = draft.show_sysctl(case, BUDGET).show_sysctl(case, BUDGET_USECS);
    draft = if alone {
        draft.add(
            "Nearly all of it is one CPU's: a larger budget would only let that CPU keep the \
             others' work longer. Spread the load first.",
        )
    } else if sure == Confidence::Low {
        draft.add("So few do not justify a change: sample longer first.")
    } else {
        draft.changes(larger_budget(case))
    };
    draft.on_cpus(&cpus).on_sysctl(BUDGET).on_sysctl(BUDGET_USECS).found()
}

/// Both limits doubled: the counter does not say which one ended the run.
fn larger_budget(case: &Case<'_>) -> Vec<Proposal> {
    let risk = "softirqs hold the CPU longer, so tasks on it wait longer";
    let doubled = |key: &str| {
        let now = case.sysctl_number(key).ok()?;
        Some(knob::sysctl(case, key, &now.checked_mul(2)?.to_string(), risk))
    };
    [BUDGET, BUDGET_USECS].into_iter().filter_map(doubled).collect()
}
