//! The host as a whole.

use model::{Nanos, Reading, host::CAPABILITIES};

use super::{View, fact};
use crate::{
    text::{Ink, Line, Page},
    words::{grouped, reading_as},
};

pub fn show(v: &View<'_>, page: &mut Page) {
    let h = &v.facts.host;
    page.heading("HOST");
    let mut say = |label: &str, value: Line| {
        page.labelled(Line::plain("  ").ink(Ink::Faint, format!("{label:<22}")), &value);
    };
    let words: [(&str, &Reading<String>); 10] = [
        ("name", &h.name),
        ("kernel", &h.kernel),
        ("build", &h.kernel_version),
        ("architecture", &h.arch),
        ("distribution", &h.distribution),
        ("machine", &h.machine),
        ("hypervisor", &h.hypervisor),
        ("container", &h.container),
        ("lockdown", &h.lockdown),
        ("kernel cmdline", &h.cmdline),
    ];
    for (label, r) in words {
        say(label, with_reason(r, String::clone));
    }
    say("CPU", with_reason(&h.cpu_model, String::clone));
    say("CPUs possible", with_reason(&h.cpus_possible, ToString::to_string));
    say("CPUs present", with_reason(&h.cpus_present, ToString::to_string));
    say("CPUs online", with_reason(&h.cpus_online, ToString::to_string));
    say("SMT", with_reason(&h.smt, String::clone));
    say("memory", with_reason(&v.facts.memory_bytes, ToString::to_string));
    say("page size", with_reason(&h.page_size_bytes, ToString::to_string));
    say("up for", with_reason(&h.uptime_s, |s| uptime(*s)));
    say("timer", with_reason(&h.build.hz, |hz| format!("{hz} Hz")));
    let clocks = h.clocksources_available.known().map(|all| all.join(" "));
    say("clock", with_reason(&h.clocksource, |c| clock(c, clocks.as_deref(), &h.clock_read_ns)));
    say("sched_ext", with_reason(&h.sched_ext, String::clone));
    say("CPU accounting", with_reason(&h.build.cpu_accounting, String::clone));
    say("IRQ time accounting", with_reason(&h.build.irq_time_accounting, |b| on_off(*b)));
    say("BTF for eBPF", with_reason(&h.build.btf, |b| if *b { "yes".into() } else { "no".into() }));
    say("preemption", with_reason(&h.build.preempt, String::clone));
    say("read by", reader(v));
}

/// `hpet (available: tsc hpet acpi_pm), 650 ns a read`.
fn clock(current: &str, available: Option<&str>, read_ns: &Reading<Nanos>) -> String {
    let of = available.map(|all| format!(" (available: {all})")).unwrap_or_default();
    let cost = read_ns.known().map(|ns| format!(", {ns} a read")).unwrap_or_default();
    format!("{current}{of}{cost}")
}

fn reader(v: &View<'_>) -> Line {
    let r = &v.facts.host.reader;
    fact("user id", &r.euid, ToString::to_string).ink(Ink::Faint, " · ").also(fact(
        "capabilities",
        &r.capabilities,
        |c| capabilities(c),
    ))
}

/// All, all but a few, or those there are.
fn capabilities(has: &[String]) -> String {
    let held = |c: &str| has.iter().any(|h| h == c);
    // Kernels before 5.8 and 5.9 do not know the newest three.
    let known = CAPABILITIES.iter().rposition(|c| held(c)).map_or(0, |last| last + 1).max(38);
    let lacks: Vec<&str> = CAPABILITIES.into_iter().take(known).filter(|c| !held(c)).collect();
    match (has.len(), lacks.len()) {
        (0, _) => "none".into(),
        (_, 0) => "all".into(),
        (_, 1..=10) => format!("all but {}", lacks.join(" ")),
        _ => has.join(" "),
    }
}

fn with_reason<T>(r: &Reading<T>, show: impl FnOnce(&T) -> String) -> Line {
    let mut line = reading_as(r, show);
    if let Some(why) = r.why_not() {
        line.push(Ink::Faint, format!("  {why}"));
    }
    line
}

fn on_off(b: bool) -> String {
    if b { "on" } else { "off" }.into()
}

fn uptime(s: u64) -> String {
    match (s / 86_400, s / 3_600 % 24, s / 60 % 60) {
        (0, 0, 0) => Nanos(s.saturating_mul(1_000_000_000)).to_string(),
        (0, h, m) => format!("{h} h {m} min"),
        (d, h, _) => format!("{} d {h} h", grouped(d)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_said_only_of_all() {
        let of = |skip: &[usize], most: usize| -> String {
            let names = CAPABILITIES.iter().take(most).enumerate();
            let has: Vec<String> =
                names.filter(|(i, _)| !skip.contains(i)).map(|(_, n)| (*n).to_owned()).collect();
            capabilities(&has)
        };
        assert_eq!(of(&[], 41), "all");
        assert_eq!(of(&[24], 41), "all but cap_sys_resource");
        assert_eq!(of(&[], 38), "all", "of a kernel that knows no more");
        assert_eq!(of(&[38], 41), "all but cap_perfmon");
        assert_eq!(of(&[], 0), "none");
        assert_eq!(of(&[], 2), "cap_chown cap_dac_override");
    }
}
