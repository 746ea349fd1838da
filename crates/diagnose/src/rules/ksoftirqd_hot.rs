//! 7: a ksoftirqd thread near a whole CPU.

use model::{Confidence, CpuId, CpuSet, Severity, samples::ThreadSample};

use crate::{
    Case, Rule, load,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "ksoftirqd_hot",
    number: 7,
    title: "ksoftirqd uses nearly a whole CPU",
    needs: &["CPU time of the ksoftirqd threads over a window", "softnet_stat over a window"],
    explained_by: &["few_channels", "irqs_piled_up", "rps_missing", "flow_skew", "offloads_off"],
    judge,
};

/// Share of one CPU. Our proposal.
const HOT: f64 = 0.80;
/// Window from which it is more than a burst. Our proposal.
const LONG_S: f64 = 10.0;
/// Packets per second on the CPU below which ksoftirqd has other work.
const NETWORK_PER_S: f64 = 1_000.0;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let samples = match case.samples() {
        Ok(samples) => samples,
        Err(missing) => return vec![missing.of("")],
    };
    let threads: Vec<(CpuId, &ThreadSample)> = samples
        .threads
        .iter()
        .filter_map(|t| Some((CpuId(t.name.strip_prefix("ksoftirqd/")?.parse().ok()?), t)))
        .collect();
    if threads.is_empty() {
        return vec![
            Missing("ksoftirqd threads: none is among the samples (hidden in a container?)".into())
                .of(""),
        ];
    }
    let window = samples.window_ns.0 as f64;
    let mut most: f64 = 0.0;
    let mut out = vec![];
    for (cpu, thread) in threads {
        match need(&format!("CPU time of {}", thread.name), &thread.cpu_ns) {
            Err(missing) => out.push(missing.of("")),
            Ok(&ns) => {
                let share = ns as f64 / window;
                most = most.max(share);
                if share > HOT {
                    out.push(settle(&format!("cpu {cpu}"), one(case, cpu, thread, share)));
                }
            }
        }
    }
    if out.is_empty() {
        let text = format!("the busiest ksoftirqd used {} of a CPU", text::percent(most));
        out.push(settle("", clear(text, [&every_thread(case)])));
    }
    out
}

/// Evidence: the ksoftirqd thread of each online CPU.
fn every_thread(case: &Case<'_>) -> Result<(), Missing> {
    case.cpus_read()?;
    let threads = &case.samples()?.threads;
    case.online().iter().try_for_each(|cpu| {
        let name = format!("ksoftirqd/{cpu}");
        let found = threads.iter().find(|t| t.name == name);
        let thread = found.ok_or_else(|| Missing(format!("{name}: not among the samples")))?;
        need(&format!("CPU time of {name}"), &thread.cpu_ns).map(drop)
    })
}

fn one(
    case: &Case<'_>,
    cpu: CpuId,
    thread: &ThreadSample,
    share: f64,
) -> Result<Judgement, Missing> {
    let what = format!("/proc/net/softnet_stat of CPU {cpu}");
    let row = need(&what, &case.cpu_sample(cpu)?.softnet)?;
    let window = case.window_s()?;
    let packets = *need(&what, &row.processed)? as f64 / window;
    if packets < NETWORK_PER_S {
        let text = format!(
            "ksoftirqd/{cpu} used {} of a CPU, but only {} packets passed it: not network work",
            text::percent(share),
            text::per_s(packets)
        );
        return clear(text, [&row.processed]);
    }
    let cpus: CpuSet = [cpu].into_iter().collect();
    let sure = if window >= LONG_S { Confidence::High } else { Confidence::Medium };
    let mut draft = Draft::new(
        format!("cpu {cpu}"),
        format!("ksoftirqd/{cpu} used {} of a CPU", text::percent(share)),
    )
    .weigh(Severity::Warning, sure)
    .explain(
        "Softirqs that cannot keep up are handed to ksoftirqd, which shares the CPU with ordinary \
         tasks and does the same work less efficiently.",
    )
    .gain(Gain::Improves, "lower and steadier latency, more packets per cycle")
    .show(
        format!("CPU time of ksoftirqd/{cpu} (thread {}) {}", thread.tid, case.over()),
        text::percent(share),
        format!("/proc/{}/schedstat", thread.tid),
    )
    .show(
        format!("packets on CPU {cpu}"),
        text::per_s(packets),
        "/proc/net/softnet_stat, column 1",
    );
    if let Ok(load) = load::load(case, cpu) {
        draft = draft.show(
            format!("CPU {cpu} {}", case.over()),
            load.text(),
            format!("/proc/stat, line cpu{cpu}"),
        );
    }
    draft = draft.add(if case.online().len() == 1 {
        "There is one CPU: it needs less work or a faster CPU, no setting spreads it."
    } else {
        "Spread the work of this CPU: more channels, interrupts on more CPUs, RPS; or give polls \
         their own threads (threaded NAPI), which the scheduler can place."
    });
    Ok(draft.on_cpus(&cpus).found())
}
