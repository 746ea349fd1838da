//! Tests that a clear answer rests on evidence. On every golden host each piece of evidence is
//! removed in turn, and no rule may become clear by it.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use model::{Facts, Reading, Samples, finding::Diagnosis};
use serde_json::{Value, json};
use support::{Host, golden};

/// Lists that are empty on no host: an empty one means that nothing was read.
const READ_WHOLE: [&str; 5] =
    ["/facts/cpus", "/facts/numa_nodes", "/facts/nics", "/facts/idle_states", "/samples/cpus"];

/// Evidence with a substitute, and the substitute.
const SUBSTITUTED: [(&str, &str); 4] = [
    ("/samples/nics/*/queues", "ring_too_small"), // before 6.9: the interface's own counters
    ("/samples/nics/*/queues", "driver_starvation"), // the driver's own counters
    ("/samples/nics/*/driver_stats", "ring_too_small"), // a driver without: the same
    ("/facts/nics/*/coalesce/adaptive_rx", "coalescing_goal"), // asked, and the driver has none
];

/// Every value under `at`, by its path with list positions replaced by `*`: the kinds of evidence,
/// each with all its places.
fn kinds(value: &Value, place: &str, kind: &str, out: &mut BTreeMap<String, Vec<String>>) {
    if !kind.is_empty() {
        out.entry(kind.into()).or_default().push(place.into());
    }
    match value {
        Value::Object(map) => {
            for (k, v) in map {
                let k = k.replace('~', "~0").replace('/', "~1");
                kinds(v, &format!("{place}/{k}"), &format!("{kind}/{k}"), out);
            }
        }
        Value::Array(list) => {
            for (i, v) in list.iter().enumerate() {
                kinds(v, &format!("{place}/{i}"), &format!("{kind}/*"), out);
            }
        }
        _ => {}
    }
}

/// Deserializes one field, and diagnoses the host with it in the place of its own. With the whole host
/// deserialized or copied it takes many times as long.
macro_rules! with {
    ($host:expr, $half:expr, $field:expr, $value:expr, $($name:ident)*) => {
        match $field {
            $(stringify!($name) => {
                let new = serde_json::from_value($value).ok()?;
                let own = std::mem::replace(&mut $half($host)?.$name, new);
                let diagnosis = $host.diagnosis();
                $half($host)?.$name = own;
                Some(diagnosis)
            })*
            _ => None,
        }
    };
}

fn facts(host: &mut Host) -> Option<&mut Facts> {
    Some(&mut host.facts)
}

fn samples(host: &mut Host) -> Option<&mut Samples> {
    match &mut host.samples {
        Reading::Known(samples) => Some(samples),
        _ => None,
    }
}

/// The diagnosis of the host with one field of its facts or samples replaced.
fn with_field(host: &mut Host, half: &str, field: &str, value: Value) -> Option<Diagnosis> {
    if half == "facts" {
        with!(host, facts, field, value, host cpus caches idle_states numa_nodes nics namespaces irqs
            softnet sysctls tuners processes listeners storage memory_bytes)
    } else {
        with!(host, samples, field, value, cpus cpu_changes irqs protocols sockstat nics nic_changes threads conntrack vmstat tcp_states listeners grew_in udp_sockets connections cgroups pressure drops)
    }
}

/// The diagnosis of the host without the values at these places. Each becomes missing with a reason,
/// else leaves its map, else becomes an empty list. `None` where the model cannot express that it was
/// not read.
fn without(host: &mut Host, tree: &Value, kind: &str, places: &[String]) -> Option<Diagnosis> {
    let mut parts = kind.split('/').skip(1);
    let (half, field) = (parts.next()?, parts.next()?);
    let from = format!("/{half}/{field}");
    let mut edited = |edit: &dyn Fn(&mut Value, &str) -> Option<()>| {
        let mut less = tree.pointer(&from)?.clone();
        for p in places {
            edit(&mut less, p.strip_prefix(&from)?)?;
        }
        with_field(host, half, field, less)
    };
    let by =
        |new: Value| move |v: &mut Value, p: &str| v.pointer_mut(p).map(|at| *at = new.clone());
    let remove = |v: &mut Value, p: &str| {
        let (parent, key) = p.rsplit_once('/')?;
        let key = key.replace("~1", "/").replace("~0", "~");
        v.pointer_mut(parent)?.as_object_mut()?.remove(&key).map(drop)
    };
    let missing = edited(&by(json!({"absent": "taken away by the test"})));
    let removed = missing.or_else(|| edited(&remove));
    removed.or_else(|| READ_WHOLE.contains(&kind).then(|| edited(&by(json!([])))).flatten())
}

/// The skipped subjects by rule.
fn open(d: &Diagnosis) -> BTreeSet<(&str, &str)> {
    d.skipped.iter().map(|n| (n.rule.as_str(), n.why.as_str())).collect()
}

/// Rules that newly say "passed" and skip nothing new.
fn became_clear(before: &Diagnosis, after: &Diagnosis) -> Vec<String> {
    let was = |rule: &str| before.passed.iter().any(|c| c.rule == rule);
    let new: BTreeSet<&str> = open(after).difference(&open(before)).map(|o| o.0).collect();
    let now = after.passed.iter().filter(|c| !was(&c.rule) && !new.contains(c.rule.as_str()));
    now.map(|c| format!("{}: {}", c.rule, c.because)).collect()
}

/// For each rule some hosts where it finds something or cannot judge, and the whole hosts.
fn folders() -> Vec<PathBuf> {
    let list = |p: PathBuf| -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> =
            fs::read_dir(p).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
        all.sort();
        all
    };
    let starts =
        |p: &PathBuf, with: &str| p.file_name().unwrap().to_str().unwrap().starts_with(with);
    let some = |p: PathBuf| -> Vec<PathBuf> {
        if starts(&p, "_whole") {
            return list(p);
        }
        let fires = list(p.clone()).into_iter().filter(|c| starts(c, "fires")).take(2);
        let unknown = list(p).into_iter().filter(|c| starts(c, "unknown")).take(1);
        fires.chain(unknown).collect()
    };
    list(golden()).into_iter().flat_map(some).collect()
}

/// Tests one golden host with each kind of evidence removed; returns their number.
fn unfounded(folder: &Path) -> (usize, Vec<String>) {
    let mut full = Host::of(folder);
    let before = full.diagnosis();
    let tree = json!({"facts": full.facts, "samples": full.samples});
    let mut all = BTreeMap::new();
    kinds(&tree, "", "", &mut all);
    let (mut taken, mut found) = (0, vec![]);
    for (kind, places) in &all {
        let Some(after) = without(&mut full, &tree, kind, places) else { continue };
        taken += 1;
        let substituted = |said: &String| {
            let mut own = SUBSTITUTED.iter().filter(|s| s.0 == kind);
            own.any(|s| said.starts_with(s.1))
        };
        let cleared = became_clear(&before, &after);
        for rule in cleared.into_iter().filter(|r| !substituted(r)) {
            found.push(format!("{}: without {kind}: {rule}", folder.display()));
        }
    }
    assert_eq!(full.diagnosis(), before, "{}: each value was put back", folder.display());
    (taken, found)
}

#[test]
fn no_evidence_taken_away_makes_a_rule_clear() {
    let all = folders();
    let judge = |part: Vec<PathBuf>| part.iter().map(|p| unfounded(p)).collect::<Vec<_>>();
    let (first, second): (Vec<_>, Vec<_>) =
        all.into_iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let paths = |part: Vec<(usize, PathBuf)>| part.into_iter().map(|p| p.1).collect::<Vec<_>>();
    let results = std::thread::scope(|s| {
        let other = s.spawn(|| judge(paths(second)));
        let mut own = judge(paths(first));
        own.extend(other.join().unwrap());
        own
    });
    let taken: usize = results.iter().map(|r| r.0).sum();
    let list: Vec<String> = results.into_iter().flat_map(|r| r.1).collect();
    assert!(list.is_empty(), "{} of {taken}:\n{}", list.len(), list.join("\n"));
    assert!(taken > 10_000, "only {taken} pieces could be taken away");
}
