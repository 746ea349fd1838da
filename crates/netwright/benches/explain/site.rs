//! Two hosts on a slow link, with servers on one of them.

use std::{
    fs,
    io::{self, BufRead, BufReader},
    os::fd::AsRawFd,
    process::{Child, Command, Stdio},
};

use lab::{pair::PairSpec, testing::TestLab};
use model::{
    Nanos,
    explain::ExplainDocument,
    measure::{HttpDocument, PgDocument},
};

#[path = "../../tests/support/http.rs"]
#[allow(
    dead_code,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "the suites use more of it, and panic"
)]
mod http;
#[path = "../../tests/support/postgres.rs"]
#[allow(dead_code, clippy::expect_used, reason = "the suites use more of it, and panic")]
mod postgres;

use http::Nginx;
use postgres::{Postgres, Setup};

pub const NETWRIGHT: &str = env!("CARGO_BIN_EXE_netwright");
/// The addresses of `right` on the link, and of `left`.
const THERE: &str = "10.99.0.2";
const LEFT: &str = "10.99.0.1";
const HTTP_PORT: u16 = 8088;
/// The secret of server and client.
const SECRET: &str = "the benchmark's own";
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Select1,
    SelectOnly,
    Tpcb,
    Nginx,
}

impl Work {
    pub const ALL: [Self; 4] = [Self::Select1, Self::SelectOnly, Self::Tpcb, Self::Nginx];

    pub fn name(self) -> &'static str {
        match self {
            Self::Select1 => "select 1, prepared",
            Self::SelectOnly => "select-only, simple",
            Self::Tpcb => "tpcb-like, prepared",
            Self::Nginx => "nginx, 1 kB",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Select1 => &["--script", "select1", "--protocol", "prepared"],
            Self::SelectOnly => &["--script", "select-only"],
            Self::Tpcb => &["--script", "tpcb-like", "--protocol", "prepared"],
            Self::Nginx => &[],
        }
    }
}

/// The hosts and what runs there.
pub struct Site {
    pub delay: String,
    pg: Postgres,
    _nginx: Nginx,
    _folder: tempfile::TempDir,
    serve: Child,
    wire: Option<u32>,
    lab: TestLab,
}

impl Site {
    /// Brings all of it up.
    pub fn up(delay: &str, scale: &str) -> io::Result<Self> {
        let each: Nanos = delay.parse().map_err(|e| io::Error::other(format!("{e}")))?;
        // The link sleeps: spinning would take the CPUs that both ends need.
        let spec = PairSpec {
            delay: Some(each),
            spin: Nanos(0),
            queues: 1,
            program: Some(NETWRIGHT.into()),
            ..PairSpec::default()
        };
        let lab = TestLab::pair(&spec).map_err(io::Error::other)?;
        let right = lab.namespace("right").map(str::to_owned).unwrap_or_default();
        let folder = tempfile::tempdir()?;
        let page = folder.path().join("page");
        fs::write(&page, "x".repeat(1024))?;
        // A process starts in the namespace of the thread that starts it.
        let servers =
            std::thread::scope(|s| s.spawn(|| servers(&right, folder.path(), scale)).join());
        let (pg, nginx) = servers.map_err(|_| io::Error::other("a server does not start"))??;
        let serve = serve(&lab)?;
        let wire = wire_pid(&right);
        Ok(Self { delay: delay.into(), pg, _nginx: nginx, _folder: folder, serve, wire, lab })
    }

    fn target(&self, work: Work, address: &str) -> String {
        match work {
            Work::Nginx => format!("http://{address}:{HTTP_PORT}/page"),
            _ => format!("pg://postgres@{address}:{}/postgres", self.pg.port),
        }
    }

    fn run(&self, host: &str, args: &[&str]) -> io::Result<Vec<u8>> {
        let argv = [&[NETWRIGHT], args].concat();
        let mut command = self.lab.command(host, &argv).map_err(io::Error::other)?;
        let out = command.env("NETWRIGHT_SECRET", SECRET).stdin(Stdio::null()).output()?;
        match out.status.code() {
            // Exit code 1: the components do not add up, which this benchmark does not judge.
            Some(0 | 1) => Ok(out.stdout),
            _ => Err(io::Error::other(String::from_utf8_lossy(&out.stderr).into_owned())),
        }
    }

    /// Transactions per second over the link. `beginning_ms` is the most time that a session takes
    /// to begin.
    pub fn per_s(
        &self,
        work: Work,
        clients: u32,
        window: &str,
        beginning_ms: u32,
    ) -> io::Result<f64> {
        let (target, n) = (self.target(work, THERE), clients.to_string());
        let (kind, flag) = match work {
            Work::Nginx => ("http", "--flows"),
            _ => ("pg", "--clients"),
        };
        let warmup = format!("{}ms", 100 + beginning_ms * clients);
        let all = ["measure", kind, &target, "--json", "--quiet", flag, &n, "--duration", window];
        let more = ["--warmup", &warmup];
        let out = self.run("left", &[&all[..], &more, work.options()].concat())?;
        let rate = match work {
            Work::Nginx => {
                let d: HttpDocument = serde_json::from_slice(&out)?;
                d.runs.first().map(|r| r.transactions_per_s)
            }
            _ => {
                let d: PgDocument = serde_json::from_slice(&out)?;
                d.runs.first().map(|r| r.transactions_per_s)
            }
        };
        rate.ok_or_else(|| io::Error::other("nothing was measured"))
    }

    /// The prediction from loopback and the path's round trip.
    pub fn explain(&self, work: Work, clients: &str, length: &str) -> io::Result<ExplainDocument> {
        let (target, path) = (self.target(work, "127.0.0.1"), format!("host={LEFT}"));
        let all = ["explain", &target, "--json", "--quiet", "--clients", clients];
        let more = ["--path", &path, "--duration", length];
        let out = self.run("right", &[&all[..], &more, work.options()].concat())?;
        Ok(serde_json::from_slice(&out)?)
    }

    /// The link process's CPU time in seconds, and the frames it carried; `None` where netem
    /// carries them.
    pub fn wire(&self) -> Option<(f64, u64)> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.wire?)).unwrap_or_default();
        let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks: u64 =
            after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
        // The link writes its counters each second.
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        let said = fs::read(self.lab.folder().join("link-eth0.json")).unwrap_or_default();
        let said: lab::link::LinkStats = serde_json::from_slice(&said).unwrap_or_default();
        Some((ticks as f64 / 100.0, said.carried.iter().sum()))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.serve.kill();
        let _ = self.serve.wait();
    }
}

/// PostgreSQL with pgbench's tables, and nginx, in a namespace.
fn servers(
    namespace: &str,
    folder: &std::path::Path,
    scale: &str,
) -> io::Result<(Postgres, Nginx)> {
    let space = fs::File::open(format!("/run/netns/{namespace}"))?;
    // SAFETY: the descriptor is open; only this thread moves.
    if unsafe { libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let pg = Postgres::with(&Setup {
        hba: "host all all 10.99.0.0/16 trust",
        conf: "listen_addresses = '*'\nmax_wal_size = 4GB\ncheckpoint_timeout = 1h\n",
        ..Setup::default()
    });
    let made = pg.tool("pgbench").args(["-i", "-q", "-s", scale]).output()?;
    if !made.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&made.stderr).into_owned()));
    }
    let listen = format!("listen {HTTP_PORT}; keepalive_requests 100000000; access_log off;");
    Ok((pg, Nginx::start(folder, &listen)))
}

/// A server on `left`, which has started.
fn serve(lab: &TestLab) -> io::Result<Child> {
    let argv = [NETWRIGHT, "serve", "--json", "--quiet", "--bind", LEFT];
    let mut command: Command = lab.command("left", &argv).map_err(io::Error::other)?;
    command.env("NETWRIGHT_SECRET", SECRET).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(out) = child.stdout.as_mut() {
        BufReader::new(out).read_line(&mut String::new())?;
    }
    Ok(child)
}

/// The process that carries the frames of a namespace's link.
fn wire_pid(namespace: &str) -> Option<u32> {
    let is_wire = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains("pair-link") && line.contains(namespace)
    };
    let all = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = all.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.find(is_wire)
}
