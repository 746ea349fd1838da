//! Commands of recipes that no knob carries out.

use model::{
    lint::{LineVerdict, SetLine},
    settings::{self, Verdict},
};

use super::{Context, Judged, depends};

/// The verdict on a command; `None` for a line that is none, or not known.
pub fn judge(context: &Context<'_>, set: &SetLine) -> Option<Judged> {
    if set.setting == "cpu.governor" {
        let has = context.facts.cpus.iter().any(|c| c.frequency.governor.is_known());
        if !has && !context.facts.cpus.is_empty() {
            return Some(Judged::new(
                LineVerdict::NoEffect,
                "no CPU of this host shows a frequency governor",
                "/sys/devices/system/cpu/cpu*/cpufreq",
            ));
        }
    }
    // A register by its name is that register on every device.
    let named = set.setting.starts_with("setpci ") && set.setting.contains("CAP_EXP");
    let command = match set.setting.starts_with("systemctl ") || set.setting.starts_with("service ")
    {
        true => format!("{} {}", set.setting, set.value.trim_end_matches(".service")),
        false => set.setting.clone(),
    };
    let starts = set.setting.starts_with("service ")
        && !matches!(set.value.as_str(), "stop" | "off" | "disable");
    match settings::command(&command).filter(|_| !named && !starts) {
        None => depends::setting(&set.setting),
        Some(judged) => {
            let verdict = match judged.verdict {
                Verdict::Dangerous => LineVerdict::Dangerous,
                _ => LineVerdict::Harmful,
            };
            Some(Judged::new(verdict, judged.why, judged.source))
        }
    }
}
