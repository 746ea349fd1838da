//! Whether eBPF is switched off: for one command, for a shell, or for a host.

use model::Reading;

use crate::Root;

/// Of the environment; `off`, also for what the command starts.
pub const ENVIRONMENT: &str = "NETWRIGHT_BPF";

/// A word of the kernel's command line, `off` for the whole host.
pub const BOOT_WORD: &str = "netwright.bpf";

/// Known where programs are wanted; else who switched them off. **Source**: `/proc/cmdline` and the
/// environment.
pub fn switched(root: &Root, wanted: bool) -> Reading<()> {
    let environment = std::env::var(ENVIRONMENT).unwrap_or_default();
    let line = root.read("/proc/cmdline").unwrap_or_default();
    of(wanted, &environment, &String::from_utf8_lossy(&line))
}

/// An unknown value means off: a misspelled switch must not attach programs.
fn of(wanted: bool, environment: &str, line: &str) -> Reading<()> {
    let on = |value: &str| {
        ["", "on", "1", "yes", "true"].iter().any(|word| value.trim().eq_ignore_ascii_case(word))
    };
    let off = |by: String| Reading::absent(format!("eBPF is switched off ({by})"));
    let said = |word: &&str| word.split_once('=').is_some_and(|(name, _)| name == BOOT_WORD);
    let boot = line.split_whitespace().rfind(said);
    match boot {
        _ if !wanted => off("--no-bpf".into()),
        _ if !on(environment) => off(format!("{ENVIRONMENT}={environment}")),
        Some(word) if !on(word.split_once('=').map_or("", |(_, value)| value)) => {
            off(format!("{word} on the kernel's command line, /proc/cmdline"))
        }
        _ => Reading::Known(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_the_environment_and_the_kernel_cmdline_switch_off_and_say_so() {
        let why = |wanted, environment, line| match of(wanted, environment, line) {
            Reading::Absent(why) => why,
            other => format!("{other:?}"),
        };
        let known = format!("{:?}", Reading::Known(()));
        assert_eq!(why(true, "", "console=ttyS0 ro\n"), known);
        assert_eq!(why(true, "on", "netwright.bpf=on\n"), known);
        assert_eq!(why(false, "", ""), "eBPF is switched off (--no-bpf)");
        assert_eq!(why(true, "off", ""), "eBPF is switched off (NETWRIGHT_BPF=off)");
        assert_eq!(why(true, "OF", ""), "eBPF is switched off (NETWRIGHT_BPF=OF)");
        let boot = "ro netwright.bpf=off netwright.host=server\n";
        assert!(why(true, "", boot).contains("(netwright.bpf=off on the kernel's command line"));
        // The last word counts, as for the kernel.
        assert_eq!(why(true, "", "netwright.bpf=off netwright.bpf=on"), known);
    }
}
