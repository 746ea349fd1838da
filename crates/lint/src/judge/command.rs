//! Commands of recipes that no knob carries out.

use model::{
    lint::{LineVerdict, SetLine},
    sysctls,
};

use super::{Context, Judged, depends};

/// The verdict on a command; `None` for a line that is none, or not known.
pub fn judge(context: &Context<'_>, set: &SetLine) -> Option<Judged> {
    if set.setting.starts_with("cpu.") && set.setting.ends_with(".governor") {
        let has = context.facts.cpus.iter().any(|c| c.frequency.governor.is_known());
        if !has && !context.facts.cpus.is_empty() {
            return Some(Judged::new(
                LineVerdict::NoEffect,
                "no CPU of this host shows a frequency governor",
                "/sys/devices/system/cpu/cpu*/cpufreq",
            ));
        }
    }
    if let Some(words) = set.setting.strip_prefix("setpci ") {
        return match bare_offset(words) {
            // The offset that a well-known recipe names.
            Some(0xe6) => sysctls::command("setpci")
                .map(|j| Judged::new(LineVerdict::Dangerous, j.why, j.source)),
            // Below, each device has the registers of the standard header.
            Some(0x40..) => Some(Judged::new(
                LineVerdict::Dangerous,
                "it writes to a bare offset of the configuration space, which is another register on \
                 another device; a name (CAP_EXP+8.w) is the same register on each",
                "setpci(8)",
            )),
            _ => depends::setting(&set.setting),
        };
    }
    let service = set.setting.strip_prefix("service ");
    let stops = match (service, set.setting.strip_prefix("systemctl ")) {
        (Some(unit), _) => Some((unit, set.value.as_str())),
        (_, Some(act)) => Some((set.value.as_str(), act)),
        _ => None,
    };
    match stops {
        Some((unit, "stop" | "off" | "disable" | "mask" | "remove")) => {
            depends::setting(&format!("stop {}", unit.strip_suffix(".service").unwrap_or(unit)))
        }
        Some(_) => None,
        None => depends::setting(&set.setting),
    }
}

/// The offset where setpci names a register by it alone: `e6.b`. A register by its name (`CAP_EXP+8.w`) is
/// that register on every device.
fn bare_offset(words: &str) -> Option<u32> {
    let register = words.split(' ').next_back()?;
    u32::from_str_radix(register.split(['.', '+', ':']).next()?, 16).ok()
}
