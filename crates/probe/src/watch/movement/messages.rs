//! Sends and receives of processes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{CpuId, Reading, measure::Transport, watch::Messages};

use super::super::comms::Comms;
use super::{MOST, held::Programs, text};
use crate::{
    Root,
    ask::sock_diag::{self, Listening},
    bpf::{
        double_buffer::Sums,
        messages::{CALLS, Calls, DATAGRAMS, Key, MessageCalls, NAME, UNIX, WANTED},
    },
    samples::{clock::monotonic_ns, local_ports, raw::Raw},
    watch::{
        ObserveWhen,
        duty_cycle::{self, DutyCycle, USUAL_NS},
    },
};

/// The most processes with a name lookup; the others have the name of the thread that called first.
const ASKED: usize = 100;

/// Where the kernel does not say from which port on it chooses: its own default.
const FIRST_CHOSEN: u16 = 32_768;

/// The programs, and the ports that were marked as services'.
#[derive(Debug)]
pub struct MessagesPart {
    pub programs: Programs<MessageCalls>,
    marked: BTreeSet<u16>,
    duty: DutyCycle,
    /// Share of the time before the last look in which they were attached.
    pub observed_share: f64,
}

impl MessagesPart {
    /// Attaches, if it is wanted.
    pub fn attach(asked: &Reading<()>, when: ObserveWhen, root: &Root, possible: &[CpuId]) -> Self {
        let listeners = sock_diag::listeners(root).map(|dump| dump.entries).unwrap_or_default();
        let marked = ports(&listeners);
        let attach = || {
            let first = local_ports::read(root).into_known().map_or(FIRST_CHOSEN, |p| p.first);
            let listening: Vec<u16> = marked.iter().copied().collect();
            MessageCalls::attach(possible.to_vec(), &listening, first)
        };
        let programs = match (asked, when) {
            (Reading::Known(()), ObserveWhen::Never) => {
                let why = Reading::absent("messages were not asked for");
                Programs::new((NAME, &WANTED), &why, attach)
            }
            _ => Programs::new((NAME, &WANTED), asked, attach),
        };
        Self { programs, marked, duty: DutyCycle::begin(when, monotonic_ns()), observed_share: 0.0 }
    }

    /// An interval begins, until `end`: attaches the programs again, if they were detached amid
    /// the last one.
    pub fn resume(&mut self, end: u64) {
        if let Some(programs) = self.programs.attached() {
            self.duty.resume(programs, monotonic_ns(), end);
        }
    }

    /// When to call [`Self::spare`].
    pub fn due(&self) -> Option<u64> {
        self.duty.due()
    }

    /// Detaches the programs for the rest of the interval if they have cost enough.
    pub fn spare(&mut self) {
        if let Some(programs) = self.programs.attached() {
            self.duty.look(programs, monotonic_ns());
        }
    }

    /// What was sent and received since the last look.
    pub fn look(&mut self, comms: &Comms, now: &Raw) -> Reading<Vec<Messages>> {
        let observed = self.duty.observed(monotonic_ns());
        self.observed_share = observed;
        let (calls, lost) = match self.programs.take(MessageCalls::take) {
            Ok(turn) => turn,
            Err(why) => return why,
        };
        if let Reading::Known(listeners) = &now.listeners {
            self.mark(ports(listeners));
        }
        let mut all = messages(&calls, lost);
        all.iter_mut().for_each(|m| m.observed_share = observed);
        for one in all.iter_mut().filter(|m| m.pid != 0).take(ASKED) {
            if let Some(name) = comms.of(one.pid) {
                one.name = name;
            }
        }
        Reading::Known(all)
    }

    /// Marks ports that listen now; those of other namespaces keep the mark that the program
    /// made.
    fn mark(&mut self, listening: BTreeSet<u16>) {
        let came: Vec<u16> = listening.difference(&self.marked).copied().collect();
        let went: Vec<u16> = self.marked.difference(&listening).copied().collect();
        let Some(programs) = self.programs.attached() else { return };
        // What cannot be marked now is tried again with the next look.
        let done = programs.mark(&came, true).and_then(|()| programs.mark(&went, false));
        if done.is_ok() {
            self.marked = listening;
        }
    }
}

impl duty_cycle::Part for MessageCalls {
    fn runs(&self) -> duty_cycle::Runs {
        self.cpus().unwrap_or_default()
    }

    fn ns_per_run(&self) -> Vec<f64> {
        CALLS.iter().map(|p| self.object.ns_per_run(p).unwrap_or(USUAL_NS)).collect()
    }

    fn pause(&mut self) {
        self.object.pause(&CALLS);
    }

    fn resume(&mut self) {
        self.object.resume();
    }
}

fn ports(listeners: &[Listening]) -> BTreeSet<u16> {
    listeners.iter().map(|l| l.address.port()).collect()
}

/// By process, port and transport, most calls first.
fn messages(calls: &HashMap<Key, Calls>, lost: u64) -> Vec<Messages> {
    let mut whole: BTreeMap<Key, Calls> = BTreeMap::new();
    for (key, calls) in calls.iter().filter(|(_, c)| c.sends + c.receives > 0) {
        let key = Key { shard: 0, ..*key };
        whole.entry(key).and_modify(|sum| sum.add(calls)).or_insert(*calls);
    }
    let mut all: Vec<Messages> = whole.iter().map(|(key, calls)| one(key, calls)).collect();
    all.sort_by_key(|m| (std::cmp::Reverse(m.sends + m.receives), m.pid));
    let rest: u64 = all.iter().skip(MOST).map(|m| m.sends + m.receives).sum();
    all.truncate(MOST);
    if rest + lost > 0 {
        let key = Key { pid: 0, port: 0, kind: 0, shard: 0 };
        let mut others = one(&key, &Calls { sends: rest + lost, ..Calls::default() });
        "others".clone_into(&mut others.name);
        others.port = Reading::absent("calls that are reported as one sum");
        others.received_elsewhere = Reading::absent("calls that are reported as one sum");
        all.push(others);
    }
    all
}

fn one(key: &Key, calls: &Calls) -> Messages {
    let transport = match key.kind {
        UNIX => Transport::Unix,
        DATAGRAMS => Transport::Udp,
        _ => Transport::Tcp,
    };
    Messages {
        pid: key.pid,
        name: text(&calls.name),
        transport,
        port: match (key.port, transport) {
            (0, Transport::Unix) => Reading::absent("a Unix socket has none"),
            (0, _) => Reading::absent(
                "the sockets are not connected, on ports that the kernel chose for them",
            ),
            (port, _) => Reading::Known(port),
        },
        sends: calls.sends,
        sent_bytes: calls.sent_bytes,
        receives: calls.receives,
        received_bytes: calls.received_bytes,
        exchanges: calls.exchanges,
        received_elsewhere: match (calls.receives - calls.unplaced.min(calls.receives), transport) {
            (_, Transport::Unix) => Reading::absent("a Unix socket receives no packets"),
            (0, _) if calls.receives > 0 => {
                Reading::absent("the kernel keeps no CPU for sockets that are not connected")
            }
            _ => Reading::Known(calls.elsewhere),
        },
        observed_share: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(sends: u64, receives: u64, unplaced: u64) -> Calls {
        Calls { sends, sent_bytes: sends * 1000, receives, unplaced, ..Calls::default() }
    }

    #[test]
    fn shards_are_one_sum_and_transports_are_not() {
        let key = |kind, shard| Key { pid: 7, port: 53, kind, shard };
        let all = messages(
            &HashMap::from([
                (key(0, 0), calls(10, 3, 0)),
                (key(0, 5), calls(20, 4, 0)),
                (key(DATAGRAMS, 5), calls(1, 2, 2)),
            ]),
            0,
        );
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!((all[0].sends, all[0].receives, all[0].sent_bytes), (30, 7, 30_000));
        assert_eq!(all[0].received_elsewhere, Reading::Known(0));
        assert_eq!(all[1].transport, Transport::Udp);
        assert!(!all[1].received_elsewhere.is_known());
    }

    #[test]
    fn calls_without_room_are_counted() {
        let key = |pid| Key { pid, port: 80, kind: 0, shard: 0 };
        let many = (1..=1100).map(|pid| (key(pid), calls(1, 1, 0))).collect();
        let all = messages(&many, 5);
        assert_eq!(all.len(), MOST + 1);
        assert_eq!((all[MOST].pid, all[MOST].sends), (0, 205));
    }
}
