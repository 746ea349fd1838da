//! `measure pg`: one run for each number of clients.

use std::time::Duration;

use model::measure::{End, PeerProgram, PgDocument, PgDriver, PgProtocol, PgRun, PgSpec, TlsRun};
use traffic::{
    Error, Result,
    client::Peer,
    control::secret::Secret,
    engine::{
        assignments::{self, Assignments},
        conduct::Run,
        dial::{DialPath, is_here},
        event_loop::EventLoop,
        floor::calibrate,
        load::{Load, OneRun, Sweep, sweep},
        measured::{BATCH_NS, Measured, unix_s},
        protocol::Connecting,
        sums::{Rounds, rounds},
        workers::Workers,
    },
    net::{now_ns, options, tls::conn::Agreed},
};

use super::{
    address::Address,
    builtin,
    client::Client,
    environment::{Environment, UserName},
    pgbench,
    plan::Plan,
    protocol::PgShape,
    recorder::{PgRecorder, RecorderSpec},
    result,
    script::{Rng, Value, Vars},
    session::{Session, Wrong},
    session_state::SessionState,
};

/// Measures transactions as requested; `password` was part of the connection string, `secret` is
/// for a responder beside the server.
///
/// # Errors
/// Nothing could be measured; later failures are in [`Measured::broken`].
pub fn measure(
    spec: &PgSpec,
    password: Option<&str>,
    secret: Option<&Secret>,
    run: Run<'_>,
) -> Result<Measured<PgDocument>> {
    let tool = match spec.driver {
        PgDriver::Netwright => None,
        PgDriver::Pgbench => Some(pgbench::find()?),
    };
    // Checks options that pgbench lacks first, before asking for anything else.
    tool.as_ref().map_or(Ok(()), |tool| pgbench::check(spec, tool))?;
    check(spec)?;
    options::check(&spec.common)?;
    let plan = Plan::of(spec)?;
    let address = address_of(spec, password)?;
    let timeout = Duration::from_nanos(spec.timeout_ns.0);
    let mut session = Session::open(&address, &spec.common, timeout, run.stop)?;
    let scale = scale(spec, &mut session)?;
    let observer = match &spec.responder {
        Some(at) => Some(Peer::observer(at, &spec.common, secret)?),
        None => None,
    };
    let common = &spec.common;
    let ip = session.door.ip();
    let same_host = ip.is_none_or(is_here);
    let assignments = assignments::beside(&common.pin, common.threads, same_host, ip)?;
    let calibration = calibrate(assignments.cpus.first().copied())?;
    let seed = spec.seed.unwrap_or_else(|| now_ns().wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // Decided by the server's address, not by the options.
    let mut request = spec.clone();
    request.common.transport = session.door.transport;
    let mut document = PgDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "pg".into(),
        started_unix_s: unix_s(),
        request,
        driver: tool.as_ref().map(|t| t.version.clone()),
        local: End { address: session.ours.clone(), ..traffic::host::identity::of_this_host().end },
        peer: session.server(),
        scale,
        seed,
        floor: calibration.certificate([]),
        runs: vec![],
        interrupted: false,
    };
    let verifies = address.security.verifies();
    let shape = shape(spec, plan, &session, verifies)?;
    let agreed = session.agreed.map(|agreed| tls_run(agreed, verifies));
    let conducted = pgbench::conducted(&spec.common);
    let elsewhere = observer.as_ref().zip(ip).and_then(|(peer, ip)| peer.elsewhere(ip));
    let reported: Vec<_> = [address.warnings, session.warnings.clone()]
        .concat()
        .into_iter()
        .chain(elsewhere)
        .collect();
    drop(session);
    let Sweep { runs, interrupted, broken } = sweep(&spec.clients, run.stop, |clients| {
        let observer = observer.as_ref();
        let begin = Begin { spec, clients, shape: &shape, scale, seed, observer };
        let mut one = match &tool {
            None => one(&begin, &assignments, same_host, run),
            Some(tool) => pgbench::one(
                &pgbench::By {
                    tool,
                    spec,
                    clients,
                    shape: &shape,
                    seed,
                    observer,
                    conducted: &conducted,
                    assignments: &assignments,
                    same_host,
                    password,
                    tls: agreed.as_ref(),
                },
                run,
            ),
        }?;
        one.run.warnings.extend(reported.iter().cloned());
        Ok(one)
    });
    (document.runs, document.interrupted) = (runs, interrupted);
    document.floor = calibration.certificate(document.runs.iter().map(|r: &PgRun| &r.cpu.local));
    let nothing = document.runs.iter().all(|r| r.transactions == 0 && r.failed == 0);
    match (nothing, broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok(Measured { document, broken }),
    }
}

fn check(spec: &PgSpec) -> Result<()> {
    let usage = |why: String| Err(Error::Usage(why));
    let common = &spec.common;
    if common.peer != PeerProgram::Server {
        return usage("PostgreSQL is measured against a PostgreSQL server".into());
    }
    if spec.pipeline && spec.protocol == PgProtocol::Simple {
        return usage("a pipeline needs --protocol extended or prepared".into());
    }
    Load {
        common,
        flows: &spec.clients,
        // The statements of a transaction run one at a time on each connection.
        pipeline: 1,
        one_each: spec.connect_each,
        rate_per_s: spec.rate_per_s,
        total: spec.transactions,
        interval_ns: spec.interval_ns,
        timeout_ns: spec.timeout_ns,
        what: "transactions",
        option: "--transactions",
    }
    .check()
}

/// The servers that a connection string names.
///
/// # Errors
/// The string is malformed, or names an option that is not supported; one line for the user.
pub fn address_of(spec: &PgSpec, password: Option<&str>) -> Result<Address> {
    let variable = |name: &str| std::env::var(name).ok();
    let environment = Environment { variable: &variable, who: &entry };
    Address::of(&spec.common.target, password, &environment)
}

/// A field of this process's user in the host's user database.
fn entry(what: UserName) -> Option<String> {
    // SAFETY: a zeroed record is valid and the call fills it; its pointers lead into the buffer,
    // which outlives their use, or are null.
    unsafe {
        let mut room = vec![0; 16 << 10];
        let (mut entry, mut found): (libc::passwd, _) =
            (std::mem::zeroed(), std::ptr::null_mut::<libc::passwd>());
        let failed = libc::getpwuid_r(
            rustix::process::geteuid().as_raw(),
            &raw mut entry,
            room.as_mut_ptr(),
            room.len(),
            &raw mut found,
        );
        if failed != 0 || found.is_null() {
            return None;
        }
        let wanted = match what {
            UserName::Name => entry.pw_name,
            UserName::Home => entry.pw_dir,
        };
        if wanted.is_null() {
            return None;
        }
        std::ffi::CStr::from_ptr(wanted).to_str().ok().map(str::to_owned)
    }
}

/// The scripts' `:scale`: as requested, or that of the existing tables.
fn scale(spec: &PgSpec, session: &mut Session<'_>) -> Result<u32> {
    if let Some(scale) = spec.scale {
        return Ok(scale);
    }
    let needed = spec.scripts.iter().find(|s| builtin::needs_tables(&s.name));
    match (session.ask("select count(*) from pgbench_branches"), needed) {
        (Ok(rows), _) => {
            let count = rows.first().and_then(|r| r.first()).cloned().flatten();
            let count = count.and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
            match (count, needed) {
                (0, Some(script)) => Err(Error::Environment(format!(
                    "{}: pgbench_branches is empty; fill pgbench's tables with --init",
                    script.name
                ))),
                (n, _) => Ok(n.max(1)),
            }
        }
        (Err(wrong), Some(script)) => Err(wrong.error(&script.name)),
        (Err(Wrong::Server(_)), None) => Ok(1),
        (Err(Wrong::Gone(e)), None) => Err(e),
    }
}

fn shape(spec: &PgSpec, plan: Plan, session: &Session<'_>, verifies: bool) -> Result<PgShape> {
    let common = &spec.common;
    let door = session.door.clone();
    Ok(PgShape {
        connecting: Connecting {
            way: DialPath::new(door.to, door.transport, common, false)?,
            tls: door.tls,
            one_each: spec.connect_each,
            timeout_ns: spec.timeout_ns.0,
        },
        name: door.name,
        who: door.who,
        verifies,
        plan,
    })
}

struct Begin<'a> {
    spec: &'a PgSpec,
    clients: u32,
    shape: &'a PgShape,
    scale: u32,
    seed: u64,
    observer: Option<&'a Peer>,
}

impl Begin<'_> {
    /// A client with the variables that pgbench's scripts expect.
    fn client(&self, n: u32) -> Client {
        let seed = self.seed.cast_signed();
        let default_seed = self.seed.rotate_left(17).cast_signed();
        let mut vars = Vars::predefined(n.into(), self.scale.into(), default_seed, seed);
        for (name, value) in &self.spec.variables {
            vars.set(name, Value::Text(value.clone()));
        }
        // Distinct also for consecutive seeds.
        let own = self.seed.wrapping_add(u64::from(n) << 32 | u64::from(n));
        Client::new(vars, Rng::new(own), own, self.shape.plan.statements.len())
    }
}

fn one(
    begin: &Begin<'_>,
    assignments: &Assignments,
    same_host: bool,
    run: Run<'_>,
) -> Result<OneRun<PgRun>> {
    let Begin { spec, clients, shape, .. } = *begin;
    let workers = Workers {
        common: &spec.common,
        assignments,
        observer: begin.observer,
        connections: clients,
        rate_per_s: spec.rate_per_s,
        total: spec.transactions,
        interval_ns: spec.interval_ns,
    };
    let kept = RecorderSpec {
        open_loop: spec.rate_per_s.is_some(),
        scripts: shape.plan.scripts.len(),
        statements: if spec.per_statement { shape.plan.statements.len() } else { 0 },
    };
    let recorder = || PgRecorder::new(kept, BATCH_NS);
    let what = format!("pg, {}", result::clients_text(clients));
    let Rounds { sums, why, broken } = rounds(&workers, run, &what, recorder, |task, recorder| {
        let own = |n: &u32| SessionState::new(begin.client(*n));
        let own = task.connections.iter().map(own).collect();
        EventLoop { protocol: shape, task }.run(own, recorder);
        task.worker.see(|seen| recorder.requests.ran_on.tell(seen));
    })?;
    let mut run = result::pg_run(spec, clients, shape, assignments, same_host, &sums);
    run.warnings.extend(why);
    Ok(OneRun { run, interrupted: sums.interrupted, broken })
}

/// The TLS part of a result without handshake figures.
fn tls_run(agreed: Agreed, verified: bool) -> TlsRun {
    TlsRun {
        version: agreed.version.into(),
        cipher: agreed.cipher.into(),
        verified,
        handshakes: 0,
        resumed: 0,
        cipher_per_unit_ns: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_knows_its_user() {
        let uid = rustix::process::geteuid().as_raw().to_string();
        let all = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let mut lines = all.lines().map(|l| l.split(':').collect::<Vec<_>>());
        // A user of a directory service is not in this file.
        let Some(line) = lines.find(|l| l.get(2) == Some(&uid.as_str())) else { return };
        assert_eq!(entry(UserName::Name).as_deref(), line.first().copied());
        assert_eq!(entry(UserName::Home).as_deref(), line.get(5).copied());
    }
}
