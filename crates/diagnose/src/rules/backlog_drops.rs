//! 6: the per-CPU backlog overflowed.

use model::{Confidence, CpuId, CpuSet, Severity};

use crate::{
    Case, Rule, drop_reasons, knob, load, rate,
    rule::{Draft, Gain, Judgement, clear, settle},
    softnet, text,
};

/// Catalogue number 6. Only packets that take the backlog can be dropped there: steered by RPS,
/// received through veth, loopback or `netif_rx`.
pub static RULE: Rule = Rule {
    id: "backlog_drops",
    number: 6,
    title: "packets dropped at a CPU's backlog",
    needs: &["softnet_stat over a window", "CPU time over a window"],
    explained_by: &["few_channels", "irqs_piled_up", "below_kernel_default"],
    judge,
};

const BACKLOG: &str = "net.core.netdev_max_backlog";
/// The proposed limit; above it the queue only adds delay.
const ROOMY: u64 = 10_000;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let (rows, missing, window) = match (softnet::column(case, |s| &s.dropped), case.window_s()) {
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
            0 => format!("none dropped {}", case.over()),
            n => format!("at most {} dropped a CPU {}", text::count(n), case.over()),
        };
        // CPUs without a value are named in the evidence.
        out.push(settle("", clear(text, [&softnet::column(case, |s| &s.dropped)])));
        return out;
    }
    out.push(finding(case, &over));
    out
}

fn finding(case: &Case<'_>, over: &[(CpuId, u64, Confidence)]) -> Judgement {
    let cpus: CpuSet = over.iter().map(|o| o.0).collect();
    let total: u64 = over.iter().map(|o| o.1).sum();
    let sure = over.iter().map(|o| o.2).max().unwrap_or(Confidence::Low);
    let worst = over.iter().max_by_key(|o| o.1).map_or(CpuId(0), |o| o.0);
    let limited = flow_limited(case, &cpus);
    let mut draft = Draft::new(
        text::cpus(&cpus).to_lowercase(),
        format!(
            "the backlog of {} dropped {} packets {}",
            text::cpus(&cpus),
            text::count(total),
            case.over()
        ),
    )
    .weigh(if sure == Confidence::Low { Severity::Info } else { Severity::Warning }, sure)
    .explain(
        "Packets steered to a CPU by RPS or received through veth, loopback or netif_rx wait in \
         that CPU's backlog; it was full and they were lost.",
    )
    .add(&rate::Pattern::of_softnet(case, worst, "dropped").text())
    .gain(Gain::Improves, "no packets lost at this queue");
    for (cpu, n, _) in over.iter().take(8) {
        draft = draft.show(
            format!("dropped on CPU {cpu} {}", case.over()),
            text::count(*n),
            "/proc/net/softnet_stat, column 2",
        );
    }
    draft = drop_reasons::show(case, RULE.id, draft).show_sysctl(case, BACKLOG);
    let loads: Vec<_> = cpus.iter().filter_map(|c| Some((c, load::load(case, c).ok()?))).collect();
    if let Some((cpu, load)) = loads.iter().find(|(_, l)| l.busy >= 0.9) {
        draft = draft.show_load(case, *cpu, *load).add(
            "A CPU that drops is saturated: a longer backlog would only delay the loss. Give it \
             less work (a wider rps_cpus, more queues) first.",
        );
    } else if loads.len() < cpus.len() {
        draft = draft.add("How busy the CPUs were is not known, so no longer backlog is proposed.");
    } else if limited {
        draft = draft.add(
            "The flow limit did it (net.core.flow_limit_cpu_bitmap): it keeps one large flow from \
             filling the backlog, so its length is not the cause.",
        );
    } else {
        draft = longer_backlog(case, draft);
    }
    draft.on_cpus(&cpus).on_sysctl(BACKLOG).found()
}

fn longer_backlog(case: &Case<'_>, draft: Draft) -> Draft {
    match case.sysctl_number(BACKLOG) {
        Ok(now) if now < ROOMY => draft.change(knob::sysctl(
            case,
            BACKLOG,
            &ROOMY.to_string(),
            "queueing delay up to that many packets a CPU",
        )),
        Ok(_) => draft.add("The backlog is already long; more length is only delay."),
        Err(_) => draft,
    }
}

/// Whether the flow limit caused most drops.
fn flow_limited(case: &Case<'_>, cpus: &CpuSet) -> bool {
    let Ok(limited) = softnet::column(case, |s| &s.flow_limit_count) else { return false };
    let Ok(dropped) = softnet::column(case, |s| &s.dropped) else { return false };
    limited.sum(cpus) * 2 > dropped.sum(cpus)
}
