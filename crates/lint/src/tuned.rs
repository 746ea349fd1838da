//! Lines of a tuned profile as settings.

use model::lint::{Place, SetLine, SetMode};
use parse::shell_settings::{file_knob, set_line, sysctl_knob};
use probe::facts::tuned::Line;

/// The setting of a line; `None` for one that sets nothing by itself.
pub fn setting(line: &Line) -> Option<SetLine> {
    let value = line.value.trim_matches('"');
    let (value, mode) = match value.chars().next() {
        Some('>') => (value.strip_prefix('>').unwrap_or(value), SetMode::AtLeast),
        Some('<') => (value.strip_prefix('<').unwrap_or(value), SetMode::AtMost),
        _ => (value, SetMode::Exactly),
    };
    let other = || format!("tuned.{}.{}", line.plugin, line.key);
    let setting = match line.plugin.as_str() {
        "sysctl" => sysctl_knob(&line.key).unwrap_or_else(other),
        "sysfs" => file_knob(&line.key).unwrap_or_else(other),
        "cpu" if line.key == "governor" => "cpu.governor".into(),
        _ => other(),
    };
    let set = set_line(line.line, Place::TunedProfile, setting, value, true);
    let mode = if line.conditional { SetMode::Sometimes } else { mode };
    Some(SetLine { mode, ..set })
}
