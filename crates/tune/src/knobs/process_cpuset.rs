//! `process.PID.cpuset`: CPUs and memory nodes of a process's control group. The group limits all
//! its threads, including later ones, whatever affinity they request.

mod group;

use model::{
    CpuSet,
    knob::Target,
    tune::{AtStake, Disruption, Impact},
};

use crate::{
    Host, TuneError,
    knob::{Kind, Knob, PlanContext, Refusal, Undone, cannot, cpus_of, ended, usage},
    need::Need,
    phase::Phase,
};
use group::Group;

/// **Source**: `cpuset.cpus` and `cpuset.mems` of its cgroup, v1 or v2. A process in the root,
/// which cannot be limited, gets a group for itself. A process in a group (a container, a systemd
/// unit) stays there, and the group is limited.
pub const KIND: Kind = Kind {
    name: "process_cpuset",
    spelling: "process.PID.cpuset='CPUS' or 'CPUS mems NODES'",
    parse: |target| match target {
        Target::Process(pid, "cpuset") if pid > 0 => Some(Box::new(ProcessCpuset { pid })),
        _ => None,
    },
};

struct ProcessCpuset {
    pid: u32,
}

/// Passes over the processes, since new ones may start while others are moved.
const PASSES: u32 = 20;

/// CPUs, and memory nodes if the value names some.
fn wanted(value: &str) -> Result<(CpuSet, Option<CpuSet>), Refusal> {
    match value.split_whitespace().collect::<Vec<_>>().as_slice() {
        [cpus] => Ok((cpus_of(cpus)?, None)),
        [cpus, "mems", nodes] => {
            let nodes =
                nodes.parse().or_else(|_| usage(format!("{nodes:?} is no list of nodes")))?;
            Ok((cpus_of(cpus)?, Some(nodes)))
        }
        _ => usage(format!("{value:?} is not CPUS or 'CPUS mems NODES'")),
    }
}

/// Creates a group's directory and sets what the kernel requires before a process joins.
fn make(host: &Host, group: &Group, folder: &str) -> Result<(), TuneError> {
    host.make_folder(folder)?;
    if !group.v2 {
        let mems = host.text(&format!("{}/cpuset.mems", group.mount))?;
        host.write(&format!("{folder}/cpuset.mems"), mems.trim())?;
    }
    Ok(())
}

/// Moves the group's processes to the root and removes the group.
fn dissolve(host: &Host, group: &Group, folder: &str) -> Result<(), TuneError> {
    for _ in 0..PASSES {
        for member in Group::members(host, folder) {
            match host.write(&format!("{}/cgroup.procs", group.mount), &member.to_string()) {
                Ok(()) | Err(TuneError::Absent(_)) => {}
                Err(e) => return Err(e),
            }
        }
        match host.remove_folder(folder) {
            Err(TuneError::Kernel { errno: libc::EBUSY, .. }) => {}
            other => return other,
        }
    }
    Err(TuneError::Environment(format!("{folder}: processes start in it all the time")))
}

/// Writes a set back; the empty set is written as a line end, since writing no bytes has no effect.
fn set(host: &Host, path: &str, value: &Option<String>) -> Result<(), TuneError> {
    let Some(value) = value else { return Ok(()) };
    match host.text(path) {
        Ok(now) if now.trim() == value => Ok(()),
        Err(TuneError::Absent(_)) => Ok(()),
        _ => host.write(path, if value.is_empty() { "\n" } else { value }),
    }
}

/// Restores everything except the threads' own affinities.
fn put_back(host: &Host, pid: u32, old: &Group) -> Result<(), TuneError> {
    if old.is_root() {
        let own = old.own_folder(pid);
        if host.root().exists(&own) {
            dissolve(host, old, &own)?;
        }
    } else {
        set(host, &old.file("cpuset.cpus"), &old.cpus)?;
        set(host, &old.file("cpuset.mems"), &old.mems)?;
    }
    for folder in old.off.iter().rev() {
        let path = format!("{folder}/cgroup.subtree_control");
        if host.text(&path).is_ok_and(|on| on.split_whitespace().any(|c| c == "cpuset")) {
            host.write(&path, "-cpuset")?;
        }
    }
    Ok(())
}

impl Knob for ProcessCpuset {
    fn target(&self) -> Target<'_> {
        Target::Process(self.pid, "cpuset")
    }

    /// After the affinities: leaving a group restores the affinities that threads had in it.
    fn phase(&self) -> Phase {
        Phase::Cgroup
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        Group::of(host, self.pid).map(|g| g.text())
    }

    fn show(&self, exact: &str) -> String {
        let Some(group) = Group::parsed(exact) else { return exact.trim().to_owned() };
        let some = |set: &Option<String>| match set.as_deref() {
            None | Some("") => "all".to_owned(),
            Some(set) => set.to_owned(),
        };
        let name = if group.is_root() { "/" } else { &group.path };
        format!("{} mems {} in {name}", some(&group.cpus), some(&group.mems))
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        old: &str,
        value: &str,
    ) -> Result<String, Refusal> {
        let (first, rest) = value.split_once(' ').unwrap_or((value, ""));
        let (cpus, mems) = wanted(&format!("{} {rest}", context.cpus(first)?))?;
        if cpus.is_empty() || mems.as_ref().is_some_and(CpuSet::is_empty) {
            return usage("a process needs a CPU and a node");
        }
        context.online(&cpus)?;
        let node = |n: u32| context.facts.numa_nodes.iter().any(|f| f.id.0 == n);
        if let Some(none) = mems.iter().flat_map(CpuSet::iter).find(|n| !node(n.0)) {
            return cannot(format!("there is no node {none}"));
        }
        if Group::parsed(old).is_none() {
            return cannot("its control group makes no sense");
        }
        Ok(match mems {
            Some(mems) => format!("{cpus} mems {mems}"),
            None => cpus.to_string(),
        })
    }

    fn needs(&self, host: &Host) -> Vec<Need> {
        let Ok(group) = Group::of(host, self.pid) else { return vec![] };
        match group.is_root() {
            // The process gets a new group below the root.
            true => vec![Need::File(group.mount)],
            false => vec![Need::File(format!("{}/cpuset.cpus", group.folder()))],
        }
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let pid = self.pid;
        let (cpus, mems) =
            wanted(value).map_err(|r| TuneError::Usage(format!("{}: {}", self.target(), r.why)))?;
        let group = Group::of(host, pid)?;
        for folder in &group.off {
            host.write(&format!("{folder}/cgroup.subtree_control"), "+cpuset")?;
        }
        let folder = if group.is_root() { group.own_folder(pid) } else { group.folder() };
        if group.is_root() {
            make(host, &group, &folder)?;
        }
        host.write(&format!("{folder}/cpuset.cpus"), &cpus.to_string())?;
        if let Some(mems) = mems {
            host.write(&format!("{folder}/cpuset.mems"), &mems.to_string())?;
        }
        if group.is_root() {
            host.write(&format!("{folder}/cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }

    fn verify(&self, written: &str, back: &str) -> bool {
        let (Ok((cpus, mems)), Some(group)) = (wanted(written), Group::parsed(back)) else {
            return false;
        };
        let same = |text: &Option<String>, set: &CpuSet| {
            text.as_ref().and_then(|t| t.parse::<CpuSet>().ok()).as_ref() == Some(set)
        };
        !group.is_root()
            && same(&group.cpus, &cpus)
            && mems.is_none_or(|mems| same(&group.mems, &mems))
    }

    fn undo(&self, host: &Host, old: &str, _: &str) -> Result<Undone, TuneError> {
        let pid = self.pid;
        let Some(saved) = Group::parsed(old) else {
            return Err(TuneError::Environment(format!(
                "{}: the journal makes no sense",
                self.target()
            )));
        };
        put_back(host, pid, &saved)?;
        match Group::of(host, pid) {
            // Its group, if that still exists, was restored.
            Err(TuneError::Absent(_)) => Ok(Undone::Lost(ended(pid))),
            Ok(now) if now.start != saved.start => Ok(Undone::Lost(ended(pid))),
            Ok(now) if now == saved => Ok(Undone::Restored(now.text())),
            Ok(now) => Err(TuneError::Environment(format!(
                "{}: was {}, and after putting it back reads {}",
                self.target(),
                self.show(old),
                self.show(&now.text())
            ))),
            Err(e) => Err(e),
        }
    }

    fn lost(&self, host: &Host, old: &str) -> Option<String> {
        let pid = self.pid;
        let saved = Group::parsed(old)?;
        match Group::of(host, pid) {
            Err(TuneError::Absent(_)) => Some(ended(pid)),
            now => now.is_ok_and(|now| now.start != saved.start).then(|| ended(pid)),
        }
    }

    fn undo_text(&self) -> String {
        "the group is given its old sets, or the processes go back to the root and the group away; \
         memory that moved stays where it is"
            .into()
    }

    fn impact(&self, _: &PlanContext<'_>, old: &str, new: &str) -> Impact {
        let Some(group) = Group::parsed(old) else { return Impact::none() };
        let mut impact = match new.contains("mems") {
            true => Impact::of(
                Disruption::BriefStall,
                "cgroup v2 moves the group's memory to the nodes",
            ),
            false => Impact::none(),
        };
        if !group.is_root() {
            impact.also.push(AtStake::ProcessesOfGroup { group: group.path.to_string() });
        }
        impact
    }

    fn sets(&self) -> &'static str {
        "process affinity and memory placement"
    }

    fn owner(&self, context: &PlanContext<'_>) -> String {
        let pid = self.pid;
        let unit =
            context.facts.processes.iter().find(|p| p.pid == pid).and_then(|p| p.unit.known());
        unit.map_or(String::new(), |u| format!("systemd unit {u} (AllowedCPUs=)"))
    }

    /// Threads of a group lose affinities that the group does not allow.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        let pid = self.pid;
        let mut all = vec![pid];
        if let Ok(group) = Group::of(host, pid)
            && !group.is_root()
        {
            all.extend(Group::members(host, &group.folder()).iter().filter(|p| **p != pid));
        }
        all.into_iter().map(|p| format!("process.{p}.affinity")).collect()
    }
}
