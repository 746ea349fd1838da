//! 46: tasks wait for memory.

use model::{Confidence, Severity, samples::PressureSample};

use crate::{
    Case, Rule,
    knob::advice,
    pressure,
    rule::{Draft, Gain, Judgement, Missing, clear, settle},
    text,
};

/// Catalogue number 46. A host with enough memory has next to none of it, however busy it is: waiting for
/// a CPU is another resource, and not judged.
pub static RULE: Rule = Rule {
    id: "memory_pressure",
    number: 46,
    title: "tasks wait for memory",
    needs: &["memory pressure stalls over a window (/proc/pressure/memory)"],
    explained_by: &[],
    judge,
};

/// Share of time in which some task waited that warns: the example of the kernel's documentation
/// (accounting/psi.rst, 150 ms in a second).
const WARNS: f64 = 0.15;
/// Share from which it is information. Our proposal.
const NOTED: f64 = 0.05;
/// Share of time in which all tasks waited that is critical: systemd-oomd's default, from which on it ends
/// processes (oomd.conf, `DefaultMemoryPressureLimit`).
const CRITICAL: f64 = 0.60;
/// A window that tells a state from a moment, and the shortest that is critical: systemd-oomd compares the
/// kernel's average over 10 s (`avg10`) with its limit.
const LONG_S: f64 = 10.0;
/// The setting by which a finding of the whole host explains failed allocations.
pub(crate) const RESERVE: &str = "vm.min_free_kbytes";

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let all = match pressure::host(case, "memory").and_then(|_| pressure::all(case)) {
        Ok(all) => all,
        Err(missing) => return vec![missing.of("")],
    };
    let memory = all.iter().filter(|p| p.resource == "memory");
    memory.map(|p| settle(&p.cgroup, one(case, p))).collect()
}

fn one(case: &Case<'_>, sample: &PressureSample) -> Result<Judgement, Missing> {
    let whole = sample.cgroup.is_empty();
    let of = if whole { "the host" } else { sample.cgroup.as_str() };
    let some = pressure::some(case, sample)?;
    let full = pressure::full(case, sample);
    let all = full.clone().unwrap_or(0.0);
    if some < NOTED {
        let text = format!("tasks of {of} waited for memory {} of the time", text::percent(some));
        return clear(text, [&sample.some_ns, &full]);
    }
    let long = case.window_s()? >= LONG_S;
    let severity = match (all >= CRITICAL && long, some >= WARNS) {
        (true, _) => Severity::Critical,
        (_, true) => Severity::Warning,
        _ => Severity::Info,
    };
    let mut draft = Draft::new(
        if whole { "memory" } else { &sample.cgroup },
        format!("tasks of {of} waited for memory {} of the time", text::percent(some)),
    )
    .weigh(severity, if long { Confidence::High } else { Confidence::Medium })
    .explain(
        "Memory is short: before a task gets a page, the kernel must free one or read it again. Requests \
         that come meanwhile wait, and drivers may find no buffer for a packet.",
    )
    .gain(Gain::Unblocks, "no waits for memory")
    .show(
        format!("some task waited {}", case.over()),
        format!("{} of the time", text::percent(some)),
        sample.file.clone(),
    );
    if full.is_ok() {
        draft = draft.show(
            format!("all tasks waited {}", case.over()),
            format!("{} of the time", text::percent(all)),
            sample.file.clone(),
        );
    }
    let folder = sample.file.rsplit_once('/').map_or("", |(folder, _)| folder);
    Ok(if whole {
        draft
            .change(advice(
                "as it is",
                "less memory in use, or more of it",
                "ps -eo pid,rss,comm --sort=-rss | head; vmstat 1 5",
                "none to look",
            ))
            .on_sysctl(RESERVE)
    } else {
        draft
            .change(advice(
                "the limit of this cgroup",
                "a larger limit, or less memory in use",
                &format!("grep . {folder}/memory.current {folder}/memory.high {folder}/memory.max"),
                "others on the host have less memory",
            ))
            .alone()
    }
    .found())
}
