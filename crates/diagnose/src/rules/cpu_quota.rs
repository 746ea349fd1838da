//! 38: a cgroup uses up its CPU quota, and its tasks wait for the next period.

use model::{Confidence, Severity, samples::CgroupSample};

use crate::{
    Case, Rule,
    knob::advice,
    pressure,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

/// Catalogue number 38. No setting of the network moves this limit.
pub static RULE: Rule = Rule {
    id: "cpu_quota",
    number: 38,
    title: "a cgroup is throttled by its CPU quota",
    needs: &["CPU quotas and cpu.stat of the chosen processes' cgroups over a window"],
    explained_by: &[],
    judge,
};

/// Share of throttled periods that warns: `CPUThrottlingHigh` of the Kubernetes alerts.
const WARNS: f64 = 0.25;
/// Share below which it is noise. Our proposal.
const NOTED: f64 = 0.05;
/// Fewer periods (100 ms each by default) give no reliable share. Our proposal.
const FEW: u64 = 5;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let all = match case.samples().and_then(|s| need("CPU quotas of cgroups", &s.cgroups)) {
        Ok(all) => all,
        Err(missing) => return vec![missing.of("")],
    };
    if all.is_empty() {
        let whose = if case.facts.processes.is_empty() {
            "netwright itself has no CPU quota; --container, --unit, --name, --port or --pid choose a service"
        } else {
            "the chosen processes have no CPU quota"
        };
        return vec![settle("", case.samples().and_then(|s| clear(whose, [&s.cgroups])))];
    }
    all.iter().map(|cgroup| settle(&cgroup.path, one(case, cgroup))).collect()
}

fn one(case: &Case<'_>, cgroup: &CgroupSample) -> Result<Judgement, Missing> {
    let stat = format!("{}/cpu.stat", cgroup.folder);
    let cpus = *need(&format!("quota of {}", cgroup.path), &cgroup.quota_cpus)?;
    let periods = *need(&stat, &cgroup.periods)?;
    let throttled = *need(&stat, &cgroup.throttled_periods)?;
    let stopped_ns = *need(&stat, &cgroup.throttled_ns)?;
    let share = throttled as f64 / periods.max(1) as f64;
    if throttled > 0 && periods < FEW {
        return Err(Missing(format!("{stat}: only {periods} periods, too few for a share")));
    }
    if share < NOTED {
        let text = format!(
            "{}: throttled in {throttled} of {}",
            cgroup.path,
            text::plural(usize::try_from(periods).unwrap_or(usize::MAX), "period"),
        );
        return clear(text, [&cgroup.quota_cpus, &cgroup.periods, &cgroup.throttled_periods]);
    }
    let severity = if share >= WARNS { Severity::Warning } else { Severity::Info };
    let (who, command) = owner(case, cgroup);
    let mut draft = Draft::new(
        &cgroup.path,
        format!(
            "{who} used up its quota of {} in {} of the periods",
            quota(cpus),
            text::percent(share)
        ),
    )
    .weigh(severity, Confidence::High)
    .explain(
        "A cgroup that has used up its quota stands still until the next period begins (100 ms by \
         default). Requests that come meanwhile wait: throughput drops, and response times \
         have steps as long as the pause.",
    )
    .gain(Gain::Unblocks, "no waits for the next period")
    .show("quota", quota(cpus), format!("{}/cpu.max, cpu.cfs_quota_us", cgroup.folder))
    .show(format!("throttled periods {}", case.over()), format!("{throttled} of {periods}"), &stat)
    .show(
        format!("tasks stopped, all CPUs together, {}", case.over()),
        format!("{:.2} s", stopped_ns as f64 / 1e9),
        &stat,
    );
    let file = format!("{}/cpu.pressure", cgroup.folder);
    let waits = pressure::all(case).ok().and_then(|all| all.iter().find(|p| p.file == file));
    if let Some(waits) = waits {
        draft = draft.show_pressure(case, waits);
    }
    if cgroup.own {
        draft = draft.add(
            "This program is in the cgroup itself: figures that it measures have the pauses in them.",
        );
    }
    Ok(draft
        .change(advice(
            &quota(cpus),
            "a larger quota, or none",
            &command,
            "others on the host get less CPU time",
        ))
        .alone()
        .found())
}

/// A quota for people, to a hundredth of a CPU: `0.5 CPUs`.
fn quota(cpus: f64) -> String {
    format!("{} CPUs", (cpus * 100.0).round() / 100.0)
}

/// The throttled cgroup, and how to change its quota.
fn owner(case: &Case<'_>, cgroup: &CgroupSample) -> (String, String) {
    let inside = case.facts.processes.iter().filter(|p| cgroup.pids.contains(&p.pid));
    let mut names: Vec<String> =
        inside.clone().map(|p| format!("{} ({})", p.name, p.pid)).collect();
    if names.len() > 3 {
        let more = names.len() - 3;
        names.truncate(3);
        names.push(format!("{more} more"));
    }
    let who = if names.is_empty() { "this program".to_owned() } else { names.join(", ") };
    let last = cgroup.path.rsplit('/').next().unwrap_or_default();
    let container = inside
        .filter_map(|p| p.container.known())
        .find(|id| *id != "none" && last.contains(id.as_str()));
    let command = match container {
        Some(id) => format!(
            "{} update --cpus N {} (Kubernetes: resources.limits.cpu of the pod)",
            if last.starts_with("libpod") { "podman" } else { "docker" },
            id.get(..12).unwrap_or(id)
        ),
        None if last.ends_with(".service")
            || last.ends_with(".slice")
            || last.ends_with(".scope") =>
        {
            format!("systemctl set-property {last} CPUQuota=N%")
        }
        None => format!("the quota in {}", cgroup.folder),
    };
    (who, command)
}
