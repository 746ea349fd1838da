//! 25: interrupt coalescing that does not fit the goal.

use model::quote;
use model::{
    Confidence, Goal, Reading, Severity,
    drivers::Act,
    nic::{Coalesce, Nic},
};

use crate::{
    Case, Rule,
    knob::{self, change, change_by},
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    text,
};

pub static RULE: Rule = Rule {
    id: "coalescing_goal",
    number: 25,
    title: "interrupt coalescing against the goal",
    needs: &["coalescing settings", "interrupts and CPU time over a window"],
    explained_by: &["cloud_allowance"],
    judge,
};

/// Interrupts a second on one queue above which coalescing would save CPU. Our proposal.
const MANY_IRQS: f64 = 20_000.0;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| {
        let c = need(&format!("ethtool -c {}", nic.name), &nic.coalesce)?;
        match case.goal {
            Goal::Latency => latency(case, nic, c),
            Goal::Throughput => throughput(case, nic, c),
        }
    })
}

/// The driver's parameters; those that it does not have are left out.
fn settings(c: &Coalesce) -> String {
    let adaptive =
        c.adaptive_rx.get().map(|on| format!("adaptive-rx {}", if on { "on" } else { "off" }));
    let usecs = c.rx_usecs.get().map(|n| format!("rx-usecs {n}"));
    let frames = c.rx_max_frames.get().map(|n| format!("rx-frames {n}"));
    let reported: Vec<String> = [adaptive, usecs, frames].into_iter().flatten().collect();
    if reported.is_empty() { "nothing that can be set".into() } else { reported.join(", ") }
}

fn latency(case: &Case<'_>, nic: &Nic, c: &Coalesce) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let adaptive = c.adaptive_rx.get() == Some(true);
    let delayed = match need(&format!("ethtool -c {name}, rx-usecs"), &c.rx_usecs) {
        Ok(usecs) => *usecs > 0,
        Err(missing) if !adaptive => return Err(missing),
        Err(_) => false,
    };
    if !adaptive && !delayed {
        let text = format!("{name}: interrupts are not delayed ({})", settings(c));
        return clear(text, [&c.rx_usecs]);
    }
    let wanted = match (adaptive, delayed) {
        (true, true) => "adaptive-rx off rx-usecs 0",
        (true, false) => "adaptive-rx off",
        _ => "rx-usecs 0",
    };
    Ok(Draft::new(
        name,
        format!("{name} delays receive interrupts, against the goal of low latency"),
    )
    .weigh(case.setting_severity(), Confidence::Low)
    .explain(
        "A received packet may wait this long before the CPU is interrupted. Without the delay \
             each packet costs an interrupt.",
    )
    .gain(Gain::Improves, "up to the delay off each request that waits for a packet")
    .show(format!("coalescing of {name}"), settings(c), format!("ethtool -c {name}"))
    .change(change_by(
        format!("nic.{name}.coalesce.rx"),
        settings(c),
        wanted,
        format!("ethtool -C {} {wanted}", quote::shell(name)),
        format!(
            "{}; more interrupts and CPU per packet, less throughput when CPUs are short",
            knob::impact(nic, Act::Coalesce("rx_usecs"))
        ),
    ))
    .on_nic(name)
    .found())
}

fn throughput(case: &Case<'_>, nic: &Nic, c: &Coalesce) -> Result<Judgement, Missing> {
    let name = &nic.name;
    match &c.adaptive_rx {
        Reading::Known(false) => {}
        // The driver was asked and has no such parameter.
        Reading::Absent(_) => {
            let text = format!("{name}: the driver cannot be adaptive ({})", settings(c));
            return clear(text, [&nic.coalesce]);
        }
        _ => {
            let text = format!("{name}: coalescing is adaptive ({})", settings(c));
            return clear(text, [&c.adaptive_rx]);
        }
    }
    let window = case.window_s()?;
    let mut busiest = 0.0f64;
    for q in queues::queue_irqs(case, nic)? {
        busiest = busiest.max(queues::total(&queues::growth(case, q.irq)?) as f64 / window);
    }
    let loaded = queues::busiest_rx_cpu(case, nic);
    let (cpu, load) = loaded.clone()?;
    if busiest < MANY_IRQS || !load.hot() {
        let text = format!(
            "{name}: {}, at most {} interrupts a queue, CPU {cpu} {}",
            settings(c),
            text::per_s(busiest),
            load.text()
        );
        return clear(text, [&c.adaptive_rx, &loaded, &queues::all_rx_irqs(case, nic)]);
    }
    Ok(Draft::new(name, format!("{name} raises {} interrupts on one queue of a hot CPU", text::per_s(busiest)))
        .weigh(Severity::Warning, Confidence::Medium)
        .explain("Adaptive coalescing lets a busy queue raise fewer interrupts and handle more packets with each.")
        .gain(Gain::Improves, "fewer interrupts per packet on the hot CPU")
        .show(format!("coalescing of {name}"), settings(c), format!("ethtool -c {name}"))
        .show("busiest queue", format!("{} interrupts", text::per_s(busiest)), "/proc/interrupts")
        .show_load(case, cpu, load)
        .change(change(
            format!("nic.{name}.coalesce.adaptive_rx"),
            "off",
            "on",
            format!(
                "{}; some microseconds of delay",
                knob::impact(nic, Act::Coalesce("adaptive_rx"))
            ),
        ))
        .on_nic(name)
        .on_cpus(&[cpu].into_iter().collect())
        .found())
}
