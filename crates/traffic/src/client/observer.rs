//! A responder that only observes: `netwright serve` on the host of another program's server
//! reports that host's CPUs for the same window.
//!
//! The client asks it for its counters like any server. It has no threads of its own, so it reports
//! none.

use std::net::SocketAddr;

use model::{
    CpuSet, Nanos, Reading, Warning,
    measure::{Common, EndCpu, Engine, PeerProgram, Pin, SocketOptions, Transport, Wait},
};

use super::Peer;
use crate::{
    Result,
    control::{
        message::{PeerReport, Test, TestKind},
        secret::Secret,
    },
};

/// Reason for missing figures of the server's threads.
const NOT_OURS: &str = "the server's own threads are not ours to look at";

impl Peer {
    /// Connects to the responder at `target`, with the other options of `common`.
    ///
    /// # Errors
    /// As [`Peer::connect`].
    pub fn observer(target: &str, common: &Common, secret: Option<&Secret>) -> Result<Self> {
        let common =
            Common { target: target.into(), peer: PeerProgram::Netwright, ..common.clone() };
        Self::connect(&common, secret)
    }

    /// Puts it into a test that only reads counters, until [`Peer::finish`].
    ///
    /// # Errors
    /// It refuses, or has gone.
    pub fn observe(&self, common: &Common) -> Result<()> {
        let Common { warmup_ns, duration_ns, cooldown_ns, .. } = common;
        let test = Test {
            kind: TestKind::Look,
            transport: Transport::Tcp,
            flows: 0,
            threads: 0,
            wait: Wait::Block,
            pin: Pin::No,
            local_cpus: CpuSet::new(),
            socket: SocketOptions::default(),
            max_time_ns: Nanos(warmup_ns.0 + duration_ns.0 + cooldown_ns.0),
            engine: Engine::default(),
            service_ns: None,
        };
        self.ask(&test)?;
        self.await_connected()?;
        Ok(())
    }

    /// A warning if the responder may run on another host than the server.
    pub fn elsewhere(&self, server: SocketAddr) -> Option<Warning> {
        let other =
            self.address.is_some_and(|a| a.ip().to_canonical() != server.ip().to_canonical());
        other.then(|| Warning::ResponderElsewhere {
            responder: self.name.clone(),
            server: server.ip().to_string(),
        })
    }
}

/// Drops the responder's own threads and process from its report; keeps the host's figures.
pub fn host_only(report: PeerReport) -> PeerReport {
    let absent = || Reading::absent(NOT_OURS);
    let cpu = report.cpu.map(|cpu| EndCpu {
        threads_ns: absent(),
        threads_user_ns: absent(),
        threads_system_ns: absent(),
        process_ns: absent(),
        threads_per_unit_ns: Reading::absent(NOT_OURS),
        voluntary_switches: absent(),
        involuntary_switches: absent(),
        ..cpu
    });
    PeerReport { cpu, migrations: absent(), ..report }
}
