//! Splits a request that covers several knobs into one for each.

use model::{Facts, cpu::Cpu, process::Process, tune::RefusedAs};

use super::{ChangeRequest, irqs, setpci};
use crate::knob::Refusal;

/// Splits a request that covers several knobs. `nic.NIC.coalesce.rx='adaptive-rx off rx-usecs 0'`,
/// as findings and ethtool write it, becomes one for each parameter. `nic.NIC.rfs=ENTRIES` becomes
/// the host's table and each queue's share. `irq.affinity=POLICY` becomes one for each queue's
/// interrupt, `cpu.governor=NAME` and the like one for each CPU. `nic.NIC.ntuple` is a feature.
pub fn split(change_requests: &mut Vec<ChangeRequest>, facts: &Facts) {
    for change_request in std::mem::take(change_requests) {
        let parts = coalescing(&change_request)
            .or_else(|| rfs(&change_request, facts))
            .or_else(|| ntuple(&change_request))
            .or_else(|| every_cpu(&change_request, facts))
            .or_else(|| policy(&change_request, facts))
            .or_else(|| {
                Some(vec![
                    setpci::expand(&change_request.knob, &change_request.value, facts)?.ok()?,
                ])
            });
        match parts {
            None => change_requests.push(change_request),
            Some(parts) => {
                change_requests.extend(parts.into_iter().map(|(knob, value)| ChangeRequest {
                    knob,
                    value,
                    ..change_request.clone()
                }))
            }
        }
    }
}

fn coalescing(change_request: &ChangeRequest) -> Option<Vec<(String, String)>> {
    let nic = change_request
        .knob
        .strip_suffix(".coalesce.rx")
        .or(change_request.knob.strip_suffix(".coalesce.tx"))?;
    let words: Vec<&str> = change_request.value.split_whitespace().collect();
    let pair = |c: &[&str]| {
        let [name, value] = c else { return None };
        let name = name.replace('-', "_").replace("x_frames", "x_max_frames");
        Some((format!("{nic}.coalesce.{name}"), (*value).to_owned()))
    };
    words.chunks(2).map(pair).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
}

fn ntuple(change_request: &ChangeRequest) -> Option<Vec<(String, String)>> {
    let nic = change_request.knob.strip_prefix("nic.")?.strip_suffix(".ntuple")?;
    Some(vec![(format!("nic.{nic}.features.rx-ntuple-filter"), change_request.value.clone())])
}

fn policy(change_request: &ChangeRequest, facts: &Facts) -> Option<Vec<(String, String)>> {
    (change_request.knob == "irq.affinity")
        .then(|| irqs::expand(&change_request.value, facts).ok())
        .flatten()
}

/// One request for each online CPU; a frequency setting only for CPUs that have it.
fn every_cpu(change_request: &ChangeRequest, facts: &Facts) -> Option<Vec<(String, String)>> {
    let setting = change_request.knob.strip_prefix("cpu.")?;
    let has = |c: &&Cpu| {
        c.online.get() != Some(false)
            && match setting {
                "governor" => c.frequency.governor.is_known(),
                "energy_preference" => c.frequency.energy_preference.is_known(),
                _ => setting == "idle_limit",
            }
    };
    let name = |c: &Cpu| (format!("cpu.{}.{setting}", c.id), change_request.value.clone());
    let all: Vec<_> = facts.cpus.iter().filter(has).map(name).collect();
    (!all.is_empty()).then_some(all)
}

/// Why a request that covers several knobs was not split.
pub fn left_whole(change_request: &ChangeRequest, facts: &Facts) -> Option<Refusal> {
    let cannot = |why: &str| Some(Refusal::new(RefusedAs::Environment, why));
    match change_request.knob.as_str() {
        "irq.affinity" => irqs::expand(&change_request.value, facts).err(),
        knob if knob.starts_with("setpci ") => {
            setpci::expand(knob, &change_request.value, facts)?.err()
        }
        "cpu.governor" => cannot("no CPU of this host shows a frequency governor"),
        "cpu.energy_preference" => cannot("no CPU of this host shows an energy preference"),
        knob => match who(knob) {
            Some((who, _)) if !who.is_empty() && who.parse::<u32>().is_err() => {
                cannot(&format!("no process of the name {who} runs"))
            }
            _ => None,
        },
    }
}

fn rfs(change_request: &ChangeRequest, facts: &Facts) -> Option<Vec<(String, String)>> {
    let name = change_request.knob.strip_prefix("nic.")?.strip_suffix(".rfs")?;
    let nic = facts.nics.iter().find(|n| n.name == name)?;
    let entries: u64 = change_request.value.parse().ok()?;
    let queues: Vec<String> =
        nic.queues.iter().filter(|q| q.rfs_flows.is_known()).map(|q| q.id.to_string()).collect();
    let count = (queues.len() as u64).max(1).next_power_of_two();
    let share = if entries == 0 { 0 } else { (entries / count).max(1) };
    let mut all =
        vec![("sysctl.net.core.rps_sock_flow_entries".to_owned(), change_request.value.clone())];
    all.extend(
        queues.iter().map(|q| (format!("nic.{name}.queue.{q}.rfs_flows"), share.to_string())),
    );
    Some(all)
}

/// Splits `process.NAME.affinity`, `.cpuset` and `.cpu_max` into one request for each process of that name.
/// Processes that share a control group get one request for the group. A name without a process
/// stays and is refused.
pub fn name_processes(change_requests: &mut Vec<ChangeRequest>, facts: &Facts) {
    let named = std::mem::take(change_requests);
    for change_request in named {
        let (who, setting) = who(&change_request.knob).unwrap_or_default();
        let by = (!who.is_empty() && who.parse::<u32>().is_err()).then(|| format!("name {who}"));
        let chosen =
            |p: &&Process| by.as_ref().is_some_and(|by| p.chosen_by.split(", ").any(|c| c == by));
        let mut pids = Vec::new();
        let mut groups = Vec::new();
        for process in facts.processes.iter().filter(chosen) {
            let group = process.cgroup.known().filter(|g| setting != "affinity" && *g != "/");
            if group.is_none_or(|g| !groups.contains(&g)) {
                pids.push(process.pid);
            }
            groups.extend(group);
        }
        if pids.is_empty() {
            change_requests.push(change_request);
            continue;
        }
        for pid in pids {
            let knob = format!("process.{pid}.{setting}");
            if !change_requests.iter().any(|w| w.knob == knob) {
                change_requests.push(ChangeRequest { knob, ..change_request.clone() });
            }
        }
    }
}

/// The process, by PID or name, and its setting.
pub fn who(knob: &str) -> Option<(&str, &'static str)> {
    let rest = knob.strip_prefix("process.")?;
    ["affinity", "cpuset", "cpu_max"]
        .into_iter()
        .find_map(|s| Some((rest.strip_suffix(s)?.strip_suffix('.')?, s)))
}

#[cfg(test)]
mod tests {
    use super::{super::pair, *};

    #[test]
    fn a_findings_coalescing_is_one_change_request_a_parameter() {
        let change_request =
            pair("nic.a.coalesce.rx=adaptive-rx off rx-usecs 0 rx-frames 1", "f").unwrap();
        let all = coalescing(&change_request).unwrap();
        let all: Vec<_> = all.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            all,
            [
                ("nic.a.coalesce.adaptive_rx", "off"),
                ("nic.a.coalesce.rx_usecs", "0"),
                ("nic.a.coalesce.rx_max_frames", "1"),
            ]
        );
        assert_eq!(coalescing(&pair("nic.a.coalesce.rx=adaptive-rx", "f").unwrap()), None);
    }
}
