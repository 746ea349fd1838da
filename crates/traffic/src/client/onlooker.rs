//! A responder that takes no part: beside a server that cannot be asked, `netwright serve` on its
//! host tells what that host's CPUs did in the same window.
//!
//! The conductor marks it as it marks any server; what its own threads did is nothing, for it
//! has none.

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

/// Why there is nothing of the threads that serve.
const NOT_OURS: &str = "the server's own threads are not ours to look at";

impl Peer {
    /// Connects to the responder at `target` as `common` says in all else.
    ///
    /// # Errors
    /// As [`Peer::connect`].
    pub fn onlooker(target: &str, common: &Common, secret: Option<&Secret>) -> Result<Self> {
        let common =
            Common { target: target.into(), peer: PeerProgram::Netwright, ..common.clone() };
        Self::connect(&common, secret)
    }

    /// Has it wait for marks until [`Peer::finish`].
    ///
    /// # Errors
    /// It refuses, or is gone.
    pub fn look_on(&self, common: &Common) -> Result<()> {
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

    /// Why its figures may be another host's than the server's, if they may.
    pub fn elsewhere(&self, server: SocketAddr) -> Option<Warning> {
        let other =
            self.address.is_some_and(|a| a.ip().to_canonical() != server.ip().to_canonical());
        other.then(|| Warning::ResponderElsewhere {
            responder: self.name.clone(),
            server: server.ip().to_string(),
        })
    }
}

/// Of an onlooker's report what is its host's: of threads and a process it can tell only its own.
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
