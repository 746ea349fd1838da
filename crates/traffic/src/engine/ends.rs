//! Context of a run at both ends, over all its rounds: placement, CPU, evidence, warnings.

use std::collections::BTreeMap;

use model::{
    CpuId, CpuSet, Reading, Warning,
    measure::{BothCpu, BothEvidence, EndCpu, EndPlacement, Moved, Placement, Wait},
};

use super::{assignments::Assignments, conduct::MeasuredWindow, worker_pool::ThreadReport};
use crate::{
    control::message::{PeerReport, Ready, Test},
    host::{self, CounterSnapshot},
};

/// One round without its samples.
#[derive(Debug)]
pub struct Ended {
    pub ready: Ready,
    pub course: MeasuredWindow,
    pub seen: ThreadReport,
    pub report: Option<PeerReport>,
    /// Settings that could not be applied.
    pub warnings: Vec<Warning>,
}

impl Ended {
    fn context(&self) -> RoundContext<'_> {
        RoundContext {
            ready: &self.ready,
            snapshots: &self.course.snapshots,
            seen: &self.seen,
            report: self.report.as_ref(),
            warnings: &self.warnings,
        }
    }
}

/// Context of one round.
#[derive(Debug, Clone, Copy)]
pub struct RoundContext<'a> {
    pub ready: &'a Ready,
    /// Marks before and after the window.
    pub snapshots: &'a (CounterSnapshot, CounterSnapshot),
    pub seen: &'a ThreadReport,
    pub report: Option<&'a PeerReport>,
    /// Settings that could not be applied.
    pub warnings: &'a [Warning],
}

/// The rounds so far, in bounded memory.
#[derive(Debug, Default)]
pub struct Ends {
    local: EndPlacement,
    peer: EndPlacement,
    local_migrations: Option<Reading<u64>>,
    peer_migrations: Option<Reading<u64>>,
    local_cpu: Option<EndCpu>,
    peer_cpu: Option<Reading<EndCpu>>,
    evidence: BothEvidence,
    warnings: Vec<Warning>,
    local_busy: BTreeMap<CpuId, u64>,
    peer_busy: BTreeMap<CpuId, u64>,
}

impl Ends {
    pub fn of<'a>(rounds: impl Iterator<Item = &'a Ended>) -> Self {
        let mut all = Self::default();
        rounds.for_each(|r| all.add(r));
        all
    }

    pub fn add(&mut self, round: &Ended) {
        self.add_context(round.context());
    }

    /// Adds the context of a round.
    pub fn add_context(&mut self, round: RoundContext<'_>) {
        let RoundContext { ready, snapshots, seen, report, warnings } = round;
        let here = host::between(&snapshots.0, &snapshots.1);
        self.add_local_ran_on(&seen.ran_on);
        add(&mut self.local.received_on, &seen.received_on);
        add(&mut self.local.napi_ids, &seen.napi_ids);
        plus(&mut self.local_migrations, here.extras.migrations, u64::saturating_add);
        self.local_cpu = Some(match self.local_cpu.take() {
            None => here.cpu,
            Some(sum) => host::added(sum, here.cpu),
        });
        add(&mut self.evidence.local, &here.moved);
        add(&mut self.local_busy, &here.extras.busy_ns);
        self.peer.pinned.clone_from(&ready.pinned);
        self.peer.why.clone_from(&ready.why);
        self.peer.allowed.clone_from(&ready.allowed);
        self.add_report(report);
        let server = report.iter().flat_map(|r| &r.warnings).cloned().map(at_server);
        for w in warnings.iter().chain(&seen.warnings).cloned().chain(server) {
            if !self.warnings.contains(&w) {
                self.warnings.push(w);
            }
        }
    }

    fn add_report(&mut self, report: Option<&PeerReport>) {
        let (migrations, cpu) = match report {
            Some(r) => (r.migrations.clone(), r.cpu.clone()),
            None => (Reading::absent(SILENT), Reading::absent(SILENT)),
        };
        plus(&mut self.peer_migrations, migrations, u64::saturating_add);
        plus(&mut self.peer_cpu, cpu, host::added);
        if let Some(r) = report {
            add(&mut self.peer.ran_on, &r.ran_on);
            add(&mut self.peer.received_on, &r.received_on);
            add(&mut self.peer.napi_ids, &r.napi_ids);
            add(&mut self.evidence.peer, &r.moved);
            add(&mut self.peer_busy, &r.busy_ns);
        }
    }

    /// Samples by CPU of the client thread, if they are not counted in [`ThreadReport::ran_on`].
    pub fn add_local_ran_on(&mut self, ran_on: &BTreeMap<CpuId, u64>) {
        add(&mut self.local.ran_on, ran_on);
    }

    /// Placement of both ends.
    pub fn placement(&self, assignments: &Assignments, same_host: bool) -> Placement {
        let local = EndPlacement {
            pinned: assignments.cpus.clone(),
            why: assignments.why.clone(),
            allowed: assignments.allowed.clone(),
            migrations: self.local_migrations.clone().unwrap_or_default(),
            ..self.local.clone()
        };
        let migrations = self.peer_migrations.clone().unwrap_or_default();
        Placement { local, peer: EndPlacement { migrations, ..self.peer.clone() }, same_host }
    }

    /// CPU time of both ends, total and per unit; `units` gives the number of units in an end's
    /// window.
    pub fn cpu(&self, units: impl Fn(&EndCpu) -> u64) -> BothCpu {
        let share = |cpu: EndCpu| {
            let units = units(&cpu);
            host::per_unit(cpu, units)
        };
        let local = self.local_cpu.clone().unwrap_or_else(|| {
            let now = CounterSnapshot::take(&[], &probe::Root::live());
            host::between(&now, &now).cpu
        });
        let peer = self.peer_cpu.clone().unwrap_or_default();
        BothCpu { local: share(local), peer: peer.map(share) }
    }

    /// Kernel counters that changed at both ends.
    pub fn evidence(&self) -> BothEvidence {
        self.evidence.clone()
    }

    /// Warnings of both ends, without duplicates.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.clone()
    }

    /// Warnings on CPU time that other tasks took on the placement's CPUs.
    pub fn others(&self, placement: &Placement) -> Vec<Warning> {
        let (client, server) = (&placement.local.pinned, &placement.peer.pinned);
        if placement.same_host && client.iter().any(|c| server.contains(c)) {
            // On one host, each end is the other's other task.
            return vec![];
        }
        let client =
            self.local_cpu.as_ref().and_then(|cpu| others("client", client, &self.local_busy, cpu));
        let peer = self.peer_cpu.as_ref().and_then(Reading::known);
        let server = peer.and_then(|cpu| others("server", server, &self.peer_busy, cpu));
        client.into_iter().chain(server).collect()
    }

    /// Warns of datagrams lost for lack of receive buffer; `client` and `server` say who receives.
    pub fn no_room(&self, lost: u64, same_host: bool, client: bool, server: bool) -> Vec<Warning> {
        let of = |moved: &Moved| {
            let sum = |counter: &str| {
                ["Udp", "Udp6"].iter().fold(0u64, |all, protocol| {
                    let n = moved.get(&format!("{protocol}.{counter}")).copied();
                    all.saturating_add(n.unwrap_or(0))
                })
            };
            match (sum("RcvbufErrors"), sum("InErrors")) {
                (0, 0) => None,
                (0, n) => Some((n, false)),
                (n, _) => Some((n, true)),
            }
        };
        if lost == 0 {
            return vec![];
        }
        let (here, there) = (&self.evidence.local, &self.evidence.peer);
        let client = client.then(|| of(here)).flatten().map(|drops| ("client", drops));
        let server = server.then(|| of(there)).flatten().map(|drops| ("server", drops));
        // On one host both counters may be the same kernel's.
        let server = server.filter(|(_, drops)| !same_host || client.is_none_or(|n| n.1 != *drops));
        let say = |(end, (dropped, buffer_full)): (&str, _)| Warning::DatagramsDropped {
            lost,
            end: end.into(),
            dropped,
            buffer_full,
        };
        client.into_iter().chain(server).map(say).collect()
    }

    /// Warns if both ends spin on one CPU: each waits for the other's time slice.
    pub fn spinning_on_one_cpu(&self, test: &Test, wait: Wait, same_host: bool) -> Option<Warning> {
        let shared = same_host && self.peer.pinned.iter().any(|c| test.local_cpus.contains(*c));
        let spins = [wait, test.wait].contains(&Wait::Spin);
        (shared && spins).then_some(Warning::SpinningOnSharedCpu)
    }
}

/// Share of the window from which other tasks' CPU time is reported; it must also exceed a minimum,
/// since `/proc/stat` counts in ticks.
const OTHERS_SHARE: f64 = 0.1;
const OTHERS_NS: u64 = 200_000_000;

fn others(
    end: &str,
    pinned: &[CpuId],
    busy: &BTreeMap<CpuId, u64>,
    cpu: &EndCpu,
) -> Option<Warning> {
    let cpus: CpuSet = pinned.iter().copied().collect();
    let all = cpus.iter().map(|c| busy.get(&c).copied()).sum::<Option<u64>>()?;
    let ns = all.saturating_sub(cpu.threads_ns.get()?);
    let share = ns as f64 / (cpu.window_ns.0.max(1) as f64 * cpus.iter().count().max(1) as f64);
    (share >= OTHERS_SHARE && ns >= OTHERS_NS).then(|| Warning::OthersOnCpus {
        end: end.into(),
        cpus,
        share: share.min(1.0),
    })
}

/// Marks a warning as the server's.
pub fn at_server(warning: Warning) -> Warning {
    Warning::AtServer(Box::new(warning))
}

const SILENT: &str = "the server did not report";

/// Number of units at a rate: each end's snapshots enclose the window and are slightly longer.
pub fn at_rate(per_s: f64) -> impl Fn(&EndCpu) -> u64 {
    move |cpu| (per_s * cpu.window_ns.0 as f64 / 1e9).round() as u64
}

/// The sum; known only if every part is known.
pub fn sum(parts: impl Iterator<Item = Reading<u64>>) -> Reading<u64> {
    let mut all = None;
    parts.for_each(|p| plus(&mut all, p, u64::saturating_add));
    all.unwrap_or_default()
}

/// Adds a part to such a sum.
fn plus<T>(sum: &mut Option<Reading<T>>, more: Reading<T>, add: impl FnOnce(T, T) -> T) {
    *sum = Some(match sum.take() {
        None => more,
        Some(sum) => sum.and_then(|a| more.map(|b| add(a, b))),
    });
}

fn add<K: Ord + Clone>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (k, n) in from {
        let sum = to.entry(k.clone()).or_default();
        // A server may send any number: saturate.
        *sum = sum.saturating_add(*n);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use model::Nanos;

    use super::*;

    fn cpu(threads_ns: u64) -> EndCpu {
        let none = || Reading::absent("not read");
        EndCpu {
            window_ns: Nanos(2_000_000_000),
            threads_ns: Reading::Known(threads_ns),
            threads_user_ns: none(),
            threads_system_ns: none(),
            process_ns: none(),
            host_ns: Reading::absent("not read"),
            host_busy_per_unit_ns: Reading::absent("not read"),
            threads_per_unit_ns: Reading::absent("not read"),
            voluntary_switches: none(),
            involuntary_switches: none(),
        }
    }

    #[test]
    fn others_on_the_pinned_cpus_are_reported_with_their_share() {
        let busy = BTreeMap::from([(CpuId(0), 900_000_000), (CpuId(1), 1_900_000_000)]);
        let ends = Ends {
            local_cpu: Some(cpu(1_000_000_000)),
            local_busy: busy.clone(),
            peer_cpu: Some(Reading::Known(cpu(800_000_000))),
            peer_busy: busy,
            ..Ends::default()
        };
        let end = |n| EndPlacement { pinned: vec![CpuId(n)], ..EndPlacement::default() };
        let mut p = Placement { local: end(1), peer: end(0), same_host: true };
        // The client lost 0.9 of 2 s; the server's 0.1 s are too few ticks.
        let reported = ends.others(&p);
        assert!(
            reported.len() == 1
                && reported[0].to_string().starts_with("CPU contention at the client: other tasks"),
            "{reported:?}"
        );
        assert!(
            reported[0].to_string().contains("(1) for at least 45% of the time"),
            "{reported:?}"
        );
        p.peer = end(1);
        assert!(ends.others(&p).is_empty(), "the other end is no stranger");
        p.same_host = false;
        assert_eq!(ends.others(&p).len(), 2);
        p.local = end(7);
        assert_eq!(ends.others(&p).len(), 1, "a CPU that tells nothing is skipped");
    }

    #[test]
    fn loss_is_linked_to_a_full_buffer_at_the_end_that_receives() {
        let mut ends = Ends::default();
        ends.evidence.peer.insert("Udp.RcvbufErrors".into(), 40);
        ends.evidence.peer.insert("Udp.InErrors".into(), 40);
        let reported = ends.no_room(50, false, false, true);
        assert_eq!(reported.len(), 1);
        assert!(
            reported[0].to_string().starts_with("50 datagrams were lost; at the server 40 found"),
            "{reported:?}"
        );
        assert!(ends.no_room(50, false, true, false).is_empty(), "it sent");
        assert!(ends.no_room(0, false, true, true).is_empty(), "nothing was lost");
        ends.evidence.local = ends.evidence.peer.clone();
        assert_eq!(ends.no_room(50, true, true, true).len(), 1, "one kernel's counter");
        assert_eq!(ends.no_room(50, false, true, true).len(), 2);
        ends.evidence.local = BTreeMap::from([("Udp6.InErrors".into(), 3)]);
        assert!(
            ends.no_room(5, false, true, false)[0].to_string().contains("dropped 3 (Udp.InErrors)")
        );
    }
}
