//! One end of a stream: the threads' flows, and the counters that other threads read.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use model::{
    Reading, Warning,
    measure::{Transport, ZeroCopy},
};

use super::{
    StreamShape,
    many::Many,
    receive::{self, ReceiveSocket},
    send::{self, Lane},
    shared_counts::Ledger,
    tcp_info::{self, Sum},
    zerocopy,
};
use crate::{
    control::message::Counters,
    engine::worker_pool::{Worker, WorkerPool},
    net::{data_flow::DataFlow, now_ns, options},
};

/// One end. Its sockets stay open until it is dropped.
#[derive(Debug)]
pub struct Side {
    pub shape: StreamShape,
    pub ledger: Ledger,
    flows: Vec<DataFlow>,
    greeting: Vec<u8>,
    threads: usize,
}

impl Side {
    /// One end with these flows, and warnings on settings that failed. A late `greeting` is
    /// answered.
    pub fn new(
        shape: StreamShape,
        flows: Vec<DataFlow>,
        threads: usize,
        greeting: Vec<u8>,
    ) -> (Self, Vec<Warning>) {
        let mut warnings = vec![];
        let mut warn = |why: Warning| {
            if !warnings.contains(&why) {
                warnings.push(why);
            }
        };
        for flow in &flows {
            options::prepare(&flow.socket, shape.wait).into_iter().for_each(&mut warn);
            if shape.zerocopy == Some(ZeroCopy::Msg) && shape.sends(flow.index) {
                let enabled = zerocopy::enable(&flow.socket);
                if let Err(e) = enabled {
                    warn(Warning::NoZerocopy { why: e.to_string() });
                }
            }
        }
        let ledger = Ledger::new(shape.connections());
        (Self { shape, ledger, flows, greeting, threads: threads.max(1) }, warnings)
    }

    fn mine(&self, n: usize) -> impl Iterator<Item = &DataFlow> {
        self.flows.iter().filter(move |f| f.index as usize % self.threads == n)
    }

    fn lanes(&self, n: usize) -> Vec<Lane> {
        let mut all = vec![];
        for flow in self.mine(n) {
            let fd = flow.socket.as_raw_fd();
            if flow.peers.is_empty() && self.shape.sends(flow.index) {
                all.push(Lane::new(fd, flow.index, None));
            }
            for (to, index) in flow.peers.iter().filter(|(_, i)| self.shape.sends(**i)) {
                all.push(Lane::new(fd, *index, Some((*to).into())));
            }
        }
        all
    }

    fn ears(&self, n: usize) -> Vec<ReceiveSocket<'_>> {
        let mut all = vec![];
        for flow in self.mine(n) {
            let hears = |index: u32| !self.shape.sends(index);
            let peers: std::collections::BTreeMap<_, _> =
                flow.peers.iter().filter(|(_, i)| hears(**i)).map(|(a, i)| (*a, *i)).collect();
            let alone = flow.peers.is_empty() && hears(flow.index);
            if alone || !peers.is_empty() {
                all.push(ReceiveSocket {
                    socket: flow.socket.as_fd(),
                    fd: flow.socket.as_raw_fd(),
                    index: flow.index,
                    peers,
                });
            }
        }
        all
    }

    /// Runs thread `n` until the pool ends.
    pub fn work(&self, n: usize, pool: &WorkerPool, worker: &Worker) {
        let (mut lanes, ears) = (self.lanes(n), self.ears(n));
        let (shape, ledger) = (&self.shape, &self.ledger);
        let result = match (lanes.as_slice(), ears.as_slice()) {
            ([], []) => Ok(()),
            ([_], []) => match lanes.pop() {
                Some(lane) => send::one(lane, shape, ledger, pool, worker),
                None => Ok(()),
            },
            ([], [ear]) => receive::one(ear, shape, ledger, &self.greeting, pool, worker),
            _ => Many::new(lanes, &ears, shape, ledger, &self.greeting, (pool, worker))
                .and_then(Many::run),
        };
        if let Err(why) = result {
            match shape.local {
                true => pool.break_off(why),
                // At the end of a test the client closes first; if it ended early, it reports why.
                false if pool.stopping() || shape.bytes() => {}
                false => {
                    let why = why.to_string();
                    worker.see(|seen| seen.warnings.push(Warning::ThreadEnded { why }));
                }
            }
        }
    }

    fn senders(&self) -> impl Iterator<Item = RawFd> {
        self.flows
            .iter()
            .filter(|f| self.shape.sends(f.index) && f.peers.is_empty())
            .map(|f| f.socket.as_raw_fd())
    }

    fn tcp(&self) -> Sum {
        match self.shape.transport {
            Transport::Tcp => Sum::read(self.senders()),
            _ => Sum::none("only TCP counts"),
        }
    }

    /// The counters of all connections of this end, now.
    pub fn counters(&self, pool: &WorkerPool) -> Counters {
        let shape = &self.shape;
        let receives = (0..shape.connections()).any(|i| !shape.sends(i));
        let udp = !shape.bytes();
        let tcp = self.tcp();
        let pinned = shape.zerocopy == Some(ZeroCopy::Msg);
        let tids = pool.tids();
        Counters {
            transactions: pool.transactions(),
            retransmits: tcp.retransmits,
            cwnd_bytes: tcp.cwnd_bytes,
            rtt_ns: tcp.rtt_ns,
            migrations: migrations(&tids),
            // Read last, next to the time: rates are computed from both.
            at_ns: now_ns(),
            ..self.ledger.counters(udp, receives, pinned)
        }
    }

    /// The congestion control of its sending sockets.
    pub fn congestion(&self) -> Reading<String> {
        match (self.shape.transport, self.senders().next()) {
            (Transport::Tcp, Some(fd)) => tcp_info::congestion(fd),
            (Transport::Tcp, None) => Reading::absent("this end sends nothing"),
            _ => Reading::absent("only TCP has one"),
        }
    }

    /// The MSS of its sending sockets.
    pub fn mss_bytes(&self) -> Reading<u64> {
        self.tcp().mss_bytes
    }
}

/// Migrations of these threads of this process since they began.
///
/// **Source**: `se.nr_migrations` of `/proc/self/task/TID/sched` (`CONFIG_SCHED_DEBUG`).
fn migrations(tids: &[i32]) -> Reading<u64> {
    let root = probe::Root::live();
    let mut sum = 0;
    for tid in tids {
        let path = format!("/proc/self/task/{tid}/sched");
        let Ok(bytes) = root.read(&path) else {
            return Reading::absent(format!("{path}: this kernel has it not"));
        };
        let text = String::from_utf8_lossy(&bytes);
        let value = text.lines().find_map(|l| {
            let (key, value) = l.split_once(':')?;
            (key.trim() == "se.nr_migrations").then(|| value.trim().parse::<u64>().ok())?
        });
        match value {
            Some(n) => sum += n,
            None => return Reading::absent(format!("{path}: no se.nr_migrations")),
        }
    }
    Reading::Known(sum)
}
