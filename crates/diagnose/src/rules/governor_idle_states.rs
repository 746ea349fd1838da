//! 26: slow clocks or deep sleep on the CPUs that serve interrupts.

use model::{
    Confidence, CpuSet, Goal, Nanos, Severity,
    cpu::{Cpu, IdleState},
    ids::Direction,
};

use crate::{
    Case, Rule,
    knob::change_by,
    load, queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "governor_idle_states",
    number: 26,
    title: "frequency governor or idle states of interrupt CPUs",
    needs: &[
        "the CPUs that serve NICs",
        "frequency governors",
        "idle states (for the latency goal)",
    ],
    explained_by: &[],
    judge,
};

/// Exit latency that a request notices.
const SLOW_EXIT: Nanos = Nanos(100_000);
/// Busy share from which a slow clock costs.
const WORKS: f64 = 0.50;
/// Drivers whose `powersave` governor leaves the clock to the hardware.
const HARDWARE_MANAGED: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let nics = queues::running_physical(case);
    if nics.is_empty() {
        let none = clear("no physical NIC is up", [&case.nics_read(), &queues::all_states(case)]);
        return vec![settle("", none)];
    }
    let (mut cpus, mut missing) = (CpuSet::new(), None);
    for nic in nics {
        match queues::nic_cpus(case, nic, Direction::Rx) {
            Ok(set) => cpus = cpus.union(&set),
            Err(m) => missing = Some(m),
        }
    }
    if cpus.is_empty() {
        let missing =
            missing.unwrap_or_else(|| Missing("CPUs that serve NICs: none is known".into()));
        return vec![missing.of("")];
    }
    let mut out = vec![settle("governor", governor(case, &cpus))];
    if case.goal == Goal::Latency {
        out.push(settle("idle states", idle(case, &cpus)));
    }
    out
}

fn guest<'a>(case: &Case<'a>) -> Option<&'a str> {
    case.facts.host.hypervisor.known().map(String::as_str).filter(|h| *h != "none")
}

/// Evidence: the CPUs' folders were read, so that a missing file means a missing feature.
fn folders_read(case: &Case<'_>, cpus: &CpuSet) -> Result<(), Missing> {
    cpus.iter().try_for_each(|id| {
        let cpu = case.cpu(id).ok_or_else(|| Missing(format!("CPU {id}: was not read")))?;
        need(&format!("/sys/devices/system/cpu/cpu{id}"), &cpu.smt_siblings).map(drop)
    })
}

/// Whether this CPU's clock is held below what `performance` would give.
fn slow(cpu: &Cpu, governor: &str) -> bool {
    let driver = cpu.frequency.driver.known().map_or("", String::as_str);
    let hardware = HARDWARE_MANAGED.contains(&driver);
    let preference = cpu.frequency.energy_preference.known().map_or("", String::as_str);
    governor != "performance"
        && !(hardware && matches!(preference, "performance" | "balance_performance"))
}

fn governor(case: &Case<'_>, cpus: &CpuSet) -> Result<Judgement, Missing> {
    let known: Vec<(&Cpu, &String)> = cpus
        .iter()
        .filter_map(|c| case.cpu(c))
        .filter_map(|c| Some((c, c.frequency.governor.known()?)))
        .collect();
    let Some((first, _)) = known.first() else {
        if let Some(name) = guest(case) {
            let text = format!("no frequency scaling in this {name} guest: the host decides");
            return clear(text, [&case.facts.host.hypervisor, &folders_read(case, cpus)]);
        }
        let first = cpus.first().and_then(|c| case.cpu(c));
        let why = first.and_then(|c| c.frequency.governor.why_not()).unwrap_or("not known");
        return Err(Missing(format!("scaling_governor of {}: {why}", text::cpus(cpus))));
    };
    let slow: Vec<_> = known.iter().filter(|(c, g)| slow(c, g)).collect();
    let Some((worst, name)) = slow.first() else {
        let text = format!(
            "{}: governor {}",
            text::cpus(cpus),
            first.frequency.governor.known().map_or("", String::as_str)
        );
        let each = cpus.iter().try_for_each(|c| {
            let of = case.cpu(c).ok_or_else(|| Missing(format!("CPU {c}: was not read")))?;
            need(&format!("governor of CPU {c}"), &of.frequency.governor).map(drop)
        });
        return clear(text, [&each]);
    };
    let set: CpuSet = slow.iter().map(|(c, _)| c.id).collect();
    let works = set
        .iter()
        .filter_map(|c| Some((c, load::load(case, c).ok()?)))
        .find(|(_, l)| l.busy >= WORKS);
    let pinned = name.as_str() == "powersave" && works.is_some();
    let (severity, confidence) = if pinned {
        (Severity::Warning, Confidence::Medium)
    } else {
        (Severity::Info, Confidence::Low)
    };
    let mut draft = Draft::new(
        text::cpus(&set).to_lowercase(),
        format!("{} that serve NICs have governor {name}", text::cpus(&set)),
    )
    .weigh(severity, confidence)
    .explain(
        "Network work comes in short bursts, which a governor that follows the load answers \
             late: the first packets of each burst are handled at a low clock.",
    )
    .gain(Gain::Improves, "shorter and steadier handling of bursts")
    .show(
        format!("governor of CPU {}", worst.id),
        format!(
            "{name}, driver {}",
            worst.frequency.driver.known().map_or("not known", String::as_str)
        ),
        format!("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", worst.id),
    );
    if let (Some(now), Some(most)) =
        (worst.frequency.current_khz.get(), worst.frequency.hardware_max_khz.get())
    {
        draft = draft.show(
            format!("clock of CPU {}", worst.id),
            format!("{} of {} MHz", now / 1000, most / 1000),
            format!("/sys/devices/system/cpu/cpu{}/cpufreq", worst.id),
        );
    }
    if let Some((cpu, load)) = works {
        draft = draft.show_load(case, cpu, load);
    }
    Ok(draft
        .change(change_by(
            format!("cpu.{set}.governor"),
            name.as_str(),
            "performance",
            format!("cpupower -c {set} frequency-set -g performance"),
            "power and heat; a running tuned sets its own",
        ))
        .on_cpus(&set)
        .found())
}

fn idle(case: &Case<'_>, cpus: &CpuSet) -> Result<Judgement, Missing> {
    if case.facts.idle_states.is_empty() {
        return match guest(case) {
            Some(name) => clear(
                format!("no idle states in this {name} guest: the host decides"),
                [&case.facts.host.hypervisor, &folders_read(case, cpus)],
            ),
            None => Err(Missing("idle states: none was read (no cpuidle)".into())),
        };
    }
    let enabled = |s: &IdleState| s.cpus.difference(&s.disabled_cpus).intersection(cpus);
    let slow: Vec<_> = case
        .facts
        .idle_states
        .iter()
        .filter_map(|s| Some((s, s.exit_latency_ns.get()?, enabled(s))))
        .filter(|(_, exit, on)| *exit > SLOW_EXIT && !on.is_empty())
        .collect();
    let Some((_, exit, _)) = slow.iter().max_by_key(|s| s.1) else {
        let text = format!(
            "no enabled idle state of {} has an exit latency over {SLOW_EXIT}",
            text::cpus(cpus)
        );
        let states = case.facts.idle_states.iter();
        let exits = states.filter(|s| !enabled(s).is_empty()).try_for_each(|s| {
            need(&format!("exit latency of {}", s.name), &s.exit_latency_ns).map(drop)
        });
        return clear(text, [&exits]);
    };
    let mut draft = Draft::new(
        text::cpus(cpus).to_lowercase(),
        format!("CPUs that serve NICs may enter idle states with {exit} exit latency"),
    )
    .weigh(case.setting_severity(), Confidence::Low)
    .explain(
        "An interrupt that finds its CPU in such a state waits for it to wake. Whether they \
             enter it depends on how long they idle between packets.",
    )
    .gain(Gain::Improves, "up to the exit latency off requests that arrive after a pause");
    for (s, exit, on) in &slow {
        let source = format!("/sys/devices/system/cpu/cpu*/cpuidle/state{}", s.index);
        draft = draft.show(
            format!("idle state {} enabled on {}", s.name, text::cpus(on)),
            format!("exit latency {exit}"),
            source,
        );
    }
    let changes = slow.iter().map(|(s, _, on)| {
        change_by(
            format!("cpu.{on}.idle_state.{}", s.name),
            "enabled",
            "disabled",
            format!("cpupower -c {on} idle-set -d {}", s.index),
            "power and heat, and less turbo for the other cores; a program can ask for the same \
             while it runs through /dev/cpu_dma_latency",
        )
    });
    Ok(draft.changes(changes).on_cpus(cpus).found())
}
