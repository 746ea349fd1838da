//! `measure pg`: one run for each number of clients.

use std::{
    net::UdpSocket,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use model::measure::{End, FarProgram, PgDocument, PgProtocol, PgRun, PgSpec};

use super::{
    address::{Address, Around},
    builtin,
    client::Client,
    near::{Near, Shape},
    plan::Plan,
    recorder::{Kept, Recorder},
    result::{self, Round},
    script::{Rng, Value, Vars},
    session::{Session, Wrong},
};
use crate::{
    Error, Result,
    client::conduct::{Course, Run, conduct},
    host::calibrate,
    net::{self, now_ns, target::local_address},
    rtt::{
        many::Schedule,
        measure::{BATCH_NS, Measured, unix_s},
        recorder::Window,
    },
    seats::{self, Seats},
    team::Team,
};

/// Runs transactions as asked; `password` is one that stood in the connection string.
///
/// # Errors
/// Nothing could be measured at all; what breaks later is in [`Measured::broken`].
pub fn measure(
    spec: &PgSpec,
    password: Option<&str>,
    run: Run<'_>,
) -> Result<Measured<PgDocument>> {
    check(spec)?;
    let plan = Plan::of(spec)?;
    let address = address_of(spec, password)?;
    let mut session = Session::open(&address, &spec.common)?;
    let scale = scale(spec, &mut session)?;
    let common = &spec.common;
    let ip = session.door.ip();
    let same_host =
        ip.is_none_or(|to| to.ip().is_loopback() || UdpSocket::bind((to.ip(), 0)).is_ok());
    let seats = seats::near(&common.pin, common.threads, same_host, ip)?;
    let calibration = calibrate(seats.cpus.first().copied())?;
    let seed = spec.seed.unwrap_or_else(|| now_ns().wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut document = PgDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "pg".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local: End { address: session.ours.clone(), ..crate::host_identity().end },
        peer: End {
            program: format!("PostgreSQL {}", session.version),
            address: session.door.name.clone(),
            ..End::default()
        },
        scale,
        seed,
        floor: calibration.certificate([]),
        runs: vec![],
        cut_short: false,
    };
    let shape = shape(spec, plan, &session)?;
    drop(session);
    let mut broken = None;
    for &clients in &spec.clients {
        if run.stop.load(Ordering::Relaxed) || broken.is_some() {
            document.cut_short = true;
            break;
        }
        let begin = Begin { spec, clients, shape: &shape, scale, seed };
        match round(&begin, &seats, run) {
            Ok(round) => {
                document.cut_short |= round.is_cut_short(spec);
                broken.clone_from(&round.broken);
                let mut one = result::pg_run(spec, clients, &shape, &seats, same_host, &round);
                one.warnings.extend(address.warnings.iter().cloned());
                document.runs.push(one);
            }
            Err(e) => broken = Some(e),
        }
    }
    document.cut_short |= broken.is_some() || run.stop.load(Ordering::Relaxed);
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
    if common.far != FarProgram::Server {
        return usage("PostgreSQL is measured against a server of its own".into());
    }
    if spec.clients.is_empty() || common.threads == 0 {
        return usage("no number of clients or threads is given".into());
    }
    if let Some(few) = spec.clients.iter().find(|c| **c < common.threads) {
        return usage(format!(
            "{few} clients cannot keep {} threads busy; give at least as many clients",
            common.threads
        ));
    }
    if spec.pipeline && spec.protocol == PgProtocol::Simple {
        return usage("a pipeline needs --protocol extended or prepared".into());
    }
    if spec.rate_per_s == Some(0) || spec.transactions == Some(0) {
        return usage("no transactions are asked for".into());
    }
    if spec.timeout_ns.0 < 1_000_000 {
        return usage("a time limit below 1ms fails statements that only wait their turn".into());
    }
    Ok(())
}

/// The server that a connection string means here.
pub fn address_of(spec: &PgSpec, password: Option<&str>) -> Result<Address> {
    let variable = |name: &str| std::env::var(name).ok();
    let around = Around { variable: &variable, user: &user_name };
    Address::of(&spec.common.target, password, &around)
}

/// The name of the user that this process runs as.
fn user_name() -> Option<String> {
    // SAFETY: a zeroed record is valid and the call fills it; its name points into the buffer,
    // which outlives the reading of it.
    unsafe {
        let mut room = vec![0; 16 << 10];
        let (mut entry, mut found): (libc::passwd, _) =
            (std::mem::zeroed(), std::ptr::null_mut::<libc::passwd>());
        let failed = libc::getpwuid_r(
            libc::geteuid(),
            &raw mut entry,
            room.as_mut_ptr(),
            room.len(),
            &raw mut found,
        );
        if failed != 0 || found.is_null() {
            return None;
        }
        std::ffi::CStr::from_ptr(entry.pw_name).to_str().ok().map(str::to_owned)
    }
}

/// The scripts' `:scale`: as asked, or as the tables are that `--init` or pgbench made.
fn scale(spec: &PgSpec, session: &mut Session) -> Result<u32> {
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

fn shape(spec: &PgSpec, plan: Plan, session: &Session) -> Result<Shape> {
    let common = &spec.common;
    let door = session.door.clone();
    Ok(Shape {
        to: door.to,
        transport: door.transport,
        name: door.name,
        from: common.bind.as_deref().map(local_address).transpose()?,
        socket: common.socket.clone(),
        who: door.who,
        plan,
        connect_each: spec.connect_each,
        wait: common.wait,
        timeout_ns: spec.timeout_ns.0,
    })
}

/// One run's beginning.
struct Begin<'a> {
    spec: &'a PgSpec,
    clients: u32,
    shape: &'a Shape,
    scale: u32,
    seed: u64,
}

impl Begin<'_> {
    /// A client as pgbench's scripts find it.
    fn client(&self, n: u32) -> Client {
        let seed = self.seed.cast_signed();
        let default_seed = self.seed.rotate_left(17).cast_signed();
        let mut vars = Vars::predefined(n.into(), self.scale.into(), default_seed, seed);
        for (name, value) in &self.spec.variables {
            vars.set(name, Value::Text(value.clone()));
        }
        // Apart also where seeds follow each other.
        let own = self.seed.wrapping_add(u64::from(n) << 32 | u64::from(n));
        Client::new(vars, Rng::new(own), own, self.shape.plan.statements.len())
    }
}

/// One run: threads, window, what came of it.
fn round(begin: &Begin<'_>, seats: &Seats, run: Run<'_>) -> Result<Round> {
    let Begin { spec, clients, shape, .. } = *begin;
    descriptors(clients)?;
    let (team, window) = (Team::new(spec.common.threads as usize), Window::closed());
    let kept = Kept {
        open_loop: spec.rate_per_s.is_some(),
        scripts: shape.plan.scripts.len(),
        statements: if spec.per_statement { shape.plan.statements.len() } else { 0 },
    };
    let mut recorders: Vec<Recorder> =
        team.members.iter().map(|_| Recorder::new(kept, BATCH_NS)).collect();
    let (begun_ns, over) = (now_ns(), AtomicBool::new(false));
    let what = format!("pg, {clients} clients");
    let course = std::thread::scope(|threads| -> Course {
        for (n, recorder) in recorders.iter_mut().enumerate() {
            let (team, window, over) = (&team, &window, &over);
            let work = move || {
                let Some(member) = team.members.get(n) else { return };
                let quota = quota_of(spec, n);
                let schedule = schedule_of(spec, begun_ns + 1_000_000, n);
                let near = Near { shape, window, team, member, schedule, quota };
                let own = (n as u32..clients).step_by(team.members.len().max(1));
                let own = own.map(|client| begin.client(client)).collect();
                near_thread(n, own, seats, &near, recorder, over);
            };
            if let Err(e) =
                std::thread::Builder::new().name(format!("nw-near-{n}")).spawn_scoped(threads, work)
            {
                team.break_off(Error::io("no thread", &e));
            }
        }
        while team.tids().len() < team.members.len() && !team.stopping() {
            std::thread::yield_now();
        }
        let course = conduct(run, None, &spec.common, &team, &window, &what, &mut |_| {});
        over.store(true, Ordering::Release);
        team.end();
        course
    });
    Ok(Round { recorders, course, begun_ns, seen: team.seen(), broken: team.broken() })
}

/// Whether this process may have so many sockets.
fn descriptors(clients: u32) -> Result<()> {
    net::raise_descriptor_limit();
    let limit = net::descriptor_limit();
    // The program's own, and what the kernel has not taken back yet.
    if u64::from(clients) + 64 > limit {
        return Err(Error::Environment(format!(
            "{clients} connections need more descriptors than the {limit} that this process may \
             have (ulimit -n)"
        )));
    }
    Ok(())
}

/// A thread's part of the transactions.
fn quota_of(spec: &PgSpec, n: usize) -> Option<u64> {
    let threads = u64::from(spec.common.threads.max(1));
    spec.transactions.map(|all| all / threads + u64::from((n as u64) < all % threads))
}

/// Threads take turns; the first is not due before all have begun.
fn schedule_of(spec: &PgSpec, begin_ns: u64, n: usize) -> Option<Schedule> {
    spec.rate_per_s.map(|rate| {
        let threads = f64::from(spec.common.threads);
        let gap_ns = 1e9 * threads / rate as f64;
        // With a number of transactions the beginning is that of the window.
        let begin_ns = if spec.transactions.is_some() { 0 } else { begin_ns };
        Schedule { start_ns: begin_ns + (gap_ns * n as f64 / threads) as u64, gap_ns }
    })
}

fn near_thread(
    n: usize,
    clients: Vec<Client>,
    seats: &Seats,
    near: &Near<'_>,
    recorder: &mut Recorder,
    over: &AtomicBool,
) {
    let (team, member) = (near.team, near.member);
    if let Some(Err(e)) = seats.cpus.get(n % seats.cpus.len().max(1)).map(|c| seats::pin(*c)) {
        member.see(|seen| seen.warnings.push(e.to_string()));
    }
    let _running = member.sleeper.begin();
    near.run(clients, recorder);
    member.see(|seen| recorder.ran_on.tell(seen));
    if near.quota.is_some() {
        if team.fulfilled() {
            team.stop();
        }
        // What a thread has used of the CPU is lost with its end.
        while !over.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
