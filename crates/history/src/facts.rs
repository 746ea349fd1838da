//! Which facts of two hosts, or of one host at two times, differ. Counters are no facts.

use std::collections::{BTreeMap, BTreeSet};

use model::history::FactChange;
use serde_json::Value;

/// Parts that differ at every look, or belong to other processes.
const NO_FACTS: [&str; 8] = [
    "applied",
    "kernel_log",
    "softnet",
    "processes",
    "listeners",
    "namespaces",
    "no_access",
    "schema_version",
];

/// Counters, gauges, numbers that a boot gives out, and where a value comes from.
const NO_FACT: [&str; 30] = [
    "backlog_bytes",
    "backlog_packets",
    "clock_read_ns",
    "count",
    "counts",
    "core_throttle_count",
    "current_khz",
    "default",
    "default_from",
    "default_source",
    "driver_stats",
    "drops",
    "evidence",
    "ifindex",
    "memory_free_bytes",
    "napi_id",
    "napis",
    "origin",
    "overlimits",
    "package_throttle_count",
    "pid",
    "reader",
    "requeues",
    "sent_bytes",
    "sent_packets",
    "statistics",
    "unit",
    "uptime_s",
    "hwirq",
    "mapped_by",
];

/// What names an element of a list; its position does not.
const IDS: [&str; 5] = ["id", "irq", "cpu", "index", "name"];

/// The facts that differ between two documents of `inspect --json`, by name.
pub fn changes(before: &str, after: &str) -> Vec<FactChange> {
    let (before, after) = (facts(before), facts(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |name: &String| {
        let (before, after) = (before.get(name).cloned(), after.get(name).cloned());
        (before != after).then(|| FactChange { fact: name.clone(), before, after })
    };
    names.into_iter().filter_map(change).collect()
}

fn facts(document: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    if let Ok(Value::Object(parts)) = serde_json::from_str(document) {
        for (name, part) in parts.iter().filter(|(name, _)| !NO_FACTS.contains(&name.as_str())) {
            flatten(part, name, &mut all);
        }
    }
    all
}

fn flatten(value: &Value, path: &str, all: &mut BTreeMap<String, String>) {
    let below = |name: &str| format!("{path}.{name}");
    match value {
        Value::Object(map) => {
            // Why a value is missing is told by the run itself.
            if let Some((missing, _)) = map
                .iter()
                .next()
                .filter(|(k, _)| map.len() == 1 && ["absent", "denied"].contains(&k.as_str()))
            {
                all.insert(path.to_owned(), missing.clone());
                return;
            }
            for (name, part) in map.iter().filter(|(name, _)| !NO_FACT.contains(&name.as_str())) {
                flatten(part, &below(name), all);
            }
        }
        Value::Array(list) if list.iter().any(Value::is_object) => {
            for (n, part) in list.iter().enumerate() {
                let id = IDS.iter().find_map(|id| part.get(id)).map(scalar);
                flatten(part, &below(&id.unwrap_or_else(|| n.to_string())), all);
            }
        }
        Value::Array(list) => {
            all.insert(path.to_owned(), list.iter().map(scalar).collect::<Vec<_>>().join(","));
        }
        other => {
            all.insert(path.to_owned(), scalar(other));
        }
    }
}

/// `rx-0` of a queue's id.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(map) => map.values().map(scalar).collect::<Vec<_>>().join("-"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(fact: &str, before: Option<&str>, after: Option<&str>) -> FactChange {
        FactChange {
            fact: fact.into(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        }
    }

    #[test]
    fn what_changed_is_named_and_counters_are_not() {
        let before = r#"{"host": {"kernel": "6.1", "uptime_s": 5}, "softnet": [{"cpu": 0}],
            "nics": [{"name": "eth0", "firmware": {"absent": "x"}, "channels": {"combined": 2},
                      "statistics": {"rx": 1}, "queues": [{"id": {"direction": "rx", "index": 0}, "irq": 1}]}],
            "sysctls": {"net.a": {"value": "1", "default": "1"}}}"#;
        let after = r#"{"host": {"kernel": "6.2", "uptime_s": 9}, "softnet": [],
            "nics": [{"name": "eth1", "mtu": 1500},
                     {"name": "eth0", "firmware": {"absent": "y"}, "channels": {"combined": 4},
                      "statistics": {"rx": 2}, "queues": [{"id": {"direction": "rx", "index": 0}, "irq": 2}]}],
            "sysctls": {"net.a": {"value": "2", "default": "2"}}}"#;
        assert_eq!(
            changes(before, after),
            [
                change("host.kernel", Some("6.1"), Some("6.2")),
                change("nics.eth0.channels.combined", Some("2"), Some("4")),
                change("nics.eth0.queues.rx-0.irq", Some("1"), Some("2")),
                change("nics.eth1.mtu", None, Some("1500")),
                change("nics.eth1.name", None, Some("eth1")),
                change("sysctls.net.a.value", Some("1"), Some("2")),
            ]
        );
        assert_eq!(changes(before, before), []);
        assert_eq!(changes("", "no json"), []);
    }
}
