//! CPU time of a server on this host: its processes' own time, read when a round's window begins
//! and after it ended. The time of other processes is not part of it.

use std::{
    cell::RefCell,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

use model::{Reading, Warning, measure::EndCpu, watch::SoftirqAccounting};
use probe::{
    Root,
    serving::{At, Serving, Spent},
    watch::accounting,
};

/// The server of a workload, found once somebody has spoken to it.
#[derive(Debug, Clone, Default)]
pub struct Server {
    found: RefCell<Option<Reading<Serving>>>,
}

/// The round that the server's CPU time is divided by.
pub struct Round<'a> {
    /// Whether the server is on this host.
    pub same_host: bool,
    /// The server's address, or its Unix socket's path.
    pub address: &'a str,
    /// Transactions per second over the window.
    pub per_s: f64,
    /// CPU time of this host in the window.
    pub cpu: &'a EndCpu,
}

/// CPU use of a round on this host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Took {
    /// The server's CPU time per transaction; `None` where unknown.
    pub server_ns: Option<f64>,
    /// How many CPUs neither the server nor our threads kept busy.
    pub others_cpus: Option<f64>,
    /// Why the server's CPU time is not known.
    pub why: Option<Warning>,
}

impl Server {
    /// Runs `measure`; reads the CPU time of the server's processes at both ends of the window,
    /// where they are known.
    pub fn watched<T>(
        &self,
        run: traffic::Run<'_>,
        measure: impl FnOnce(traffic::Run<'_>) -> T,
    ) -> (T, Option<(Spent, Spent)>) {
        let root = Root::live();
        let known = self.found.borrow().as_ref().and_then(|found| found.known().cloned());
        let Some(serving) = known.filter(|s| !s.is_gone(&root)) else {
            // Restarted: the new process is looked for after this round.
            let denied = matches!(*self.found.borrow(), Some(Reading::Denied(_)));
            if !denied {
                self.found.replace(None);
            }
            return (measure(run), None);
        };
        let looks = Mutex::new(vec![]);
        let look = || {
            let spent = serving.spent(&root);
            looks.lock().unwrap_or_else(PoisonError::into_inner).push(spent);
        };
        let done = measure(traffic::Run { around_window: Some(&look), ..run });
        let mut looks = looks.into_inner().unwrap_or_else(PoisonError::into_inner);
        // A repeated round has more readings; the last ones count.
        let last = looks.pop();
        (done, looks.pop().zip(last))
    }

    /// CPU use of a watched round.
    pub fn took(&self, looks: Option<(Spent, Spent)>, round: &Round<'_>) -> Took {
        if !round.same_host {
            return Took { why: Some(Warning::ServerElsewhere), ..Took::default() };
        }
        let Some((first, last)) = looks else {
            return Took { why: self.look_for(round.address), ..Took::default() };
        };
        let time = last.at_ns.saturating_sub(first.at_ns) as f64 / 1e9;
        let done = time * round.per_s;
        if done <= 0.0 {
            return Took::default();
        }
        let processes = last.since(&first) as f64;
        let softirqs = softirqs(round.cpu);
        let all = round.cpu.host_busy_per_unit_ns.known();
        let ours = round.cpu.threads_per_unit_ns.known();
        let server_ns = processes / done + softirqs / window_units(round);
        let others = all.zip(ours).map(|(all, ours)| (all - ours - server_ns) * round.per_s / 1e9);
        Took { server_ns: Some(server_ns), others_cpus: others.map(|n| n.max(0.0)), why: None }
    }

    /// Looks for the server's processes, or says why they cannot be found.
    fn look_for(&self, address: &str) -> Option<Warning> {
        let mut found = self.found.borrow_mut();
        let found = found.get_or_insert_with(|| find(&Root::live(), address));
        let denied = matches!(found, Reading::Denied(_));
        found.why_not().map(|why| Warning::ServerNotSeen { why: why.to_owned(), denied })
    }
}

/// The processes that listen at an address, or at a Unix socket's path.
pub fn find(root: &Root, address: &str) -> Reading<Serving> {
    match address.parse::<SocketAddr>() {
        Ok(at) => Serving::find(root, &At::Port(at.port())),
        Err(_) => {
            let path = address.strip_prefix("unix:").unwrap_or(address);
            Serving::find(root, &At::Path(path))
        }
    }
}

fn window_units(round: &Round<'_>) -> f64 {
    (round.per_s * round.cpu.window_ns.0 as f64 / 1e9).max(1.0)
}

/// Time of interrupts and softirqs of the whole host, where the kernel does not charge it to the
/// interrupted task. Elsewhere the tasks' own time includes it.
fn softirqs(cpu: &EndCpu) -> f64 {
    static TIMED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let timed = TIMED.get_or_init(|| {
        accounting::of_softirqs(&Root::live()).known() == Some(&SoftirqAccounting::IrqTime)
    });
    let Some(host) = cpu.host_ns.known().filter(|_| *timed) else { return 0.0 };
    ["softirq", "irq"].iter().filter_map(|state| host.get(*state)).sum::<u64>() as f64
}
