//! Placement by class, `cpus = "classes"`: chooses a CPU of this host for each class. Pure: facts
//! in, a complete specification out. So a record names the CPUs, and resuming it uses the same
//! ones.

use std::time::Duration;

use model::{CpuSet, Facts, prove::ProveNote};

use crate::{
    Experiment, ProveError,
    cpu_class::{CpuClass, CpuClassifier},
    experiment::{Budget, FEWEST_BLOCKS},
    spec::{Assignment, CLASSES, PlacementSpec, Spec, cpu_set, cpus},
    workload::run_takes,
};

/// The time of a run of ours beyond its window: starting, connecting, reading both ends.
const AROUND_A_RUN: Duration = Duration::from_millis(200);

/// A column of the matrix: the other end's CPUs, which classes are relative to.
struct Column {
    name: String,
    cpus: CpuSet,
    why: &'static str,
}

/// Replaces classes by assigned CPUs. `allowed` are the CPUs that this process may use.
///
/// # Errors
/// What cannot be placed, with its key.
pub fn resolve(spec: &mut Spec, facts: &Facts, allowed: &CpuSet) -> Result<(), ProveError> {
    let Some(mut placement) = spec.placement.clone().filter(PlacementSpec::by_class) else {
        return Ok(());
    };
    let bad = |why: String| ProveError::Spec(format!("placement.{why}"));
    let classifier = CpuClassifier::new(&facts.cpus, &facts.numa_nodes, allowed);
    let columns = columns(&placement, facts, &classifier).map_err(bad)?;
    // Listed CPUs are each tried, beside one CPU of each class of the other end.
    let (assignments, left_out) = match placement.cpus.trim() == CLASSES {
        true => fit(
            assignments(&columns, &classifier, facts).map_err(bad)?,
            most(spec),
            &spec_budget(spec),
        ),
        false => (vec![], None),
    };
    let tried = |c: &&Column| assignments.iter().any(|(_, s)| s.beside == c.name);
    let used = |c: &&Column| assignments.is_empty() || tried(c);
    let names: Vec<String> = columns.iter().filter(used).map(|c| c.name.clone()).collect();
    let whys = columns.iter().filter(used).map(|c| format!("{}: {}", c.name, c.why));
    match (&placement.irq_cpus, &placement.peer_cpus) {
        (Some(_), _) => placement.irq_cpus = Some(names.join(",")),
        (None, Some(_)) => placement.peer_cpus = Some(names.join(",")),
        (None, None) => {}
    }
    placement.beside = whys.collect();
    placement.assignments = assignments.into_iter().map(|(_, assignment)| assignment).collect();
    placement.left_out = left_out;
    spec.placement = Some(placement);
    Ok(())
}

/// Checks that the listed CPUs exist and are online. The server's may belong to another host.
///
/// # Errors
/// The first that is not, with its key and the CPUs that are.
pub fn there(placement: &PlacementSpec, facts: &Facts) -> Result<(), ProveError> {
    let online: CpuSet =
        facts.cpus.iter().filter(|c| c.online.get() != Some(false)).map(|c| c.id).collect();
    if online.is_empty() {
        return Ok(());
    }
    let listed = [("cpus", Some(&placement.cpus)), ("irq_cpus", placement.irq_cpus.as_ref())];
    for (key, text) in listed.into_iter().filter_map(|(key, text)| Some((key, text?))) {
        let asked = cpu_set(key, text).unwrap_or_default();
        if let Some(cpu) = asked.difference(&online).first() {
            let is = match facts.cpus.iter().any(|c| c.id == cpu) {
                true => format!("CPU {cpu} is offline"),
                false => format!("this host has no CPU {cpu}"),
            };
            return Err(ProveError::Spec(format!("placement.{key}: {is}; online are {online}")));
        }
    }
    Ok(())
}

fn columns(
    p: &PlacementSpec,
    facts: &Facts,
    classifier: &CpuClassifier<'_>,
) -> Result<Vec<Column>, String> {
    let listed = |key: &str, text: &str, why: &'static str| -> Result<Vec<Column>, String> {
        let each = cpus(key, text).map_err(|e| e.replace("placement.", ""))?;
        let one = |name: String| {
            let cpus = name.parse().map_err(|e| format!("{key}: {e}"))?;
            Ok(Column { name, cpus, why })
        };
        each.into_iter().map(one).collect()
    };
    let homes = |local, now: &CpuSet, whys: [&'static str; 3]| -> Vec<Column> {
        let homes = classifier.homes(local, now).into_iter();
        homes
            .map(|(class, cpu)| Column {
                name: cpu.to_string(),
                cpus: CpuSet::from_iter([cpu]),
                why: match class {
                    CpuClass::OtherNode => whys[1],
                    CpuClass::FarthestNode => whys[2],
                    _ => whys[0],
                },
            })
            .collect()
    };
    let Some(nic) = &p.nic else {
        return match p.peer_cpus.as_deref() {
            Some(CLASSES) => {
                let whys = ["a CPU of the server", "another node", "the farthest node"];
                Ok(homes(None, &CpuSet::default(), whys))
            }
            Some(list) => listed("peer_cpus", list, "asked for"),
            None => Err("cpus = \"classes\": to what? nic = \"eth0\" says to the CPUs of its \
                         interrupts; peer_cpus to those of a server on this host"
                .into()),
        };
    };
    let found = facts.nics.iter().find(|n| n.name == *nic);
    let found = found.ok_or_else(|| format!("nic: no such interface: {nic}"))?;
    let now = interrupts(facts, nic);
    match p.irq_cpus.as_deref() {
        Some(CLASSES) => {
            let whys = match found.numa_node.get() {
                Some(_) => ["on the NIC's node", "on another node", "on the farthest node"],
                None => ["where interrupts are", "on another node", "on the farthest node"],
            };
            Ok(homes(found.numa_node.get(), &now, whys))
        }
        Some(list) => listed("irq_cpus", list, "asked for"),
        None if now.is_empty() => Err(format!(
            "nic: no interrupt is known to be a queue's of {nic}, so that there is nothing to stand \
             near to"
        )),
        None => Ok(vec![Column { name: now.to_string(), cpus: now, why: "where interrupts are" }]),
    }
}

/// The CPUs that take the interrupts of a NIC's queues.
fn interrupts(facts: &Facts, nic: &str) -> CpuSet {
    let of = |i: &&model::irq::Irq| i.nic.known().is_some_and(|n| n == nic) && !i.queues.is_empty();
    let irqs = facts.irqs.known().into_iter().flatten().filter(of);
    irqs.filter_map(|i| i.target().into_known())
        .fold(CpuSet::default(), |all, cpus| all.union(&cpus))
}

type Assignments = Vec<((usize, usize), Assignment)>;

/// The assigned CPUs of every column. Each has its column's number (second and later CPUs of a
/// class come after all columns) and its class's weight.
fn assignments(
    columns: &[Column],
    classifier: &CpuClassifier<'_>,
    facts: &Facts,
) -> Result<Assignments, String> {
    let mut assignments = Vec::new();
    for (number, column) in columns.iter().enumerate() {
        let known = |c| facts.cpus.iter().any(|k| k.id == c);
        if let Some(cpu) = column.cpus.iter().find(|c| !known(*c)) {
            return Err(format!("cpus = \"classes\": this host has no CPU {cpu} to stand near to"));
        }
        let (mut last, mut nth) = (None, 0);
        for (class, cpu) in classifier.classes(&column.cpus) {
            nth = if last == Some(class) { nth + 1 } else { 0 };
            last = Some(class);
            let word = match nth {
                0 => class.word().to_owned(),
                n => format!("{} no. {}", class.word(), n + 1),
            };
            let assignment = Assignment { class: word, cpu: cpu.0, beside: column.name.clone() };
            // A small budget gives up the second and later CPUs of a class before any column.
            assignments.push(((number + nth * columns.len(), class.weight()), assignment));
        }
    }
    match assignments.len() {
        0 | 1 => {
            let many = columns.iter().any(|c| c.cpus.len() > 1);
            let how = if many { "; irq_cpus = \"classes\" puts interrupts on one CPU" } else { "" };
            Err(format!(
                "cpus = \"classes\": {} to compare: {} CPU(s) may be used here, and stand to {}{how}",
                if assignments.is_empty() { "nothing" } else { "one class only" },
                classifier.len(),
                columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ")
            ))
        }
        _ => Ok(assignments),
    }
}

/// How many placements the budget holds; `None` where this is unknown before the first run.
fn most(spec: &Spec) -> Option<usize> {
    let each = 2 * FEWEST_BLOCKS;
    match Experiment::budget(spec)? {
        Budget::Runs(runs) => Some(runs / each),
        Budget::Time(time) => {
            let run = run_takes(spec)? + AROUND_A_RUN;
            Some((time.as_secs_f64() / (each as f64 * run.as_secs_f64())) as usize)
        }
    }
}

/// The option that would hold this many placements.
fn spec_budget(spec: &Spec) -> impl Fn(usize) -> String {
    let runs = spec.runs.is_some();
    let run = run_takes(spec).map(|r| (r + AROUND_A_RUN).as_secs_f64());
    move |cells| match (runs, run) {
        (false, Some(run)) => {
            format!("--budget {:.0}s", (run * (2 * FEWEST_BLOCKS * cells) as f64).ceil())
        }
        _ => format!("--runs {}", 2 * FEWEST_BLOCKS * cells),
    }
}

/// Keeps as many placements as the budget holds, at least two, which a comparison needs. Farther
/// columns go first, then classes; the note names them. A budget too small for two is refused
/// later, as for any experiment.
fn fit(
    assignments: Assignments,
    most: Option<usize>,
    holds: &dyn Fn(usize) -> String,
) -> (Assignments, Option<ProveNote>) {
    let all = assignments.len();
    let Some(most) = most.map(|m| m.max(2)).filter(|m| *m < all) else {
        return (assignments, None);
    };
    let mut ranked: Vec<(usize, usize)> = assignments.iter().map(|(rank, _)| *rank).collect();
    ranked.sort_unstable();
    ranked.truncate(most);
    let (kept, gone): (Assignments, Assignments) =
        assignments.into_iter().partition(|(rank, _)| ranked.contains(rank));
    let not_tried = gone
        .iter()
        .map(|(_, s)| format!("{} (CPU {}) beside {}", s.class, s.cpu, s.beside))
        .collect();
    let (held, option) = (kept.len(), holds(all));
    (kept, Some(ProveNote::PlacementsNotTried { held, all, option, not_tried }))
}

#[cfg(test)]
mod tests;
