//! Tests of `explain --port` and `--pid` against what clients and servers counted and timed
//! themselves.
//!
//! Counts must be exact. The times of a server that shares its CPU include waiting for it, so a
//! time has several looks.

use std::{
    fs,
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT,
    http::{Nginx, Request, Server},
    looks::in_most_looks,
    needs_root, output,
    postgres::{Postgres, Setup},
    run,
    serve::Serve,
};
use lab::{pair::PairSpec, testing::TestLab};
use model::{
    Nanos, Reading,
    measure::{HttpDocument, RttDocument},
    passive::{ConnectionClass, PassiveDocument},
};

/// Servers that compete with another test give unreliable times.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    needs_root();
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running `explain`, killed when dropped.
struct Watching(Child);

impl Watching {
    /// Starts it, and waits until all programs are attached.
    fn begin(args: &[&str]) -> Self {
        let mut command = Command::new(NETWRIGHT);
        command.args(["explain", "--json", "--always", "--duration", "2m"]).args(args);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut this = Self(child);
        let until = Instant::now() + Duration::from_secs(60);
        while !this.watches() {
            let ended = this.0.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < until, "it does not watch: {ended:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        this
    }

    /// Whether its programs are attached and it waits.
    fn watches(&self) -> bool {
        let proc = format!("/proc/{}", self.0.id());
        let Ok(descriptors) = fs::read_dir(format!("{proc}/fd")) else { return false };
        let links = descriptors.flatten().filter_map(|d| fs::read_link(d.path()).ok());
        let held = links.filter(|to| {
            let to = to.to_string_lossy();
            to.contains("bpf_link") || to.contains("bpf-link") || to.contains("raw-tracepoint")
        });
        let stat = fs::read_to_string(format!("{proc}/stat")).unwrap_or_default();
        held.count() >= 6 && stat.contains(") S ")
    }

    /// Ends it by Ctrl-C.
    fn end(mut self) -> PassiveDocument {
        let pid = i32::try_from(self.0.id()).unwrap();
        // SAFETY: our own child, not waited for yet.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
        let mut out = vec![];
        std::io::Read::read_to_end(&mut self.0.stdout.take().unwrap(), &mut out).unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.0.stderr.take().unwrap(), &mut said).unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(0), "{said}");
        let document: PassiveDocument = serde_json::from_slice(&out).unwrap();
        sound(&document);
        assert!(document.interrupted);
        document
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks that apply to every document with complete observation.
fn sound(d: &PassiveDocument) {
    assert_eq!((d.kind.as_str(), d.schema_version), ("explain-passive", 1));
    assert!(d.observed_share > 0.999, "{}", d.observed_share);
    for c in &d.classes {
        assert_eq!(c.service_ns.count, c.exchanges);
        let parts = [&c.path_rtt_ns, &c.path_least_rtt_ns, &c.queueing_ns, &c.wakeup_ns];
        for t in parts.iter().filter_map(|p| p.known()).chain([&c.service_ns]) {
            assert!((1..=c.exchanges).contains(&t.count), "{c:?}");
            assert_eq!((t.p90.is_some(), t.p99.is_some()), (t.count >= 10, t.count >= 100));
            assert!(t.p90.is_none_or(|p90| t.p50 <= p90), "{t:?}");
            assert!(t.p99 >= t.p90 || t.p99.is_none(), "{t:?}");
        }
        if let (Some(low), Some(high)) = (c.network_share_low.known(), c.network_share_high.known())
        {
            assert!((0.0..1.0).contains(low) && (0.0..1.0).contains(high), "{c:?}");
        }
    }
}

/// The class with most exchanges.
fn busiest(d: &PassiveDocument) -> &ConnectionClass {
    d.classes.first().expect("there is one")
}

/// The mean of queueing and service.
fn in_server(c: &ConnectionClass) -> f64 {
    c.service_ns.mean + c.queueing_ns.known().map_or(0.0, |q| q.mean)
}

/// Our server and client: the observer's result and both programs' own. `None` where the client
/// gave up on a busy machine.
fn look_at_ours(serve: &Serve, flows: &str) -> Option<(PassiveDocument, RttDocument)> {
    let watching = Watching::begin(&["--pid", &serve.pid().to_string()]);
    let args = ["measure", "rtt", serve.target(), "--json", "--duration", "600ms"];
    let sizes = ["--request", "100", "--response", "300", "--flows", flows, "--warmup", "0s"];
    let out = output(NETWRIGHT, &[&args[..], &sizes].concat());
    match out.status.code() {
        Some(0) => Some((watching.end(), serde_json::from_slice(&out.stdout).unwrap())),
        Some(4) => None,
        code => panic!("{code:?}: {}", String::from_utf8_lossy(&out.stderr)),
    }
}

/// The class of its measured connections, with responses of 300 bytes; the other class is the
/// control connection.
fn of_ours(d: &PassiveDocument) -> &ConnectionClass {
    d.classes.iter().find(|c| c.response_bytes == 300.0).expect("none answered with 300 bytes")
}

#[test]
fn a_service_time_is_what_the_server_itself_says() {
    let _alone = alone();
    for typed in ["100us", "1ms"] {
        let serve = Serve::start(&["--service-time", typed]);
        let mut seen = vec![];
        let good = in_most_looks(|| {
            let Some((passive, rtt)) = look_at_ours(&serve, "1") else { return false };
            let (class, rtt) = (of_ours(&passive), &rtt.runs[0]);
            assert_eq!(class.pids, [u32::try_from(serve.pid()).unwrap()]);
            assert_eq!(class.transport, "tcp");
            // The first request of each connection is longer, as it identifies the client.
            let more = (class.request_bytes - 100.0) * class.exchanges as f64;
            assert!((0.0..200.0).contains(&more), "{class:?}");
            // The client's counts exclude warm-up and cool-down, of varying size; those of nginx
            // and PostgreSQL include everything.
            assert!(class.exchanges >= rtt.transactions, "{class:?}: {}", rtt.transactions);
            let truth = rtt.peer_service_ns.unwrap();
            seen.push((class.service_ns.mean, truth));
            // All of it is spinning, except the end of one system call and the beginning of the
            // next.
            (-2_000.0..truth * 0.05 + 8_000.0).contains(&(class.service_ns.mean - truth))
        });
        assert!(good, "{typed}: {seen:?}");
    }
}

#[test]
fn what_waits_for_others_is_queueing_and_no_service() {
    let _alone = alone();
    let serve = Serve::start(&["--service-time", "500us"]);
    let mut seen = vec![];
    let good = in_most_looks(|| {
        let Some((passive, rtt)) = look_at_ours(&serve, "4") else { return false };
        let class = of_ours(&passive);
        let (service, queueing) = (&class.service_ns, class.queueing_ns.known().unwrap());
        // No connection has more than one request under way.
        let all = in_server(class) * class.exchanges as f64;
        assert!(all <= 4.0 * passive.window_ns.0 as f64, "{class:?}");
        let (reported, waited) = (rtt.runs[0].peer_service_ns.unwrap(), rtt.runs[0].rtt_ns.mean);
        let share = in_server(class) / waited;
        seen.push((service.mean / reported, queueing.mean / reported, share));
        // Four clients share one thread. Each waits for up to three others, and for the thread to
        // get a CPU. A client waits for both, and for its own CPU. Requests before and after its
        // window are observed too.
        (0.95..1.1).contains(&(service.mean / reported))
            && queueing.mean > 1.8 * reported
            && share < 1.3
    });
    assert!(good, "{seen:?}");
}

#[test]
fn the_path_is_the_wires_delay_also_in_another_namespace() {
    let _alone = alone();
    let spec = PairSpec {
        queues: 1,
        delay: Some(Nanos(3_000_000)),
        program: Some(NETWRIGHT.into()),
        ..PairSpec::default()
    };
    let lab = TestLab::pair(&spec).unwrap();
    let all = [NETWRIGHT, "serve", "--json", "--port", "0", "--bind", "10.99.0.2", "--open"];
    let peer = Serve::of(lab.command("right", &all).unwrap());
    let mut seen = vec![];
    let good = in_most_looks(|| {
        let watching = Watching::begin(&["--pid", &peer.pid().to_string()]);
        let args = ["measure", "rtt", peer.target(), "--json", "--duration", "500ms"];
        let out = lab.output("left", &[&[NETWRIGHT], &args[..]].concat()).unwrap();
        if out.code == 4 {
            return false;
        }
        assert_eq!(out.code, 0, "{}", String::from_utf8_lossy(&out.stderr));
        let rtt: RttDocument = serde_json::from_slice(&out.stdout).unwrap();
        let passive = watching.end();
        let class = busiest(&passive);
        let path = class.path_rtt_ns.known().unwrap();
        let least = class.path_least_rtt_ns.known().unwrap();
        let waited = rtt.runs[0].rtt_ns.mean;
        seen.push((path.mean, least.p50, in_server(class), waited));
        // The link delays each packet by 3 ms each way, so no round trip was shorter. The path's
        // time and the server's add up to the client's wait.
        assert!(path.p50 >= 6_000_000 * 97 / 100, "{class:?}");
        (5_800_000..7_000_000).contains(&least.p50)
            && (0.8..1.25).contains(&((path.mean + in_server(class)) / waited))
    });
    assert!(good, "{seen:?}");
}

/// A handler that takes 20 ms for each request.
fn slow(_: &Request, to: &mut std::net::TcpStream) -> bool {
    use std::io::Write;
    std::thread::sleep(Duration::from_millis(20));
    let _ = to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    false
}

#[test]
fn nginx_is_seen_as_it_logs_itself() {
    let _alone = alone();
    let behind = Server::start(slow);
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut quick = Nginx::start(folders[0].path(), "location / { return 200 hello; }");
    let pass = format!("location / {{ proxy_pass {}; }}", behind.url("/"));
    let mut slow = Nginx::start(folders[1].path(), &pass);
    let ports = [&quick, &slow].map(|n| n.address().port().to_string());
    let watching = Watching::begin(&["--port", &ports[0], "--port", &ports[1]]);
    let mut counted = vec![];
    for (nginx, requests) in [(&quick, "400"), (&slow, "30")] {
        let args = ["measure", "http", &nginx.url("/"), "--json", "--requests", requests];
        let text = run(NETWRIGHT, &[&args[..], &["--flows", "2"]].concat());
        let document: HttpDocument = serde_json::from_str(&text).unwrap();
        counted.push(document.runs[0].clone());
    }
    let passive = watching.end();
    quick.stop();
    slow.stop();
    let class = |port: &String| {
        let port = port.parse().unwrap();
        passive.classes.iter().find(|c| c.port == Reading::Known(port)).unwrap()
    };
    let (of_quick, of_slow) = (class(&ports[0]), class(&ports[1]));
    for (class, nginx, run) in [(of_quick, &quick, &counted[0]), (of_slow, &slow, &counted[1])] {
        // Every request, by nginx's own count and the client's.
        let logged: Vec<f64> =
            nginx.log().iter().filter_map(|line| request_time_ns(line)).collect();
        assert_eq!(class.exchanges, logged.len() as u64);
        assert_eq!(class.exchanges, run.transactions);
        assert_eq!(class.process, "nginx");
        let bytes = run.response_bytes as f64 / run.transactions as f64;
        assert!((class.response_bytes - bytes).abs() < 1.0, "{class:?}");
        // nginx logs whole milliseconds, by a clock that it reads once per event loop.
        let logged = logged.iter().sum::<f64>() / logged.len() as f64;
        let seen = class.service_ns.mean;
        assert!((logged * 0.9 - 1e6..logged * 1.1 + 2e6).contains(&seen), "{seen} for {logged}");
        // No longer than the client's wait.
        assert!(in_server(class) < run.latency_ns.mean, "{class:?}");
    }
    assert!(of_slow.service_ns.p50 >= 19_000_000, "{of_slow:?}");
    assert!(of_slow.service_ns.mean > 5.0 * of_quick.service_ns.mean, "{of_quick:?}");
}

/// `$request_time`, the fourth word.
fn request_time_ns(line: &str) -> Option<f64> {
    line.split(' ').nth(3)?.parse::<f64>().ok().map(|s| s * 1e9)
}

#[test]
fn postgresql_is_seen_as_it_tells_itself() {
    let _alone = alone();
    let conf = "shared_preload_libraries = 'pg_stat_statements'";
    let server = Postgres::with(&Setup { conf, ..Setup::default() });
    server.sql("create extension pg_stat_statements");
    // The readiness check was a request too.
    server.sql("select pg_stat_statements_reset()");
    let (quick, slow) = ("select 1;", "select pg_sleep(0.004);");
    let of = |statement: &str, times: usize| {
        let watching = Watching::begin(&["--port", &server.port.to_string()]);
        let file = server.folder().join("script.sql");
        fs::write(&file, format!("{statement}\n").repeat(times)).unwrap();
        let mut psql = server.tool("psql");
        psql.env("PGHOST", "127.0.0.1").env("PGSSLMODE", "disable").env("PGGSSENCMODE", "disable");
        let done = psql.args(["-XAtqf"]).arg(&file).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let passive = watching.end();
        let class = busiest(&passive).clone();
        // One more response, to the connection's first message.
        assert_eq!((passive.classes.len(), class.exchanges), (1, times as u64 + 1), "{class:?}");
        assert_eq!((class.process.as_str(), class.pids.len()), ("postgres", 1));
        class
    };
    let (of_quick, of_slow) = (of(quick, 300), of(slow, 60));
    let reported = |like: &str| -> (u64, f64) {
        let sql = format!(
            "select calls, mean_exec_time from pg_stat_statements where query like '{like}'"
        );
        let row = server.sql(&sql);
        let (calls, ms) = row.trim().split_once('|').unwrap();
        (calls.parse().unwrap(), ms.parse::<f64>().unwrap() * 1e6)
    };
    let (quick, slow) = (reported("select $1"), reported("select pg_sleep%"));
    assert_eq!((quick.0, slow.0), (300, 60));
    // Executing is part of the time between request and response, and so is parsing. The start of
    // the connection is another exchange.
    let all = of_slow.service_ns.mean * 61.0;
    assert!(all >= slow.1 * 60.0 * 0.99, "{of_slow:?} for {slow:?}");
    let p50 = of_slow.service_ns.p50 as f64;
    assert!((3.85e6..slow.1 * 1.3 + 1e6).contains(&p50), "{p50} for {slow:?}");
    assert!(of_quick.service_ns.mean > quick.1, "{of_quick:?} for {quick:?}");
    assert!(of_slow.service_ns.p50 > of_quick.service_ns.p50 && slow.1 > quick.1);
}

#[test]
fn a_process_is_watched_with_its_descendants_and_their_unix_sockets() {
    let _alone = alone();
    let server = Postgres::start();
    let master = fs::read_to_string(server.data().join("postmaster.pid")).unwrap();
    let watching = Watching::begin(&["--pid", master.lines().next().unwrap()]);
    // By its Unix socket.
    server.sql("select 1; select 2");
    let passive = watching.end();
    let class = busiest(&passive);
    assert_eq!((class.transport.as_str(), class.process.as_str()), ("unix", "postgres"));
    assert!(!class.port.is_known() && !class.path_rtt_ns.is_known(), "{class:?}");
    // The connection's first message, and a text of two statements.
    assert_eq!((class.exchanges, class.timed_by_call), (2, 2), "{class:?}");
}

#[test]
fn what_costs_too_much_is_observed_for_a_part_of_the_time() {
    let _alone = alone();
    let serve = Serve::start(&[]);
    let pid = serve.pid().to_string();
    let mut client = Command::new(NETWRIGHT);
    client.args(["measure", "rtt", serve.target(), "--duration", "60s", "--flows", "16"]);
    let client = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut client = Watching(client);
    let mut seen = vec![];
    let good = in_most_looks(|| {
        let out = output(NETWRIGHT, &["explain", "--json", "--pid", &pid, "--duration", "2s"]);
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        let d: PassiveDocument = serde_json::from_slice(&out.stdout).unwrap();
        let took = *d.cost.busiest_cpu_share.known().unwrap();
        assert_eq!(d.cost.budget_share, Reading::Known(0.01));
        seen.push((d.observed_share, took, busiest(&d).exchanges));
        // A late check of the overhead has cost more: the observing threads have no CPU of their
        // own.
        took < 0.02 && d.observed_share > 0.0 && busiest(&d).exchanges > 0
    });
    client.0.kill().unwrap();
    assert!(good, "{seen:?}");
}

#[test]
fn what_cannot_be_watched_is_refused_in_a_line() {
    needs_root();
    let quiet = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = quiet.local_addr().unwrap().port().to_string();
    let own = std::process::id().to_string();
    let explain = |args: &[&str]| output(NETWRIGHT, &[&["explain"], args].concat());
    for (args, code, word) in [
        (&["--pid", "4194304"][..], 4, "no process 4194304"),
        (&["--port", "1"], 4, "no process listens on TCP port 1"),
        (&["--port", &port, "--duration", "200ms"], 4, "no request was read and answered"),
        (&["--pid", &own, "--port", &port, "--duration", "200ms"], 4, "no traffic"),
        (&["--port", &port, "--duration", "1ms"], 2, "--duration"),
        (&["--port", "0"], 2, "--port"),
        (&["--port", &port, "rtt://127.0.0.1"], 2, "cannot be used"),
        (&["--pid", &own, "--flows", "2"], 2, "cannot be used"),
        (&[], 2, "--port PORT"),
    ] {
        let out = explain(args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
    // As an unprivileged user; from a copy, as the build folder may be closed to others.
    let folder = tempfile::Builder::new().prefix("nwtest-").tempdir_in("/tmp").unwrap();
    let copy = folder.path().join("netwright");
    fs::copy(NETWRIGHT, &copy).unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let ids = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let copy = copy.to_str().unwrap();
    let out = output("setpriv", &[&ids[..], &[copy, "explain", "--port", &port]].concat());
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert!(said.contains("CAP_BPF and CAP_PERFMON"), "{said}");
}
