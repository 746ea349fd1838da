//! One test at the server: its threads, snapshots and report.

use std::{
    os::fd::AsRawFd,
    sync::{Mutex, PoisonError},
    thread::Scope,
    time::Duration,
};

use model::{
    CpuId, Nanos, Reading, Warning,
    measure::{Pin, Transport},
};
use socket2::{SockRef, Socket};

use super::{
    Options,
    endpoint::{DataAddress, Endpoint},
    watch::Watch,
};
use crate::{
    Error, ErrorContext, Result,
    connect::{self, peer::SharedTest},
    control::{
        message::{Counters, DATA_MAGIC, PeerReport, Test, TestKind},
        secret::unhex,
    },
    engine::{
        assignments::{self, Assignments},
        service_time,
        worker_pool::WorkerPool,
    },
    host::{CounterSnapshot, Window, between},
    net::{data_flow::DataFlow, now_ns, own_files},
    offload,
    rtt::{self, single::RttShape},
    stream,
};

/// Time allowed for setup and end, in addition to the test.
pub const SLACK: Duration = Duration::from_secs(60);

/// The client of a test.
#[derive(Debug)]
pub struct Client<'a> {
    pub local: &'a DataAddress,
    /// Whether the client runs on this host.
    pub same_host: bool,
    pub options: &'a Options,
    pub watch: Watch<'a>,
}

impl Client<'_> {
    /// Service time before each response: the client's, else the server's.
    pub fn service_ns(&self, test: &Test) -> Nanos {
        test.service_ns.unwrap_or(self.options.service_ns)
    }
}

/// A test at the server.
pub struct PeerTest<'a> {
    test: &'a Test,
    pool: WorkerPool,
    cpus: Vec<CpuId>,
    service_ns: u64,
    /// Start of this session's UDP greetings.
    greeting: Vec<u8>,
    /// Each thread's flows. They stay here and are closed by a thread that shares the session's
    /// descriptor table: a flow's own thread may have a separate table.
    flows: Vec<Mutex<Vec<DataFlow>>>,
    /// The listener of a test that measures connections.
    door: Option<SharedTest>,
    /// State of a stream test, kept together because other threads read its counters.
    stream: Option<stream::peer::PeerEnd>,
    offload: Option<offload::peer::PeerEnd>,
    snapshots: Mutex<Option<(CounterSnapshot, CounterSnapshot)>>,
    root: probe::Root,
}

/// CPUs of this test's threads.
///
/// # Errors
/// A requested CPU does not exist or may not be used.
pub fn choose_cpus(test: &Test, client: &Client<'_>, taken: &[CpuId]) -> Result<Assignments> {
    let asked = match (&test.kind, &test.pin) {
        // A `Look` test has no threads to pin.
        (TestKind::Look, _) => &Pin::No,
        (_, Pin::Auto | Pin::Apart) => &client.options.pin,
        (_, asked) => asked,
    };
    let local = match client.local {
        DataAddress::Ip(ours, _) => Some(*ours),
        DataAddress::Unix(_) => None,
    };
    assignments::peer(test, asked, client.same_host, local, taken)
}

impl<'a> PeerTest<'a> {
    /// Waits for the data connections and prepares the threads' state.
    ///
    /// # Errors
    /// Not all connections arrived.
    pub fn prepare(
        endpoint: &mut Endpoint,
        test: &'a Test,
        client: &Client<'_>,
        cpus: &[CpuId],
    ) -> Result<Self> {
        let mut greeting = DATA_MAGIC.to_vec();
        greeting.extend(unhex(&endpoint.token).unwrap_or_default());
        let threads = test.threads as usize;
        let mut flows: Vec<Vec<DataFlow>> = (0..threads).map(|_| vec![]).collect();
        let door = door(endpoint, test, client)?;
        let mut gathered = match door {
            Some(_) => vec![],
            None if test.kind == TestKind::Look => vec![],
            None => endpoint.gather(test, &client.watch)?,
        };
        gathered.iter().for_each(|f| set_late(&SockRef::from(&f.socket), test));
        let stream = matches!(test.kind, TestKind::Stream { .. }).then(|| {
            stream::peer::PeerEnd::new(test, std::mem::take(&mut gathered), greeting.clone())
        });
        let offload = match &test.kind {
            TestKind::Offload(probe) => Some(offload::peer::PeerEnd::new(probe)),
            _ => None,
        };
        for flow in gathered {
            let at = flow.index as usize % threads.max(1);
            if let Some(mine) = flows.get_mut(at) {
                mine.push(flow);
            }
        }
        Ok(Self {
            test,
            pool: WorkerPool::new(threads),
            cpus: cpus.to_vec(),
            service_ns: client.service_ns(test).0,
            greeting,
            flows: flows.into_iter().map(Mutex::new).collect(),
            door,
            stream,
            offload,
            snapshots: Mutex::new(None),
            root: probe::Root::live(),
        })
    }

    /// Starts the threads and waits until each has registered its id.
    pub fn start<'scope, 'env>(&'env self, threads: &'scope Scope<'scope, 'env>) {
        let mut begun = 0;
        for n in 0..self.flows.len() {
            let made = std::thread::Builder::new()
                .name(format!("nw-server-{n}"))
                .spawn_scoped(threads, move || self.work(n));
            match made {
                Ok(_) => begun += 1,
                Err(e) => self.pool.break_off(Error::io("no thread", &e)),
            }
        }
        while self.pool.tids().len() < begun {
            std::thread::yield_now();
        }
        if let Some(stream) = &self.stream {
            stream.watch(threads, &self.pool);
        }
    }

    fn work(&self, n: usize) {
        let Some(worker) = self.pool.workers.get(n) else { return };
        let cpu = self.cpus.get(n % self.cpus.len().max(1));
        if let Some(why) = cpu.and_then(|cpu| assignments::pin(*cpu).err()) {
            worker.see(|seen| seen.warnings.push(Warning::NotPinned { why: why.to_string() }));
        }
        let Some(flows) = self.flows.get(n) else { return };
        let flows = flows.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(self.test.kind, TestKind::Rtt { .. }) {
            own_files::keep_only(flows.iter().map(|f| f.socket.as_raw_fd()).collect());
        }
        let _running = worker.sleeper.begin();
        match &self.test.kind {
            TestKind::Rtt { request_bytes, response_bytes, queue_depth } => {
                let shape = RttShape {
                    transport: self.test.transport,
                    request_bytes: *request_bytes,
                    response_bytes: *response_bytes,
                    wait: self.test.wait,
                    timeout_ns: 0,
                    service_ns: self.service_ns,
                    without_overrun: false,
                    echo: false,
                };
                let (engine, greeting) = (self.test.engine, &self.greeting);
                rtt::peer::run(&flows, &shape, *queue_depth, engine, greeting, &self.pool, worker);
                worker.see(|seen| seen.served_ns += service_time::served_ns());
            }
            TestKind::Connect { request_bytes, response_bytes, close, .. } => {
                let shape = connect::ConnectShape {
                    transport: self.test.transport,
                    request_bytes: *request_bytes,
                    response_bytes: *response_bytes,
                    close: *close,
                    wait: self.test.wait,
                    timeout_ns: 0,
                    service_ns: self.service_ns,
                };
                if let Some(door) = &self.door {
                    connect::peer::run(door, &shape, &self.pool, worker);
                }
            }
            TestKind::Stream { .. } => {
                if let Some(stream) = &self.stream {
                    stream.side.work(n, &self.pool, worker);
                }
            }
            TestKind::Offload(_) => {
                if let Some(offload) = &self.offload {
                    offload.work(&flows, &self.pool, worker);
                }
            }
            TestKind::Look => {}
        }
    }

    /// Why the test cannot continue, if a thread could not be started.
    pub fn broken(&self) -> Option<Error> {
        self.pool.broken()
    }

    /// Warnings on the setup.
    pub fn warnings(&self) -> Vec<Warning> {
        let ours = self.stream.iter().flat_map(|s| s.warnings.clone());
        ours.chain(self.pool.seen().warnings).collect()
    }

    /// Takes a snapshot; the first and the last one delimit the window.
    pub fn mark(&self) -> Counters {
        self.offload.iter().for_each(offload::peer::PeerEnd::go);
        let snapshot = CounterSnapshot::take(&self.pool.tids(), &self.root);
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        *snapshots = Some(match snapshots.take() {
            None => (snapshot.clone(), snapshot),
            Some((first, _)) => (first, snapshot),
        });
        self.counters()
    }

    /// Current counters of the threads.
    fn counters(&self) -> Counters {
        match &self.stream {
            Some(stream) => stream.side.counters(&self.pool),
            None => Counters {
                at_ns: now_ns(),
                transactions: self.pool.transactions(),
                done: self.offload.as_ref().is_some_and(offload::peer::PeerEnd::is_done),
                ..Counters::default()
            },
        }
    }

    /// Streams: stops sending and returns the counters, without a snapshot.
    pub fn quiet(&self) -> Counters {
        if let Some(stream) = &self.stream {
            stream.side.ledger.be_quiet();
        }
        self.counters()
    }

    pub fn end(&self) {
        self.pool.end();
    }

    /// The report; call it when the threads have ended.
    pub fn report(&self) -> PeerReport {
        let snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let reach = snapshots.as_ref().map(|(first, last)| (first.begins_ns(), last.ends_ns()));
        let window = snapshots.as_ref().map(|(first, last)| between(first, last));
        let seen = self.pool.seen();
        let (cpu, moved, migrations, busy) = match window {
            Some(Window { cpu, moved, extras }) => {
                (Reading::Known(cpu), moved, extras.migrations, extras.busy_ns)
            }
            None => (
                Reading::absent("the counters were not read"),
                Default::default(),
                Reading::default(),
                Default::default(),
            ),
        };
        // A probe's report fits into one segment, so that no offload can falsify it.
        let (cpu, moved) = match &self.offload {
            None => (cpu, moved),
            Some(_) => {
                let sums = moved.into_iter().filter(|(name, _)| name.ends_with(".InCsumErrors"));
                (Reading::absent("a probe"), sums.collect())
            }
        };
        PeerReport {
            cpu,
            moved,
            ran_on: seen.ran_on,
            received_on: seen.received_on,
            napi_ids: seen.napi_ids,
            migrations,
            congestion: self
                .stream
                .as_ref()
                .map_or_else(|| Reading::absent("only streams tell"), |s| s.side.congestion()),
            mss_bytes: self
                .stream
                .as_ref()
                .map_or_else(|| Reading::absent("only streams tell"), |s| s.side.mss_bytes()),
            received: match (&self.stream, reach) {
                (Some(stream), Some((from, to))) => stream.received(from, to),
                _ => vec![],
            },
            busy_ns: busy.into_iter().filter(|(cpu, _)| self.cpus.contains(cpu)).collect(),
            accepted: self.door.as_ref().map(|_| self.pool.transactions()),
            service_ns: (self.pool.transactions() > 0
                && !matches!(self.test.kind, TestKind::Stream { .. }))
            .then(|| seen.served_ns as f64 / self.pool.transactions() as f64),
            engine: seen.engines.into_iter().collect::<Vec<_>>().join(" and "),
            offload: self.offload.as_ref().map(offload::peer::PeerEnd::side),
            warnings: seen.warnings,
        }
    }
}

/// Sets options that a listening socket does not pass on.
fn set_late(socket: &Socket, test: &Test) {
    if test.transport == Transport::Tcp {
        let _ = socket.set_tcp_nodelay(test.socket.nodelay.unwrap_or_else(|| test.nodelay()));
    }
}

/// Opens the listener of a test that measures connections.
fn door(endpoint: &Endpoint, test: &Test, client: &Client<'_>) -> Result<Option<SharedTest>> {
    let (TestKind::Connect { from, .. }, Some(listener)) = (&test.kind, endpoint.listener()) else {
        return Ok(None);
    };
    let from = match client.local {
        DataAddress::Ip(_, theirs) => Some(from.iter().copied().chain([*theirs]).collect()),
        DataAddress::Unix(_) => None,
    };
    let listener = listener.try_clone().doing(|| "data socket")?;
    listener.set_nonblocking(true).doing(|| "data socket")?;
    Ok(Some(SharedTest { listener, from, most: connect::peer::most_open(test) }))
}

impl std::fmt::Debug for PeerTest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FarTest").field("test", self.test).finish_non_exhaustive()
    }
}
