//! 45: every read of the clock is slow.

use model::{Confidence, Severity};

use crate::{
    Case, Rule,
    knob::advice,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
};

/// Catalogue number 45. Servers, qdiscs and TCP itself read the clock for each packet and request.
pub static RULE: Rule = Rule {
    id: "slow_clocksource",
    number: 45,
    title: "every read of the clock is slow",
    needs: &["the current clocksource"],
    explained_by: &[],
    judge,
};

const FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Clocks that are read without a system call: those with a `vdso_clock_mode` in `arch/x86/kernel/tsc.c`,
/// `kvmclock.c`, `drivers/clocksource/hyperv_timer.c`, `arm_arch_timer.c`, `arch/powerpc/kernel/time.c`,
/// `arch/s390/kernel/time.c`, `drivers/clocksource/timer-riscv.c`. Xen's is one of them where the
/// hypervisor says that its TSC is stable.
const FAST: [&str; 8] = [
    "tsc",
    "tsc-early",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "timebase",
    "tod",
    "riscv_clocksource",
];
/// Clocks that are a register of a device or a call of the hypervisor, read by a system call:
/// `arch/x86/kernel/hpet.c`, `drivers/clocksource/acpi_pm.c`, `i8253.c`, `hyperv_timer.c`,
/// `kernel/time/jiffies.c`.
const SLOW: [&str; 6] =
    ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "hyperv_clocksource_msr"];
/// Time of one read that shows the cost, as opposed to a clock that is merely named so. Our proposal: a
/// read of `tsc` takes 20 to 30 ns.
const DEAR_NS: u64 = 100;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let host = &case.facts.host;
    let now = need("the current clocksource", &host.clocksource)?.as_str();
    let cost = host.clock_read_ns.get();
    if FAST.contains(&now) {
        // Without a stable TSC of the host it is not (`kvm_setup_vsyscall_timeinfo`). Others are slow in an
        // emulated guest, where everything is.
        if let Some(ns) = cost.filter(|ns| now == "kvm-clock" && ns.0 >= DEAR_NS) {
            return Err(Missing(format!(
                "{FILE}: {now} is fast as a rule, but a read took {ns} here"
            )));
        }
        return clear(format!("{now} is read without a system call"), [&host.clocksource]);
    }
    if !SLOW.contains(&now) {
        return Err(Missing(format!("{FILE}: what a read of {now} costs is not known")));
    }
    let dear = cost.is_some_and(|ns| ns.0 >= DEAR_NS);
    let severity = if dear { case.setting_severity() } else { Severity::Info };
    let mut draft = Draft::new(now, format!("the kernel's clock is {now}, which is slow to read"))
        .weigh(severity, if dear { Confidence::High } else { Confidence::Low })
        .explain(
            "Each read of the time is a system call and an access to a device or the hypervisor. A server \
             reads the time several times for each request, the kernel for packets that it stamps.",
        )
        .gain(Gain::Improves, "a read of the clock takes some 20 to 30 ns, without a system call")
        .show("clocksource", now, FILE);
    if let Some(ns) = cost {
        draft = draft.show("time of one read", ns.to_string(), "clock_gettime(CLOCK_MONOTONIC)");
    }
    let all = host.clocksources_available.known();
    if let Some(all) = all {
        draft = draft.show(
            "clocks that the kernel would take",
            all.join(" "),
            FILE.replace("current", "available"),
        );
    }
    let better = all.and_then(|all| FAST.iter().find(|f| all.iter().any(|a| a == *f)));
    let asked = host.cmdline.known().and_then(|line| {
        let asks = |w: &&str| {
            ["notsc", "tsc=unstable"].contains(w) || w.strip_prefix("clocksource=") == Some(now)
        };
        line.split_whitespace().find(asks)
    });
    if let Some(word) = asked {
        draft = draft.add(&format!("The kernel cmdline asks for it ({word}).")).show(
            "kernel cmdline",
            word,
            "/proc/cmdline",
        );
    }
    Ok(draft
        .change(match better {
            Some(fast) => advice(
                now,
                fast,
                &format!("echo {fast} > {FILE}; lasting: clocksource={fast} on the kernel cmdline"),
                "the kernel gave the fast clock up if it ran unevenly: look for 'clocksource' in dmesg first",
            ),
            None => advice(
                now,
                "tsc",
                "dmesg | grep -i -e clocksource -e tsc; where the hardware is sound, tsc=reliable on the \
                 kernel cmdline; in a guest, an invariant TSC from the hypervisor",
                "the kernel gave tsc up for a reason: with an uneven TSC the time jumps",
            ),
        })
        .alone()
        .found())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_clock_is_both() {
        assert!(FAST.iter().all(|c| !SLOW.contains(c)));
    }
}
