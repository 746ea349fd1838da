//! `measure pg --init`: creates the tables of pgbench's scripts as `pgbench -i` does, so that each
//! tool works on the other's tables.
//!
//! **Source**: PostgreSQL's documentation, "pgbench", "Initialization Options".

use std::{
    io::Write as _,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use model::{
    Nanos,
    measure::{PgInitDocument, PgSpec},
};
use traffic::{
    Error, Result,
    engine::{conduct::Run, measured::unix_s},
    net::now_ns,
};

use super::{
    measure::address_of,
    session::{Session, Wrong},
};

/// Rows for one branch, as in TPC-B.
const TELLERS: u64 = 10;
const ACCOUNTS: u64 = 100_000;
/// From this many branches on, account numbers need 64 bits.
const BIG: u32 = 20_000;
/// Timeout of each statement: a large scale takes long.
const ANSWER: Duration = Duration::from_secs(3600);
/// Bytes sent at a time.
const CHUNK: usize = 64 << 10;

/// Creates the tables; existing ones are dropped, as by pgbench.
///
/// # Errors
/// The server does not answer or refuses, or the user interrupted, which leaves no table.
pub fn init(spec: &PgSpec, password: Option<&str>, run: Run<'_>) -> Result<PgInitDocument> {
    let scale = spec.scale.unwrap_or(1);
    let address = address_of(spec, password)?;
    let mut session = Session::open(&address, &spec.common, ANSWER, run.stop)?;
    let (begun, started_unix_s) = (now_ns(), unix_s());
    ask(&mut session, run, "BEGIN")?;
    for statement in tables(scale) {
        ask(&mut session, run, &statement)?;
    }
    let filling = now_ns();
    fill(&mut session, scale, run)?;
    ask(&mut session, run, "COMMIT")?;
    let filled = now_ns();
    for (table, key) in [("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")] {
        (run.progress)("making the primary keys", 0.95);
        ask(&mut session, run, &format!("VACUUM ANALYZE pgbench_{table}"))?;
        ask(&mut session, run, &format!("ALTER TABLE pgbench_{table} ADD PRIMARY KEY ({key})"))?;
    }
    ask(&mut session, run, "VACUUM ANALYZE pgbench_history")?;
    let over = now_ns();
    Ok(PgInitDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "pg_init".into(),
        started_unix_s,
        target: spec.common.target.clone(),
        peer: session.server(),
        scale,
        accounts: u64::from(scale) * ACCOUNTS,
        took_ns: Nanos(over - begun),
        copy_ns: Nanos(filled - filling),
        keys_ns: Nanos(over - filled),
        warnings: [address.warnings, session.warnings.clone()].concat(),
    })
}

fn ask<'a>(session: &mut Session<'a>, run: Run<'a>, sql: &str) -> Result<()> {
    session.allow(ANSWER, run.stop);
    session.ask(sql).map(|_| ()).map_err(|wrong| match stopped(run.stop) {
        true => Error::Environment(
            "--init was ended early: the tables are not whole; run it again".into(),
        ),
        false => wrong.error("--init"),
    })
}

/// The statements that create the tables, in one transaction: otherwise `COPY` could not freeze its
/// rows.
fn tables(scale: u32) -> Vec<String> {
    let aid = if scale >= BIG { "bigint" } else { "int" };
    let make = |name: &str, columns: &str, with: &str| {
        format!("CREATE TABLE pgbench_{name} ({columns}){with}")
    };
    let full = " WITH (fillfactor = 100)";
    vec![
        "DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_history, \
         pgbench_tellers"
            .into(),
        make(
            "history",
            &format!("tid int, bid int, aid {aid}, delta int, mtime timestamp, filler char(22)"),
            "",
        ),
        make("tellers", "tid int NOT NULL, bid int, tbalance int, filler char(84)", full),
        make(
            "accounts",
            &format!("aid {aid} NOT NULL, bid int, abalance int, filler char(84)"),
            full,
        ),
        make("branches", "bid int NOT NULL, bbalance int, filler char(88)", full),
    ]
}

fn fill<'a>(session: &mut Session<'a>, scale: u32, run: Run<'a>) -> Result<()> {
    let scale = u64::from(scale);
    rows(session, "branches (bid, bbalance)", scale, run, |n, out| {
        let _ = writeln!(out, "{n}\t0");
    })?;
    rows(session, "tellers (tid, bid, tbalance)", scale * TELLERS, run, |n, out| {
        let _ = writeln!(out, "{n}\t{}\t0", (n - 1) / TELLERS + 1);
    })?;
    // The filler is blank, not null, which gives rows the length that TPC-B specifies.
    rows(session, "accounts", scale * ACCOUNTS, run, |n, out| {
        let _ = writeln!(out, "{n}\t{}\t0\t", (n - 1) / ACCOUNTS + 1);
    })
}

/// Copies rows 1 to `count` into a table.
fn rows<'a>(
    session: &mut Session<'a>,
    table: &str,
    count: u64,
    run: Run<'a>,
    row: impl Fn(u64, &mut Vec<u8>),
) -> Result<()> {
    let what = format!("filling pgbench_{}", table.split(' ').next().unwrap_or_default());
    let mut next = 1;
    let more = |out: &mut Vec<u8>| {
        while next <= count && out.len() < CHUNK {
            row(next, out);
            next += 1;
        }
        (run.progress)(&what, next as f64 / count.max(1) as f64 * 0.9);
        !stopped(run.stop)
    };
    let sql = format!("COPY pgbench_{table} FROM STDIN WITH (FREEZE ON)");
    match session.copy(&sql, ANSWER, run.stop, more) {
        Err(_) if stopped(run.stop) => {
            Err(Error::Environment("--init was ended early: no table was made".into()))
        }
        Err(Wrong::Server(e)) => Err(Wrong::Server(e).error("--init")),
        Err(Wrong::Gone(e)) => Err(e),
        Ok(()) => Ok(()),
    }
}

fn stopped(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}
