//! Which printed file a piece of evidence comes from.

use super::{Backing, Printed, SocketKind};

/// Files that one source may name by a pattern.
const MOST: usize = 64;

impl Printed {
    /// The source of a piece of evidence, with the printed files instead of the kernel's that they
    /// stand for: `sos_commands/networking/nstat_-zas for /proc/net/snmp Tcp RetransSegs`. What the
    /// tree has itself keeps its name.
    pub fn source(&self, backing: &Backing, source: &str) -> String {
        // One command may have commas in what explains it.
        self.of_command(source).unwrap_or_else(|| {
            let parts = source.split(", ").map(|part| self.part(backing, part));
            parts.collect::<Vec<_>>().join(", ")
        })
    }

    fn part(&self, backing: &Backing, part: &str) -> String {
        let path = part.split(' ').next().unwrap_or_default();
        let origins = if path.starts_with('/') {
            self.of_path(backing, path)
        } else {
            return self.of_command(part).unwrap_or_else(|| part.to_owned());
        };
        match origins.is_empty() {
            true => part.to_owned(),
            false => format!("{} for {part}", origins.join(" and ")),
        }
    }

    /// The files that stand in for one of the kernel's, for those of a folder or of a pattern.
    fn of_path(&self, backing: &Backing, path: &str) -> Vec<String> {
        // Everything before a part that may be any of several.
        let fixed = path.split(['*', '{']).next().unwrap_or(path);
        let stands_in =
            self.files.range(fixed.to_owned()..).take_while(|(p, _)| p.starts_with(fixed));
        let stands_in = stands_in.filter(|(p, _)| matches(path, p)).take(MOST);
        let mut origins: Vec<String> = stands_in
            .filter(|(p, _)| backing.read(p).is_err())
            .map(|(_, text)| text.origin.clone())
            .collect();
        origins.sort();
        origins.dedup();
        origins
    }

    /// The file that has what `ethtool -S eth0` printed, or `ss` of the sockets.
    fn of_command(&self, part: &str) -> Option<String> {
        let words: Vec<&str> = part.split(' ').collect();
        let text = match words[..] {
            ["ethtool", option, nic] => self.outputs.find(&[&format!("ethtool {option}")], nic)?,
            ["ethtool", nic] => self.outputs.find(&["ethtool"], nic)?,
            ["tcp_info", ..] => self.outputs.sockets(SocketKind::Connections)?,
            ["sock_diag", "(ss", options, ..] if options.starts_with("-u") => {
                self.outputs.sockets(SocketKind::Udp)?
            }
            ["sock_diag", ..] => self.outputs.sockets(SocketKind::Listeners)?,
            _ => return None,
        };
        Some(text.origin.clone())
    }
}

/// Whether a path is the named one, below it, or one of a pattern with `*` and `{one,other}`.
fn matches(pattern: &str, path: &str) -> bool {
    let (Some((first, rest)), path_first) =
        (next(pattern), path.split('/').next().unwrap_or_default())
    else {
        return true;
    };
    let below = path.get(path_first.len() + 1..);
    is_one_of(first, path_first)
        && match (rest, below) {
            ("", _) => true,
            (rest, Some(below)) => matches(rest, below),
            (_, None) => false,
        }
}

/// The first name of a path, and what follows its slash; `None` at the end.
fn next(path: &str) -> Option<(&str, &str)> {
    path.split_once('/').or_else(|| (!path.is_empty()).then_some((path, "")))
}

/// Whether a name fits one with `*` and `{one,other}`.
fn is_one_of(pattern: &str, name: &str) -> bool {
    if let Some((before, rest)) = pattern.split_once('{') {
        let Some((choices, after)) = rest.split_once('}') else { return pattern == name };
        return name.strip_prefix(before).is_some_and(|name| {
            choices.split(',').any(|c| name.strip_prefix(c).is_some_and(|n| is_one_of(after, n)))
        });
    }
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|n| n.ends_with(after)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_names_a_file_a_folder_or_several() {
        let queue = "/sys/class/net/eth0/queues/rx-3/rps_cpus";
        for pattern in
            [queue, "/sys/class/net/eth0/queues", "/sys/class/net/*/queues/rx-*/rps_cpus"]
        {
            assert!(matches(pattern, queue), "{pattern}");
        }
        let speed = "/sys/bus/pci/devices/A/current_link_speed";
        assert!(matches("/sys/bus/pci/devices/A/{current,max}_link_{speed,width}", speed));
        for pattern in ["/sys/class/net/eth", "/sys/class/net/eth0/queues/tx-*", "/sys/{a,b}/net"] {
            assert!(!matches(pattern, queue), "{pattern}");
        }
        assert!(!matches(queue, "/sys/class/net/eth0"));
    }
}
