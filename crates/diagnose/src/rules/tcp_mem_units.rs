//! 17: `tcp_mem` set as if its unit were bytes.

use model::{Bytes, Confidence};

use crate::{
    Case, Rule,
    case::numbers,
    knob::{self, advice},
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "tcp_mem_units",
    number: 17,
    title: "tcp_mem set in the wrong unit",
    needs: &["net.ipv4.tcp_mem", "page size", "memory size"],
    explained_by: &[],
    judge,
};

const KEY: &str = "net.ipv4.tcp_mem";
/// Share of memory above which the limit protects nothing. The kernel's own default is 9.4%.
const SHARE: f64 = 0.25;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let values = case.sysctl_numbers(KEY)?;
    let [min, pressure, max] = values[..] else {
        return Err(Missing(format!("{KEY}: {} values instead of three", values.len())));
    };
    let page = need("page size", &case.facts.host.page_size_bytes)?.0;
    let memory = need("/proc/meminfo MemTotal", &case.facts.memory_bytes)?.0;
    if memory == 0 {
        return Err(Missing("/proc/meminfo MemTotal: is 0".into()));
    }
    let bytes = max.saturating_mul(page);
    let share = bytes as f64 / memory as f64;
    let flat = min == pressure && pressure == max;
    let default = case.sysctl(KEY)?.default.known().and_then(|d| numbers(d));
    if default.as_ref() == Some(&values) || (share <= SHARE && !flat) {
        let text = format!(
            "{KEY} {min} {pressure} {max} pages: at most {}, {} of memory",
            Bytes(bytes),
            text::percent(share)
        );
        let host = &case.facts.host;
        return clear(
            text,
            [&case.sysctl_numbers(KEY), &host.page_size_bytes, &case.facts.memory_bytes],
        );
    }
    let title = if share > SHARE {
        format!("{KEY} lets TCP take {} of {} memory", Bytes(bytes), Bytes(memory))
    } else {
        format!("{KEY} has three equal values, so TCP never enters its pressure stage")
    };
    let mut draft = Draft::new(KEY, title)
        .weigh(case.setting_severity(), Confidence::Low)
        .explain(
            "The unit is pages, not bytes. The three values are TCP's low mark, its pressure \
             mark and its limit.",
        )
        .gain(Gain::Tidies, "TCP sheds memory before the host runs out of it")
        .show_sysctl(case, KEY)
        .show("page size", Bytes(page).to_string(), "sysconf(_SC_PAGESIZE)")
        .show("memory", Bytes(memory).to_string(), "/proc/meminfo MemTotal");
    if share > SHARE {
        draft = draft.add(
            "A limit above a quarter of memory has no effect: the host runs out of memory first.",
        );
    }
    if flat {
        draft = draft.add(
            "With equal values the pressure stage is missing: sockets go from unlimited to \
             refused.",
        );
    }
    Ok(draft.change(remedy(case)).on_sysctl(KEY).found())
}

/// The boot value, which depends on memory; where it is unknown, only a reboot restores it.
fn remedy(case: &Case<'_>) -> Proposal {
    let risk = "low; existing connections keep their buffers";
    match case.sysctl(KEY).ok().and_then(|s| s.default.known()) {
        Some(default) => knob::sysctl(case, KEY, default, risk),
        None => advice(
            case.sysctl_text(KEY).unwrap_or_default(),
            "the value that the kernel computes at boot",
            "remove the line that sets it and boot",
            risk,
        ),
    }
}
