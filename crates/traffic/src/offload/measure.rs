//! `measure offload`: each probe in both directions, at the client.

use std::{
    os::fd::AsRawFd,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use model::{
    CpuSet, Nanos, Reading,
    measure::{
        BothNics, Common, Direction, Engine, Moved, OffloadDocument, OffloadLie,
        OffloadProbe as Probe, OffloadRow, OffloadRowVerdict, OffloadSpec, PeerProgram,
        PieceSize as Size, Pin, SocketOptions, Transport, Wait,
    },
};
use socket2::Socket;

use super::{
    LARGE, datagram, judge, nic,
    peer::{QUIET, pieces},
    stream, why_not,
};
use crate::{
    Error, Result, Secret,
    client::{Peer, flows},
    control::message::{OffloadSide, OffloadTest, Test, TestKind},
    engine::{
        conduct::Run,
        measured::{Measured, unix_s},
    },
    host::{CounterSnapshot, between},
    net::now_ns,
};

/// Longest time of one probe, for the server's limit.
const LONGEST: Nanos = Nanos(30_000_000_000);

/// The probes in the order in which they run, and their sizes.
const PROBES: [(Probe, &[Size]); 11] = [
    (Probe::UdpUnsummed, &[Size::Small, Size::Large]),
    (Probe::UdpKernelSum, &[Size::Small, Size::Large]),
    (Probe::UdpAlone, &[Size::Small, Size::Large]),
    (Probe::UdpBurst, &[Size::Small, Size::Large, Size::Rising]),
    (Probe::UdpBurstGro, &[Size::Small, Size::Large, Size::Rising]),
    (Probe::UdpSegmented, &[Size::Small, Size::Large]),
    (Probe::UdpSegmentedGro, &[Size::Small, Size::Large]),
    (Probe::UdpBadSum, &[Size::Small, Size::Large]),
    (Probe::TcpAlone, &[Size::Small, Size::Large]),
    (Probe::TcpBurst, &[Size::Small, Size::Large, Size::Rising]),
    (Probe::TcpBulk, &[Size::Large]),
];

/// Runs all probes in both directions, and names what lies.
///
/// # Errors
/// The server cannot be reached, is on a Unix socket, or goes away.
pub fn measure(
    spec: &OffloadSpec,
    secret: Option<&Secret>,
    run: Run<'_>,
) -> Result<Measured<OffloadDocument>> {
    let common = common(spec);
    let peer = Peer::connect(&common, secret)?;
    let Some(address) = peer.address else {
        return Err(Error::Usage("a Unix socket has no offloads; give HOST or HOST:PORT".into()));
    };
    let begun = Instant::now();
    let nics = BothNics { local: nic::towards(address), peer: judge::no_nics().peer };
    let mut client = Client { common, peer, secret, run, nics, large_bytes: 0, udp: None, seed: 0 };
    client.large_bytes = client.large();
    let mut rows = client.all()?;
    let mut lies = judge::judge(&rows, &client.nics);
    let mut rounds = 1;
    // A busy path loses packets too: what shows in losses alone must show twice.
    if lies.iter().any(|lie| !judge::shows_in_content(lie, &rows))
        && !run.stop.load(Ordering::Relaxed)
    {
        let again = client.all()?;
        let confirmed = judge::judge(&again, &client.nics);
        lies.retain(|lie| {
            judge::shows_in_content(lie, &rows) || confirmed.iter().any(|l| alike(l, lie))
        });
        rounds = 2;
    }
    rows.iter_mut().for_each(|row| row.verdict = judge::verdict(row));
    let document = OffloadDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "offload".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local: client.peer.local.clone(),
        peer: client.peer.end.clone(),
        nics: client.nics,
        large_bytes: client.large_bytes,
        rounds,
        rows,
        lies,
        took_ns: Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)),
        interrupted: run.stop.load(Ordering::Relaxed),
    };
    Ok(Measured { document, broken: None })
}

fn alike(a: &OffloadLie, b: &OffloadLie) -> bool {
    (a.offload, &a.end, a.direction) == (b.offload, &b.end, b.direction)
}

fn common(spec: &OffloadSpec) -> Common {
    Common {
        family: spec.family,
        bind: spec.bind.clone(),
        max_time_ns: LONGEST,
        ..Common::plain(&spec.target, PeerProgram::Netwright)
    }
}

struct Client<'a> {
    common: Common,
    peer: Peer,
    secret: Option<&'a Secret>,
    run: Run<'a>,
    nics: BothNics,
    large_bytes: u64,
    /// Why UDP does not reach the server.
    udp: Option<String>,
    seed: u32,
}

impl Client<'_> {
    /// The largest payload that each packet of both transports can carry.
    fn large(&self) -> u64 {
        let mss = self.peer.mss_bytes().unwrap_or(*LARGE.start());
        mss.clamp(*LARGE.start(), *LARGE.end())
    }

    fn all(&mut self) -> Result<Vec<OffloadRow>> {
        let mut rows = vec![];
        let tests: Vec<(Probe, Size, Direction)> = PROBES
            .iter()
            .flat_map(|(probe, sizes)| sizes.iter().map(move |size| (*probe, *size)))
            .flat_map(|(p, s)| [(p, s, Direction::Forward), (p, s, Direction::Reverse)])
            .collect();
        for (n, (probe, size, direction)) in tests.iter().copied().enumerate() {
            if self.run.stop.load(Ordering::Relaxed) {
                break;
            }
            (self.run.progress)("offloads", n as f64 / tests.len() as f64);
            rows.push(self.one(probe, size, direction)?);
        }
        Ok(rows)
    }

    fn one(&mut self, probe: Probe, size: Size, direction: Direction) -> Result<OffloadRow> {
        let mut row = OffloadRow {
            probe,
            size,
            direction,
            counts: Default::default(),
            checksum_errors: 0,
            verdict: OffloadRowVerdict::Right,
            not_run: None,
        };
        let udp = probe.transport() == Transport::Udp;
        if let (true, Some(why)) = (udp, &self.udp) {
            row.not_run = Some(why.clone());
            return Ok(row);
        }
        self.seed = self.seed.wrapping_add(1);
        let with_nic = matches!(self.nics.peer, Reading::Absent(_)) && !udp;
        let probe_test = OffloadTest {
            probe,
            size,
            direction,
            large_bytes: self.large_bytes,
            seed: (now_ns() as u32).wrapping_add(self.seed),
            with_nic,
        };
        let test = test_of(&probe_test);
        let root = probe::Root::live();
        let before = CounterSnapshot::take(&[], &root);
        let ready = self.peer.ask(&test)?;
        let common = Common { transport: test.transport, ..self.common.clone() };
        let socket = match flows::open(&self.peer, &common, &test, &ready) {
            Ok(sockets) => sockets.into_iter().next(),
            // Without UDP the TCP probes remain. The server still waits: it is asked anew.
            Err(e) if udp => {
                row.not_run = Some(e.to_string());
                self.udp = row.not_run.clone();
                self.peer = Peer::connect(&self.common, self.secret)?;
                return Ok(row);
            }
            Err(e) => return Err(e),
        };
        let Some(socket) = socket else { return Ok(row) };
        self.peer.await_connected()?;
        let forward = direction == Direction::Forward;
        let ours = match forward {
            true => self.send(&socket, &probe_test)?,
            false => self.receive(&socket, &probe_test)?,
        };
        let after = CounterSnapshot::take(&[], &root);
        let report = self.peer.finish()?;
        let theirs = report.offload.unwrap_or_default();
        if let Some(nic) = theirs.nic.clone() {
            self.nics.peer = nic;
        }
        let moved = if forward { report.moved } else { between(&before, &after).moved };
        row.checksum_errors = checksum_errors(&moved, udp);
        let (sent, received) = if forward { (ours, theirs) } else { (theirs, ours) };
        combine(&mut row, sent, received);
        Ok(row)
    }

    fn send(&self, socket: &Socket, test: &OffloadTest) -> Result<OffloadSide> {
        let (all, probe) = (pieces(test), test.probe);
        self.peer.mark()?;
        let progress = |_| !self.run.stop.load(Ordering::Relaxed);
        let sent = match probe.transport() {
            Transport::Udp => datagram::send(socket, probe, &all, &progress),
            _ => stream::send(socket, probe, &all, &progress),
        };
        // What is under way arrives within a round trip; this mark is one.
        self.peer.mark()?;
        Ok(side(probe, sent, 0))
    }

    fn receive(&self, socket: &Socket, test: &OffloadTest) -> Result<OffloadSide> {
        let (all, probe) = (pieces(test), test.probe);
        if probe.transport() == Transport::Tcp {
            return Ok(side(probe, Ok(stream::receive(socket, &all)), 0));
        }
        let mut receiver = match datagram::Receiver::new(socket, probe, &all, false) {
            Ok(receiver) => receiver,
            Err(e) => return Ok(side(probe, Err(e), 0)),
        };
        // The server sends once this end is ready.
        self.peer.mark()?;
        let mut done = None;
        while !receiver.is_complete() && !self.run.stop.load(Ordering::Relaxed) {
            receiver.turn(QUIET);
            if receiver.last.elapsed() < QUIET {
                continue;
            }
            // Once the server has sent all, only what is under way can come.
            match done {
                Some(since) if Instant::now() > since => break,
                Some(_) => {}
                None if self.peer.mark()?.done => done = Some(Instant::now() + QUIET),
                None => {}
            }
        }
        receiver.turn(Duration::from_millis(1));
        Ok(side(probe, Ok(receiver.counts()), receiver.came()))
    }
}

fn test_of(probe: &OffloadTest) -> Test {
    Test {
        kind: TestKind::Offload(probe.clone()),
        transport: probe.probe.transport(),
        flows: 1,
        threads: 1,
        wait: Wait::Block,
        pin: Pin::No,
        local_cpus: CpuSet::new(),
        socket: SocketOptions::default(),
        max_time_ns: LONGEST,
        engine: Engine::default(),
        service_ns: None,
    }
}

fn side(
    probe: Probe,
    counts: std::io::Result<model::measure::OffloadCounts>,
    came: u64,
) -> OffloadSide {
    match counts {
        Ok(counts) => OffloadSide { counts, came, ..OffloadSide::default() },
        Err(e) => OffloadSide { not_run: Some(why_not(probe, &e)), ..OffloadSide::default() },
    }
}

/// Growth of the counts of wrong checksums.
fn checksum_errors(moved: &Moved, udp: bool) -> u64 {
    let names: &[&str] =
        if udp { &["Udp.InCsumErrors", "Udp6.InCsumErrors"] } else { &["Tcp.InCsumErrors"] };
    names.iter().filter_map(|n| moved.get(*n)).sum()
}

/// Puts what both ends counted into one row.
fn combine(row: &mut OffloadRow, sent: OffloadSide, received: OffloadSide) {
    row.not_run = sent.not_run.or(received.not_run);
    let (s, r) = (sent.counts, received.counts);
    let missing = match row.probe.transport() {
        Transport::Udp => s.sent.saturating_sub(received.came),
        _ => s.sent.saturating_sub(r.right + r.damaged),
    };
    row.counts = model::measure::OffloadCounts {
        sent: s.sent,
        missing,
        batches: s.batches,
        batches_retransmitted: s.batches_retransmitted,
        retransmits: s.retransmits,
        stalled: s.stalled,
        ..r
    };
    if row.probe == Probe::UdpBadSum {
        // Half of them have a wrong checksum; the others say that the path is there.
        let (bad, beside) = (s.sent / 2, row.counts.right);
        row.counts.sent = bad;
        row.counts.right = bad.saturating_sub(row.counts.damaged);
        row.counts.missing = 0;
        if beside * 2 < bad && row.not_run.is_none() {
            row.not_run = Some("the datagrams with a right checksum did not come either".into());
        }
    }
    row.verdict = judge::verdict(row);
}

impl Peer {
    /// The MSS of the control connection, in bytes.
    fn mss_bytes(&self) -> Option<u64> {
        let fd = self.control().as_raw_fd();
        crate::stream::tcp_info::TcpInfo::read(fd).and_then(|i| i.mss_bytes)
    }
}
