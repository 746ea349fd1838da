//! Converts qperf's counters into netwright's figures.

use std::collections::BTreeMap;

use model::{
    CpuId, Nanos, Reading, Warning,
    measure::{Common, EndCpu, Engine, Pin, Transport, Wait},
};
use traffic::{
    Error, Result,
    control::message::{PeerReport, Ready, Test, TestKind},
    engine::assignments,
};

use super::{
    client::Client,
    local::Ask,
    wire::{Stat, Test as QperfTest, Times},
};

pub const NOT_REPORTED: &str = "qperf does not report it";
pub const SECOND: u64 = 1_000_000_000;
/// How much longer than this end the server goes on if nobody ends it.
const SLACK_S: u64 = 3;
/// The largest message over TCP.
const LARGEST_MESSAGE: u64 = 16 << 20;
/// The largest UDP payload over IPv4 without options.
const LARGEST_DATAGRAM: u64 = 65_507;

/// The server host's CPU time, over the server's own window from its first message to its last,
/// including warm-up and cool-down. qperf only reads the whole host.
pub fn end_cpu(stat: &Stat) -> Reading<EndCpu> {
    if stat.ticks_per_s == 0 {
        return Reading::absent("qperf names no length of its ticks");
    }
    let ns = |of: fn(&Times) -> u64| {
        let ticks = u128::from(of(&stat.end).saturating_sub(of(&stat.start)));
        let ns = ticks * 1_000_000_000 / u128::from(stat.ticks_per_s);
        u64::try_from(ns).unwrap_or(u64::MAX)
    };
    let states: [(&str, u64); 8] = [
        ("user", ns(|t| t.user)),
        ("nice", ns(|t| t.nice)),
        ("system", ns(|t| t.system)),
        ("idle", ns(|t| t.idle)),
        ("iowait", ns(|t| t.iowait)),
        ("irq", ns(|t| t.irq)),
        ("softirq", ns(|t| t.softirq)),
        ("steal", ns(|t| t.steal)),
    ];
    let host: BTreeMap<String, u64> = states.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    Reading::Known(EndCpu {
        window_ns: Nanos(ns(|t| t.real)),
        threads_ns: Reading::absent(NOT_REPORTED),
        threads_user_ns: Reading::absent(NOT_REPORTED),
        threads_system_ns: Reading::absent(NOT_REPORTED),
        process_ns: Reading::absent(NOT_REPORTED),
        host_ns: Reading::Known(host),
        host_busy_per_unit_ns: Reading::absent("not set against anything"),
        threads_per_unit_ns: Reading::absent(NOT_REPORTED),
        voluntary_switches: Reading::absent(NOT_REPORTED),
        involuntary_switches: Reading::absent(NOT_REPORTED),
    })
}

/// The server's report, as far as qperf provides one.
pub fn report(stat: &Stat) -> PeerReport {
    PeerReport {
        offload: None,
        cpu: end_cpu(stat),
        moved: BTreeMap::new(),
        ran_on: BTreeMap::new(),
        received_on: BTreeMap::new(),
        napi_ids: BTreeMap::new(),
        migrations: Reading::absent(NOT_REPORTED),
        congestion: Reading::absent(NOT_REPORTED),
        mss_bytes: Reading::absent(NOT_REPORTED),
        accepted: None,
        received: vec![],
        busy_ns: BTreeMap::new(),
        engine: String::new(),
        service_ns: None,
        warnings: vec![],
    }
}

/// The server's CPU assignment: qperf takes one CPU or none, and the available CPUs are known only
/// on this host.
///
/// # Errors
/// As [`assignments::peer`].
pub fn peer_ready(test: &Test, client: &Client) -> Result<Ready> {
    let pinned = |cpus: Vec<CpuId>, why: String| Ready { pinned: cpus, why, ..Ready::default() };
    let same_host = client.place.same_host;
    match &test.pin {
        Pin::No => Ok(pinned(vec![], "not pinned".into())),
        Pin::List(list) => Ok(pinned(list.iter().take(1).collect(), "asked for".into())),
        Pin::Auto | Pin::Apart if !same_host => {
            Ok(pinned(vec![], "not pinned: qperf does not report its CPUs".into()))
        }
        Pin::Auto | Pin::Apart => {
            let to = Some(client.place.address.ip());
            let peer = assignments::peer(test, &Pin::Auto, same_host, to, &[])?;
            Ok(Ready { allowed: peer.allowed, ..pinned(peer.cpus, peer.why) })
        }
    }
}

/// A test of one flow on one thread, as `netwright serve` would be asked for it.
pub fn test(common: &Common, kind: TestKind, client: &Client) -> Test {
    Test {
        kind,
        transport: common.transport,
        flows: 1,
        threads: 1,
        wait: Wait::Block,
        pin: common.peer_pin.clone(),
        local_cpus: client.assignments.cpus.iter().copied().collect(),
        socket: common.socket.clone(),
        max_time_ns: Nanos(0),
        engine: Engine::PerMessage,
        service_ns: None,
    }
}

/// What to ask the server for: messages of so many bytes, there and back or one way.
///
/// # Errors
/// As [`test_of`].
pub fn ask(common: &Common, bytes: u64, and_back: bool, assignment: &Ready) -> Result<Ask> {
    Ok(Ask {
        test: test_of(common.transport, and_back)?,
        message: u32::try_from(bytes).unwrap_or(u32::MAX),
        seconds: seconds(common),
        // Of the server's CPU; 0 is any.
        affinity: assignment.pinned.first().map_or(0, |c| c.0.saturating_add(1)),
    })
}

/// How many seconds the server goes on for if nobody ends it.
fn seconds(common: &Common) -> u32 {
    let more = common.warmup_ns.0.saturating_add(common.cooldown_ns.0);
    let whole = common.duration_ns.0.saturating_add(more).div_ceil(SECOND);
    u32::try_from(whole.saturating_add(SLACK_S)).unwrap_or(u32::MAX)
}

/// The test for a transport, round trip or one way.
///
/// # Errors
/// [`Error::Usage`] for what qperf does not speak here.
fn test_of(transport: Transport, and_back: bool) -> Result<QperfTest> {
    match (transport, and_back) {
        (Transport::Tcp, true) => Ok(QperfTest::TcpLat),
        (Transport::Tcp, false) => Ok(QperfTest::TcpBw),
        (Transport::Udp, true) => Ok(QperfTest::UdpLat),
        (Transport::Udp, false) => Ok(QperfTest::UdpBw),
        (Transport::Unix, _) => {
            Err(Error::Usage("qperf has no Unix sockets; only TCP and UDP".into()))
        }
    }
}

/// Refuses options that a qperf server does not support.
///
/// # Errors
/// [`Error::Usage`].
pub fn check_common(common: &Common, flows: &[u32], sizes: &[u64], and_back: bool) -> Result<()> {
    let usage = |why: &str| Err(Error::Usage(why.into()));
    if common.threads != 1 || flows != [1] {
        return usage("with qperf at the server there is one flow on one thread");
    }
    if common.duration_ns.0 == 0 {
        return usage("a window of no length measures nothing");
    }
    test_of(common.transport, and_back)?;
    let most = if common.transport == Transport::Udp { LARGEST_DATAGRAM } else { LARGEST_MESSAGE };
    match sizes.iter().find(|b| !(1..=most).contains(*b)) {
        _ if sizes.is_empty() => usage("no size is given"),
        Some(b) => usage(&format!("a message of {b} bytes; 1 to {most} are possible")),
        None => Ok(()),
    }
}

/// Warnings for every run with qperf.
pub fn warnings(common: &Common) -> Vec<Warning> {
    let mut all = vec![];
    if common.peer_wait != Wait::Block {
        all.push(Warning::QperfBlocks);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_time() {
        let start = Times { real: 100, user: 10, idle: 1000, ..Times::default() };
        let end = Times { real: 350, user: 60, idle: 900, softirq: 5, ..Times::default() };
        let stat = Stat { ticks_per_s: 100, start, end, ..Stat::default() };
        let cpu = end_cpu(&stat).into_known().unwrap();
        assert_eq!(cpu.window_ns, Nanos(2_500_000_000));
        let host = cpu.host_ns.into_known().unwrap();
        assert_eq!((host["user"], host["softirq"]), (500_000_000, 50_000_000));
        assert_eq!(host["idle"], 0, "a clock that went back did not move");
        assert!(!end_cpu(&Stat::default()).is_known());
    }
}
