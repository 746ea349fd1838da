//! Settings as people write them: `KNOB=VALUE`, a line of sysctl.conf or of tuned's `[sysctl]`, a
//! command of a recipe.

use model::{
    knob::SEGMENT_SIZES,
    tune::{Refused, RefusedAs},
};
use parse::sysctl_conf;

use super::{ChangeRequest, ChangeRequests, RequestMode};
use crate::TuneError;

/// Top directories of `/proc/sys`: a name that begins with one of them is a kernel setting.
const FOLDERS: &[&str] = &["abi", "debug", "dev", "fs", "kernel", "net", "sunrpc", "user", "vm"];

/// Parses `KNOB=VALUE` of an argument or a line. A kernel setting may omit `sysctl.`, and may use
/// `=>` for "at least", as in tuned's profiles.
///
/// # Errors
/// There is no `=`, nothing stands before it, or it is tuned's `=<`.
pub fn pair(text: &str, asked_by: &str) -> Result<ChangeRequest, TuneError> {
    let (knob, value) = match text.split_once('=') {
        Some((knob, value)) if !knob.trim().is_empty() => (knob.trim(), value.trim()),
        _ => return Err(TuneError::Usage(format!("{asked_by}: {text:?} is not KNOB=VALUE"))),
    };
    let (value, mode) = match value.strip_prefix('>') {
        Some(least) => (least.trim(), RequestMode::AtLeast),
        None if value.starts_with('<') => {
            let why = "=< (at most) is not taken: say the value itself";
            return Err(TuneError::Usage(format!("{asked_by}: {text:?}: {why}")));
        }
        None => (value, RequestMode::Exactly),
    };
    Ok(ChangeRequest {
        knob: full(knob),
        value: value.trim_matches(['"', '\'']).to_owned(),
        asked_by: asked_by.to_owned(),
        mode,
        ..ChangeRequest::default()
    })
}

/// The full knob name; a kernel setting may be spelled as in sysctl.conf.
fn full(name: &str) -> String {
    // In sysctl.d a leading `-` ignores failures of that key.
    let key = name.strip_prefix('-').unwrap_or(name).trim();
    let path = sysctl_conf::path(key);
    match path.split_once('/') {
        Some((folder, _)) if FOLDERS.contains(&folder) => {
            format!("sysctl.{}", sysctl_conf::dotted(&path))
        }
        _ => name.to_owned(),
    }
}

/// Lines of settings, with `#` comments; also a file of sysctl.d, the `[sysctl]` of a tuned profile,
/// and commands that set what knobs set.
///
/// # Errors
/// The first line that is none of these.
pub fn read(text: &str) -> Result<ChangeRequests, TuneError> {
    let mut all = ChangeRequests::default();
    let mut section = None;
    for (i, line) in text.lines().enumerate() {
        let asked_by = format!("line {}", i + 1);
        let line = line.split('#').next().unwrap_or_default().trim();
        // `-KEY` without a value excludes a key from sysctl.d's patterns.
        let excludes = line.starts_with('-') && !line.contains('=');
        if line.is_empty() || line.starts_with(';') || excludes {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = Some(name);
            continue;
        }
        if let Some(other) = section.filter(|s| *s != "sysctl") {
            let (knob, new) = line.split_once('=').unwrap_or((line, ""));
            all.refused.push(Refused {
                asked_by,
                knob: knob.trim().to_owned(),
                new: new.trim().to_owned(),
                kind: RefusedAs::Environment,
                why: format!("of tuned's [{other}], and only its [sysctl] is taken"),
                verdict: None,
                source: String::new(),
            });
            continue;
        }
        match command(line, &asked_by) {
            Some(change_requests) => all.change_requests.extend(change_requests?),
            None => all.change_requests.push(pair(line, &asked_by)?),
        }
    }
    Ok(all)
}

/// Change requests from a recipe's command; `None` if the command is unknown.
fn command(line: &str, asked_by: &str) -> Option<Result<Vec<ChangeRequest>, TuneError>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["sysctl", "-w", rest @ ..] => Some(pair(&rest.join(" "), asked_by).map(|w| vec![w])),
        ["ip", "li" | "link", "set", "dev", nic, rest @ ..]
        | ["ip", "li" | "link", "set", nic, rest @ ..]
        | ["ifconfig", nic, rest @ ..] => Some(Ok(link(nic, rest, asked_by))),
        [start @ .., last] if model::sysctls::command(line).is_some() => {
            let (knob, value) = line.rsplit_once('=').map_or_else(
                || (start.join(" "), (*last).to_owned()),
                |(knob, value)| (knob.to_owned(), value.to_owned()),
            );
            let asked_by = asked_by.to_owned();
            Some(Ok(vec![ChangeRequest { knob, value, asked_by, ..ChangeRequest::default() }]))
        }
        _ => None,
    }
}

/// Change requests for the parameters of `ip link set` and `ifconfig` that have a knob.
fn link(nic: &str, words: &[&str], asked_by: &str) -> Vec<ChangeRequest> {
    let change_request = |pair: &[&str]| {
        let [name, value] = pair else { return None };
        let name = match *name {
            "mtu" => "mtu",
            "txqueuelen" | "txqlen" | "qlen" => "txqueuelen",
            size if SEGMENT_SIZES.contains(&size) => size,
            _ => return None,
        };
        Some(ChangeRequest {
            knob: format!("nic.{nic}.{name}"),
            value: (*value).to_owned(),
            asked_by: asked_by.to_owned(),
            ..ChangeRequest::default()
        })
    };
    words.windows(2).filter_map(change_request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(String, String)> {
        read(text).unwrap().change_requests.into_iter().map(|w| (w.knob, w.value)).collect()
    }

    #[test]
    fn a_file_of_sysctl_d_is_taken_as_it_is() {
        let text = "# ours\n; theirs\n-net.ipv4.conf.all.rp_filter\nnet.core.somaxconn = 8192\n-net/ipv4/tcp_sack=1\n\
                    /proc/sys/vm/swappiness=10\nnet/ipv4/conf/eth0.100/rp_filter = 2\n\
                    kernel.sem = 250 32000 100 128\nsysctl.fs.file-max=1\nsysctl -w net.core.rmem_max=\"1\"\n";
        let pairs: Vec<_> = all(text);
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("sysctl.net.core.somaxconn", "8192"),
                ("sysctl.net.ipv4.tcp_sack", "1"),
                ("sysctl.vm.swappiness", "10"),
                ("sysctl.net.ipv4.conf.eth0/100.rp_filter", "2"),
                ("sysctl.kernel.sem", "250 32000 100 128"),
                ("sysctl.fs.file-max", "1"),
                ("sysctl.net.core.rmem_max", "1"),
            ]
        );
        assert_eq!(pair("nic.eth0.mtu=9000", "a").unwrap().knob, "nic.eth0.mtu");
        assert_eq!(pair("nett.core.x=1", "a").unwrap().knob, "nett.core.x");
    }

    #[test]
    fn a_tuned_profile_gives_its_sysctls_and_says_at_least() {
        let text =
            "[main]\nsummary=x\n[sysctl]\nnet.core.somaxconn=>2048\n[cpu]\ngovernor=performance\n";
        let all = read(text).unwrap();
        assert_eq!(all.change_requests.len(), 1);
        assert_eq!(
            (all.change_requests[0].value.as_str(), &all.change_requests[0].mode),
            ("2048", &RequestMode::AtLeast)
        );
        assert_eq!(all.refused.len(), 2);
        assert!(all.refused[1].why.contains("[cpu]"), "{:?}", all.refused);
        let most = pair("vm.swappiness=<10", "line 1").unwrap_err().to_string();
        assert!(most.contains("at most"), "{most}");
    }

    #[test]
    fn commands_of_a_recipe_are_what_they_set() {
        let text = "setpci -d 8086:1a48 e6.b=2e\nip li set dev eth1 mtu 9000 txqueuelen 1000 up\n\
                    ifconfig eth2 mtu 4000\nservice irqbalance stop\n";
        let pairs = all(text);
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("setpci -d 8086:1a48 e6.b", "2e"),
                ("nic.eth1.mtu", "9000"),
                ("nic.eth1.txqueuelen", "1000"),
                ("nic.eth2.mtu", "4000"),
                ("service irqbalance", "stop"),
            ]
        );
        assert!(read("echo hello\n").unwrap_err().to_string().starts_with("line 1"));
    }
}
