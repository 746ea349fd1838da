//! A value as people see it.

use model::lint::SetLine;

/// The value for people: a key is a secret.
pub fn shown(set: &SetLine) -> &str {
    if set.setting == "sysctl.net.ipv4.tcp_fastopen_key" { "***" } else { &set.value }
}
