//! Commands that set something in a way that is not followed. They are named, so that a reader does
//! not take silence for a verdict.

use super::{
    is_sysctl_file,
    words::{self, Command},
};

/// A command whose settings are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// Line of the command, from 1.
    pub line: u32,
    /// What it does, and what would have it judged.
    pub what: String,
}

/// Every such command of a script, in order.
pub fn passed_over(bytes: &[u8]) -> Vec<PassedOver> {
    let text = String::from_utf8_lossy(bytes);
    let mut loops: Vec<(String, String)> = vec![];
    let mut out = vec![];
    for command in &words::commands(&text, 1) {
        if let ["for", name, "in", list @ ..] = words_of(command).as_slice()
            && let Some(path) = list.iter().find(|w| is_of_kernel(w))
        {
            loops.push(((*name).to_owned(), (*path).to_owned()));
        }
        let what = elsewhere(command).or_else(|| in_a_loop(command, &loops));
        out.extend(what.map(|what| PassedOver { line: command.line, what }));
    }
    out
}

fn words_of(command: &Command) -> Vec<&str> {
    command.words.iter().map(String::as_str).collect()
}

fn is_of_kernel(path: &str) -> bool {
    ["/sys/", "/proc/sys/", "/proc/irq/"].iter().any(|p| path.starts_with(p))
}

/// What a command does with settings that are not in this file, or not of this host.
fn elsewhere(command: &Command) -> Option<String> {
    let words = words_of(command);
    let (program, rest) = words.split_first()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    match (program, rest) {
        ("tuned-adm", ["profile", names @ ..]) if !names.is_empty() => Some(format!(
            "it applies the profile of tuned {}; name its tuned.conf to have it judged",
            names.join(" ")
        )),
        ("ssh" | "nsenter" | "chroot", _) | ("ip", ["netns" | "net", "exec", ..]) if sets(rest) => {
            Some(format!("{program} runs it on another host or in another namespace"))
        }
        ("docker" | "podman" | "kubectl" | "lxc-attach", _)
            if rest.contains(&"exec") && sets(rest) =>
        {
            Some(format!("{program} runs it in a container"))
        }
        ("sysctl", _) if rest.iter().any(|w| matches!(*w, "--system" | "-S")) => {
            Some("it applies every sysctl file of the host; name them to have them judged".into())
        }
        ("sysctl", [flag, files @ ..]) => {
            let named = flag.strip_prefix("--load=").map(|f| vec![f]);
            let loads = matches!(*flag, "-p" | "-f" | "--load");
            let files = named.or_else(|| loads.then(|| files.to_vec()))?;
            let files: Vec<&str> = files.into_iter().filter(|f| *f != "-").collect();
            let which = match files.is_empty() {
                true if command.here.is_empty() && !rest.contains(&"-") => {
                    "/etc/sysctl.conf".into()
                }
                true => return None,
                false => files.join(" "),
            };
            Some(format!("it applies {which}; name that file to have it judged"))
        }
        ("sed", _) if rest.iter().any(|w| w.starts_with("-i") || *w == "--in-place") => {
            let file = rest.iter().find(|w| is_sysctl_file(w) && w.contains('/'))?;
            Some(format!("sed changes {file}; name that file to have it judged"))
        }
        _ => None,
    }
}

/// Whether the words that another program runs may set something.
fn sets(words: &[&str]) -> bool {
    let marks = ["sysctl", "/proc/sys/", "/proc/irq/", "/sys/", "ethtool", "setpci", "taskset"];
    words.iter().any(|w| marks.iter().any(|m| w.contains(m)))
}

/// A write to the variable of a loop over files of the kernel.
fn in_a_loop(command: &Command, loops: &[(String, String)]) -> Option<String> {
    let words = words_of(command);
    let tee = words.first() == Some(&"tee");
    let targets = command.into.iter().map(String::as_str);
    let targets = targets.chain(words.iter().skip(1).copied().filter(|_| tee));
    let variable = |t: &str| t.strip_prefix('$').map(|t| t.trim_start_matches('{').to_owned());
    for target in targets.filter_map(variable) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name: String = target.chars().take_while(|c| is_name(*c)).collect();
        if let Some((_, path)) = loops.iter().rev().find(|(n, _)| *n == name) {
            return Some(format!("a loop writes to each of {path}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(u32, String)> {
        passed_over(text.as_bytes()).into_iter().map(|p| (p.line, p.what)).collect()
    }

    #[test]
    fn what_sets_something_elsewhere_is_named() {
        let text = "tuned-adm profile network-latency\nssh db1 sysctl -w net.core.a=1\n\
            nsenter -n -t 1 sysctl -w net.core.a=1\nip netns exec a sh -c 'echo 1 > /proc/sys/x'\n\
            docker exec web sysctl -w net.core.a=1\nsysctl --system\nsysctl -p /etc/o.conf\nsysctl -p\n\
            sed -i s/a/b/ /etc/sysctl.d/x.conf\n";
        let found = lines(text);
        assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let has = |at: usize, what: &str| assert!(found[at].1.contains(what), "{:?}", found[at]);
        has(0, "network-latency");
        has(1, "ssh");
        has(4, "in a container");
        has(6, "/etc/o.conf");
        has(7, "/etc/sysctl.conf");
        has(8, "/etc/sysctl.d/x.conf");
    }

    #[test]
    fn a_loop_over_files_of_the_kernel_is_named_where_it_writes() {
        let text = "for f in /sys/class/net/*/queues/rx-*/rps_cpus; do\n echo f > $f\ndone\n\
            for i in /proc/irq/*; do cat $i/x; echo 1 | sudo tee ${i}/smp_affinity; done\n\
            for l in a b; do echo x > $l; done\n";
        let found = lines(text);
        let expected = "a loop writes to each of /sys/class/net/*/queues/rx-*/rps_cpus";
        assert_eq!(found[0], (2, expected.to_owned()));
        assert_eq!((found[1].0, found.len()), (4, 2));
    }

    #[test]
    fn what_is_judged_or_sets_nothing_is_not_named() {
        for text in [
            "sysctl -w net.core.a=1\n",
            "ssh db1 uptime\n",
            "nsenter -t 1 ps\n",
            "tuned-adm active\n",
            "sed -i s/a/b/ /etc/hosts\n",
            "sysctl -p - <<E\nnet.core.a = 1\nE\n",
            "sysctl -a\n",
            "net.core.a = 1\n",
        ] {
            assert_eq!(lines(text), [], "{text}");
        }
    }
}
