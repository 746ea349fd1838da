//! `measure pg` beside pgbench: select-only, prepared, on one thread, against one PostgreSQL.
//!
//! Both make the same number of transactions over loopback TCP. They are pinned to the client's
//! CPU, the server to the other. CPU time is that of the whole process, start and end included.
//! Bare loops send the same bytes by epoll and by io_uring: the reference for both programs, and
//! the least that this kernel allows.

use std::{io, path::Path, process::Command, time::Duration};

use crate::{
    cell::{Cell, Compare, Contender, Figures, Metric, Target},
    floor::compiled,
    options::Options,
    ours::{NAME, NETWRIGHT, number},
    process::{Process, children_cpu_ns, pin},
    room::Room,
    table::Table,
};

#[path = "../../tests/support/postgres.rs"]
#[allow(dead_code, clippy::expect_used, reason = "the suites use more of it, and panic")]
mod postgres;

use postgres::Postgres;

/// The largest CPU time of a transaction, relative to pgbench's.
const MOST_CPU: f64 = 0.8;
const EPOLL: &str = "bare epoll";
const URING: &str = "bare io_uring";
/// Rows of `pgbench_accounts` for each unit of scale, and that scale.
const ACCOUNTS: u32 = 100_000;
const SCALE: u32 = 2;
/// The smallest rate, relative to pgbench's.
const LEAST_RATE: f64 = 1.0;
/// Transactions of one run for each millisecond of `--window`. At the rates of one server CPU a run
/// lasts some ten windows, so the start of the process hardly counts.
const PER_WINDOW_MS: u32 = 200;
const LIMIT: Duration = Duration::from_secs(180);

/// Both numbers of clients.
pub fn measure(room: &Room, options: &Options, table: &mut Table) -> io::Result<()> {
    table.part(
        "PostgreSQL, select-only, prepared, one thread: CPU time of the client's process by \
         transaction, and transactions a second",
    );
    let (server, bare) = (serve(room)?, compiled(room, "pgloop")?);
    table.columns();
    for clients in [8, 32] {
        let each = options.window_ms * PER_WINDOW_MS / clients;
        let run = Run { room, server: &server, bare: &bare, clients, each };
        let again = &run;
        let mut contenders = vec![
            Contender { name: "pgbench", run: Box::new(move || again.pgbench()) },
            Contender { name: NAME, run: Box::new(move || again.ours()) },
            Contender { name: EPOLL, run: Box::new(move || again.bare("epoll")) },
            Contender { name: URING, run: Box::new(move || again.bare("uring")) },
        ];
        if options.control {
            contenders.push(Contender { name: "again", run: Box::new(move || again.pgbench()) });
        }
        let one = |metric, subject, target| Compare { metric, subject, other: "pgbench", target };
        let compare = vec![
            one(Metric::CpuPerTransaction, "again", Target::Shown),
            one(Metric::CpuPerTransaction, NAME, Target::AtMost(MOST_CPU)),
            one(Metric::Transactions, NAME, Target::AtLeast(LEAST_RATE, None)),
            one(Metric::CpuPerTransaction, EPOLL, Target::Shown),
            one(Metric::CpuPerTransaction, URING, Target::Shown),
            one(Metric::Transactions, EPOLL, Target::Shown),
        ];
        Cell { name: format!("{clients} clients"), contenders, compare }.measure(options, table)?;
    }
    Ok(())
}

/// A server on the other CPU, with pgbench's tables.
fn serve(room: &Room) -> io::Result<Postgres> {
    // Processes started from here stay on that CPU.
    pin(room.peer)?;
    let server = Postgres::start();
    let scale = SCALE.to_string();
    let out = server.tool("pgbench").args(["-i", "-q", "-s", &scale]).output()?;
    match out.status.success() {
        true => Ok(server),
        false => Err(io::Error::other(String::from_utf8_lossy(&out.stderr).into_owned())),
    }
}

struct Run<'a> {
    room: &'a Room,
    server: &'a Postgres,
    bare: &'a Path,
    clients: u32,
    /// Transactions of each client.
    each: u32,
}

impl Run<'_> {
    fn pgbench(&self) -> io::Result<Figures> {
        let mut command = self.server.tool("pgbench");
        command.env("PGHOST", "127.0.0.1").args(["-n", "-S", "-M", "prepared", "-j", "1"]);
        command.args(["-c", &self.clients.to_string(), "-t", &self.each.to_string()]);
        self.reported(command)
    }

    /// The loop that sends the same bytes and records nothing.
    fn bare(&self, how: &str) -> io::Result<Figures> {
        let mut command = Command::new(self.bare);
        command.args([how, &self.server.port.to_string(), &self.clients.to_string()]);
        command.args([self.each.to_string(), (SCALE * ACCOUNTS).to_string()]);
        self.reported(command)
    }

    /// The figures of pgbench's report; the loops print the same.
    fn reported(&self, command: Command) -> io::Result<Figures> {
        let (printed, cpu) = self.run(command)?;
        let rate = printed.lines().find_map(|l| l.strip_prefix("tps = ")?.split(' ').next());
        let rate = rate.and_then(|r| r.parse().ok());
        let rate = rate.ok_or_else(|| io::Error::other(format!("it printed {printed:?}")))?;
        Ok(Figures::from([(Metric::CpuPerTransaction, cpu), (Metric::Transactions, rate)]))
    }

    fn ours(&self) -> io::Result<Figures> {
        let mut command = Command::new(NETWRIGHT);
        command.args(["measure", "pg", &self.server.url("postgres"), "--json"]);
        command.args(["--script", "select-only", "--protocol", "prepared", "--threads", "1"]);
        let (all, cpu) = ((self.clients * self.each).to_string(), self.room.local.to_string());
        command.args(["--clients", &self.clients.to_string(), "--transactions", &all]);
        command.args(["--cpu", &cpu]);
        let (printed, cpu) = self.run(command)?;
        let document = serde_json::from_str(&printed)?;
        let done = number(&document, "/runs/0/transactions")?;
        if (done - f64::from(self.clients * self.each)).abs() > 0.5 {
            return Err(io::Error::other(format!("netwright did {done} of {all} transactions")));
        }
        let rate = number(&document, "/runs/0/transactions_per_s")?;
        Ok(Figures::from([(Metric::CpuPerTransaction, cpu), (Metric::Transactions, rate)]))
    }

    /// The output, and the CPU time per transaction in nanoseconds.
    fn run(&self, command: Command) -> io::Result<(String, f64)> {
        let before = children_cpu_ns()?;
        let printed = Process::start(self.room, command, self.room.local)?.finish(LIMIT)?;
        let used = children_cpu_ns()? - before;
        Ok((printed, used as f64 / f64::from(self.clients * self.each)))
    }
}
