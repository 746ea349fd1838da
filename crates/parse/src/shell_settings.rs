//! Settings that commands make: scripts, recipes, `RUN` of a Dockerfile, commands of a pod. Also
//! lines of sysctl.conf among them, as recipes have.
//!
//! **Source**: sysctl(8), ip-link(8), tc(8), taskset(1), setpci(8), irqbalance(1), systemctl(1).

mod ethtool;
mod passed_over;
pub(crate) mod words;

use model::{
    knob::{SEGMENT_SIZES, is_nic_name},
    lint::{Place, SetLine, SetMode},
};

pub use self::passed_over::{PassedOver, passed_over};
use self::words::Command;
use crate::sysctl_conf;

/// Top folders of `/proc/sys`: a dotted name that begins with one of them is a kernel setting.
const FOLDERS: &[&str] = &["abi", "debug", "dev", "fs", "kernel", "net", "sunrpc", "user", "vm"];

/// The longest value that is kept, in bytes; the kernel takes no longer line.
const MOST_VALUE: usize = 4096;

/// Every setting that the text makes, in order. Commands that set nothing are passed over.
pub fn parse(bytes: &[u8], place: Place) -> Vec<SetLine> {
    parse_from(&String::from_utf8_lossy(bytes), 1, place)
}

/// The same for a text whose first line has this number.
pub(crate) fn parse_from(text: &str, first_line: u32, place: Place) -> Vec<SetLine> {
    let mut out = Vec::new();
    let all = words::commands(text, first_line);
    let mut before: Option<&Command> = None;
    for command in &all {
        let line = Lines { command, place, out: &mut out };
        line.read(before.filter(|b| b.piped));
        before = Some(command);
    }
    out
}

/// The settings of a command whose words are known already.
pub(crate) fn of_words(words: &[String], line: u32, place: Place) -> Vec<SetLine> {
    if let [shell, flag, text] = words
        && is_shell(shell)
        && flag.starts_with('-')
        && flag.ends_with('c')
    {
        return parse_from(text, line, place);
    }
    let mut out = Vec::new();
    let command = Command::of(words, line);
    Lines { command: &command, place, out: &mut out }.read(None);
    out
}

/// Whether a program is a shell, which takes a command as its last argument.
pub(crate) fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    matches!(name, "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh" | "busybox")
}

/// The full name of a kernel setting as sysctl.conf spells it; `None` for another name.
pub fn sysctl_knob(key: &str) -> Option<String> {
    let key = key.strip_prefix('-').unwrap_or(key).trim();
    let path = sysctl_conf::path(key);
    let (folder, rest) = path.split_once('/')?;
    let fine = FOLDERS.contains(&folder)
        && !rest.is_empty()
        && path.split('/').all(|p| !matches!(p, "" | "." | ".."))
        && !path.contains(|c: char| c.is_whitespace() || c.is_control());
    fine.then(|| format!("sysctl.{}", sysctl_conf::dotted(&path)))
}

/// The name of what a file below `/proc` or `/sys` sets; `None` for another file.
pub fn file_knob(path: &str) -> Option<String> {
    if let Some(rest) = path.strip_prefix("/proc/sys/") {
        let path = rest.trim_end_matches('/');
        return sysctl_knob(&format!("/proc/sys/{path}"));
    }
    if let Some(rest) = path.strip_prefix("/sys/class/net/") {
        let (nic, file) = rest.split_once('/')?;
        if !is_nic_name(nic) {
            return None;
        }
        return Some(match file.strip_prefix("queues/").and_then(|f| f.split_once('/')) {
            Some((queue, "rps_flow_cnt")) => format!("nic.{nic}.queue.{queue}.rfs_flows"),
            Some((queue, file)) => format!("nic.{nic}.queue.{queue}.{file}"),
            None if file == "tx_queue_len" => format!("nic.{nic}.txqueuelen"),
            None => format!("nic.{nic}.{file}"),
        });
    }
    if let Some(rest) = path.strip_prefix("/proc/irq/") {
        let (irq, file) = rest.split_once('/')?;
        return matches!(file, "smp_affinity" | "smp_affinity_list")
            .then(|| format!("irq.{irq}.affinity"));
    }
    if let Some(rest) = path.strip_prefix("/sys/devices/system/cpu/cpu") {
        let (cpu, file) = rest.split_once('/')?;
        let setting = match file {
            "cpufreq/scaling_governor" => "governor",
            "cpufreq/energy_performance_preference" => "energy_preference",
            "power/pm_qos_resume_latency_us" => "idle_limit",
            _ => return Some(path.to_owned()),
        };
        return Some(format!("cpu.{cpu}.{setting}"));
    }
    match path.strip_prefix("/sys/kernel/mm/transparent_hugepage/") {
        Some("enabled") => return Some("memory.thp".into()),
        Some("defrag") => return Some("memory.thp_defrag".into()),
        _ => {}
    }
    path.starts_with("/sys/").then(|| path.to_owned())
}

/// One setting of a line, bounded.
pub fn set_line(line: u32, place: Place, setting: String, value: &str, whole: bool) -> SetLine {
    let value = value.trim();
    let cut = (0..=MOST_VALUE.min(value.len())).rev().find(|&i| value.is_char_boundary(i));
    let value = value.get(..cut.unwrap_or(0)).unwrap_or_default().to_owned();
    SetLine { line, place, setting, value, mode: SetMode::Exactly, whole }
}

/// Finds the settings that one command changes, and appends them to `out`.
struct Lines<'a> {
    command: &'a Command,
    place: Place,
    out: &'a mut Vec<SetLine>,
}

impl Lines<'_> {
    fn push(&mut self, setting: String, value: &str) {
        let Command { line, whole, .. } = *self.command;
        self.out.push(set_line(line, self.place, setting, value, whole));
    }

    /// Reads the command; `before` sends it its output.
    fn read(mut self, before: Option<&Command>) {
        let words: Vec<&str> = self.command.words.iter().map(String::as_str).collect();
        let Some((program, rest)) = words.split_first() else { return };
        let program = program.rsplit('/').next().unwrap_or(program);
        if program == "sysctl" || self.command.into.iter().any(|t| is_sysctl_file(t)) {
            self.here(self.command);
        }
        match (program, rest) {
            ("sysctl", rest) => self.sysctl(rest),
            ("echo" | "printf", rest) => {
                for target in &self.command.into {
                    self.written(target, &echoed(rest));
                }
            }
            ("tee", rest) => {
                if rest.iter().any(|w| is_sysctl_file(w)) {
                    self.here(self.command);
                    before.into_iter().for_each(|b| self.here(b));
                }
                let Some(text) = before.and_then(printed) else { return };
                for target in rest.iter().filter(|w| !w.starts_with('-')) {
                    self.written(target, &text);
                }
            }
            ("ethtool", rest) => {
                for (knob, value) in ethtool::sets(rest).unwrap_or_default() {
                    self.push(knob, &value);
                }
            }
            ("ip", ["link" | "li" | "l", "set", "dev", nic, rest @ ..])
            | ("ip", ["link" | "li" | "l", "set", nic, rest @ ..])
            | ("ifconfig", [nic, rest @ ..]) => self.link(nic, rest),
            ("tc", ["qdisc" | "qd", act @ ("add" | "replace" | "change" | "del"), rest @ ..]) => {
                self.qdisc(act, rest);
            }
            ("setpci", rest) => self.setpci(rest),
            ("taskset", rest) if rest.iter().any(|w| w.starts_with('-') && w.contains('p')) => {
                if let [flags @ .., cpus, who] = rest
                    && !flags.is_empty()
                {
                    self.push(format!("taskset {} {who}", flags.join(" ")), cpus);
                }
            }
            ("taskset", [.., _, _]) => {
                let cpus = rest.iter().find(|w| !w.starts_with('-')).copied().unwrap_or_default();
                self.push("taskset".into(), cpus);
            }
            ("irqbalance", rest) => self.push("irqbalance".into(), &rest.join(" ")),
            ("service", [unit, act]) if tuner(unit) => self.push(format!("service {unit}"), act),
            ("systemctl", [act, rest @ ..])
                if matches!(*act, "stop" | "disable" | "mask" | "start" | "enable") =>
            {
                for unit in rest.iter().filter(|u| tuner(u)) {
                    self.push(format!("systemctl {act}"), unit);
                }
            }
            ("chkconfig" | "update-rc.d", [unit, act, ..]) if tuner(unit) => {
                self.push(format!("service {unit}"), act);
            }
            ("cpupower", rest) => {
                let governor =
                    rest.windows(2).find(|w| matches!(w.first(), Some(&"-g" | &"--governor")));
                if let Some(name) = governor.and_then(|w| w.get(1)) {
                    self.push("cpu.governor".into(), name);
                }
            }
            _ => self.conf_line(&words),
        }
    }

    /// Settings in a here-document: those of `sysctl -p -`, and of a sysctl file that is written.
    fn here(&mut self, command: &Command) {
        for (line, text) in &command.here {
            if text.trim_start().starts_with(['#', ';', '[']) {
                continue;
            }
            if let Some((key, value)) = text.split_once('=')
                && let Some(knob) = sysctl_knob(key.trim())
            {
                self.out.push(set_line(*line, self.place, knob, value, true));
            }
        }
    }

    /// A line of sysctl.conf among commands: `net.core.x = 1`, which is no command of a shell.
    fn conf_line(&mut self, words: &[&str]) {
        let joined = words.join(" ");
        let Some((key, value)) = joined.split_once('=') else { return };
        if let Some(knob) = sysctl_knob(key.trim()) {
            self.push(knob, value);
        }
    }

    fn sysctl(&mut self, words: &[&str]) {
        let rest: Vec<&str> = words.iter().filter(|w| !w.starts_with('-')).copied().collect();
        let joined = rest.join(" ");
        if rest.iter().filter(|w| w.contains('=')).count() <= 1 {
            if let Some((key, value)) = joined.split_once('=')
                && let Some(knob) = sysctl_knob(key.trim())
            {
                self.push(knob, value);
            }
            return;
        }
        for (key, value) in rest.iter().filter_map(|w| w.split_once('=')) {
            if let Some(knob) = sysctl_knob(key) {
                self.push(knob, value);
            }
        }
    }

    /// Text that goes into a file: a setting below `/proc` or `/sys`, or lines of a sysctl file.
    fn written(&mut self, target: &str, text: &str) {
        if let Some(knob) = file_knob(target) {
            self.push(knob, text);
        } else if is_sysctl_file(target) {
            for line in text.split("\\n").filter(|l| !l.trim_start().starts_with('#')) {
                if let Some((key, value)) = line.split_once('=')
                    && let Some(knob) = sysctl_knob(key.trim())
                {
                    self.push(knob, value);
                }
            }
        }
    }

    fn link(&mut self, nic: &str, words: &[&str]) {
        for pair in words.windows(2) {
            let [name, value] = pair else { continue };
            let setting = match *name {
                "mtu" => "mtu",
                "txqueuelen" | "txqlen" | "qlen" => "txqueuelen",
                size if SEGMENT_SIZES.contains(&size) => size,
                _ => continue,
            };
            self.push(format!("nic.{nic}.{setting}"), value);
        }
    }

    fn qdisc(&mut self, act: &str, words: &[&str]) {
        let at = |name: &str| words.iter().position(|w| *w == name);
        let Some(nic) = at("dev").and_then(|i| words.get(i + 1)) else { return };
        let knob = format!("nic.{nic}.qdisc");
        match at("root") {
            _ if act == "del" => self.push(knob, "default"),
            Some(i) => {
                let mut rest = words.get(i + 1..).unwrap_or_default();
                if let ["handle", _, more @ ..] = rest {
                    rest = more;
                }
                self.push(knob, &rest.join(" "));
            }
            None => self.push(format!("tc qdisc {act} dev {nic}"), &words.join(" ")),
        }
    }

    fn setpci(&mut self, words: &[&str]) {
        // setpci(8): with -D nothing is written.
        if words.contains(&"-D") {
            return;
        }
        let writes = |w: &&&str| w.contains('=');
        let (sets, which): (Vec<&str>, Vec<&str>) = words.iter().copied().partition(|w| writes(&w));
        for (register, value) in sets.iter().filter_map(|w| w.split_once('=')) {
            self.push(format!("setpci {} {register}", which.join(" ")), value);
        }
    }
}

/// Whether a file is one of sysctl's, by its name or folder.
fn is_sysctl_file(path: &str) -> bool {
    path.contains("sysctl")
}

/// Services that set what netwright sets.
fn tuner(unit: &str) -> bool {
    let name = unit.strip_suffix(".service").unwrap_or(unit);
    matches!(name, "irqbalance" | "cpuspeed" | "tuned" | "ondemand")
}

/// What `echo` or `printf` prints.
fn echoed(words: &[&str]) -> String {
    let is_flag = |w: &&&str| matches!(**w, "-n" | "-e" | "-ne" | "-en" | "-E");
    let words: Vec<&str> = words.iter().skip_while(is_flag).copied().collect();
    let text = words.join(" ");
    text.strip_suffix("\\n").unwrap_or(&text).to_owned()
}

fn printed(command: &Command) -> Option<String> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    match words.split_first()? {
        (&"echo" | &"printf", rest) => Some(echoed(rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(text: &str) -> Vec<(u32, String, String)> {
        let all = parse(text.as_bytes(), Place::Script);
        all.into_iter().map(|s| (s.line, s.setting, s.value)).collect()
    }

    #[test]
    fn every_kind_of_command_is_what_it_sets() {
        for (text, knob, value) in [
            ("sysctl -w net.core.rmem_max=1", "sysctl.net.core.rmem_max", "1"),
            ("sysctl -q -w net.ipv4.tcp_rmem='1 2 3'", "sysctl.net.ipv4.tcp_rmem", "1 2 3"),
            ("sysctl net.ipv4.tcp_mem=\"1 2 3\"", "sysctl.net.ipv4.tcp_mem", "1 2 3"),
            ("echo 2 > /proc/sys/vm/swappiness", "sysctl.vm.swappiness", "2"),
            ("echo -n 2 | sudo tee /proc/sys/vm/swappiness", "sysctl.vm.swappiness", "2"),
            ("echo 'net.core.x = 4' >> /etc/sysctl.conf", "sysctl.net.core.x", "4"),
            ("net.ipv4.tcp_sack = 0", "sysctl.net.ipv4.tcp_sack", "0"),
            (
                "echo f > /sys/class/net/eth0/queues/rx-0/rps_cpus",
                "nic.eth0.queue.rx-0.rps_cpus",
                "f",
            ),
            ("echo 9000 > /sys/class/net/eth0/mtu", "nic.eth0.mtu", "9000"),
            ("echo 3 > /proc/irq/24/smp_affinity", "irq.24.affinity", "3"),
            ("ethtool -G eth0 rx-mini 4096", "nic.eth0.rings.rx_mini", "4096"),
            ("/sbin/ethtool -L eth0 combined 8", "nic.eth0.channels", "combined 8"),
            ("ethtool -C eth0 rx-frames 8", "nic.eth0.coalesce.rx_max_frames", "8"),
            ("ethtool -K eth0 gro off", "nic.eth0.features.rx-gro", "off"),
            ("ethtool -A eth0 rx off", "nic.eth0.pause.rx", "off"),
            ("ethtool -X eth0 equal 4", "nic.eth0.rss.table", "equal 4"),
            (
                "ethtool -N eth0 rx-flow-hash udp4 sd",
                "nic.eth0.rss.hash_fields.udp4",
                "src_ip dst_ip",
            ),
            ("ip link set dev eth1 txqueuelen 1000", "nic.eth1.txqueuelen", "1000"),
            ("ip link set dev eth1 gso_max_size 200000", "nic.eth1.gso_max_size", "200000"),
            ("echo never > /sys/kernel/mm/transparent_hugepage/enabled", "memory.thp", "never"),
            ("ip li set eth1 mtu 9000 up", "nic.eth1.mtu", "9000"),
            ("ifconfig eth2 mtu 4000", "nic.eth2.mtu", "4000"),
            (
                "tc qdisc replace dev eth0 root handle 1: fq limit 10",
                "nic.eth0.qdisc",
                "fq limit 10",
            ),
            ("setpci -d 8086:1a48 e6.b=2e", "setpci -d 8086:1a48 e6.b", "2e"),
            ("taskset -acp 0-3 42", "taskset -acp 42", "0-3"),
            ("service irqbalance stop", "service irqbalance", "stop"),
            ("systemctl disable irqbalance.service", "systemctl disable", "irqbalance.service"),
            ("irqbalance --oneshot", "irqbalance", "--oneshot"),
            ("cpupower frequency-set -g performance", "cpu.governor", "performance"),
        ] {
            assert_eq!(sets(text), [(1, knob.to_owned(), value.to_owned())], "{text}");
        }
    }

    #[test]
    fn what_sets_nothing_is_no_setting() {
        for text in [
            "ethtool -k eth0",
            "ethtool eth0",
            "sysctl -a",
            "sysctl -p /etc/sysctl.conf",
            "# sysctl -w net.core.x=1",
            "echo 'sysctl -w net.core.x=1'",
            "echo 1 > /tmp/file",
            "ip link set eth0 up",
            "tc qdisc show dev eth0",
            "setpci -s 02:00.0 e6.b",
            "A=1 B=2",
            "service nginx stop",
            "grep net.core.x=1 file",
        ] {
            assert_eq!(sets(text), [], "{text}");
        }
    }

    #[test]
    fn a_here_document_counts_where_it_becomes_a_sysctl_file() {
        let body = "<<EOF\nnet.core.a = 1\nEOF\n";
        for command in
            ["cat > /etc/sysctl.d/9.conf {}", "sudo tee /etc/sysctl.d/9.conf {}", "sysctl -p - {}"]
        {
            let all = sets(&command.replace("{}", body));
            assert_eq!(all, [(2, "sysctl.net.core.a".into(), "1".into())], "{command}");
        }
        let piped = "cat <<EOF | sudo tee /etc/sysctl.d/k8s.conf\nnet.core.a = 1\nEOF\n";
        assert_eq!(sets(piped), [(2, "sysctl.net.core.a".into(), "1".into())]);
        assert_eq!(sets(&format!("cat > README {body}")), []);
    }

    #[test]
    fn several_of_a_line_are_several() {
        let all = sets("sysctl -w net.core.a=1 net.core.b=2; ethtool -G eth0 rx 1 tx 2\n");
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(parse(b"sysctl -w net.core.a=1 net.core.b=2\n", Place::Script).len() == 2);
    }
}
