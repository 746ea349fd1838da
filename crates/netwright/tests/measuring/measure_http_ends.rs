//! Tests around HTTP requests: the remote host's CPU time by a responder, rounds until the interval
//! is narrow enough, and servers on Unix sockets.

use std::{
    io::Write,
    os::{
        fd::AsRawFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT,
    http::{Nginx, Server, plain},
    output, run,
    serve::Serve,
};
use model::measure::{EndCpu, HttpDocument, HttpRun, Transport};

fn http(args: &[&str]) -> HttpDocument {
    let all = [&["measure", "http", "--json"], args].concat();
    serde_json::from_str(&run(NETWRIGHT, &all)).unwrap()
}

/// CPUs whose time was counted: all states of the host, by the window's length.
fn cpus(cpu: &EndCpu) -> f64 {
    let host = cpu.host_ns.known().expect("the host's CPU");
    host.values().sum::<u64>() as f64 / cpu.window_ns.0 as f64
}

#[test]
fn a_responder_beside_the_server_tells_what_its_host_did() {
    let (server, responder) = (Server::start(plain), Serve::start(&[]));
    let url = server.url("/");
    let args = ["--duration", "1s", "--responder", responder.target(), "--flows", "2,4"];
    let document = http(&[&[&url[..]], &args[..]].concat());
    assert_eq!(document.runs.len(), 2, "it looks on at every run");
    for run in &document.runs {
        let (local, peer) = (&run.cpu.local, run.cpu.peer.known().expect("the server's CPU"));
        // One host, read twice at nearly the same time.
        let (here, there) = (cpus(local), cpus(peer));
        assert!((there / here - 1.0).abs() < 0.3, "{here} CPUs here, {there} there");
        let longer = peer.window_ns.0 as f64 / local.window_ns.0 as f64;
        assert!((0.5..2.0).contains(&longer), "{:?} {:?}", local.window_ns, peer.window_ns);
        assert!(peer.host_busy_per_unit_ns.known().is_some_and(|ns| *ns > 0.0));
        assert!(peer.threads_ns.known().is_none(), "the server's threads are not the responder's");
        assert!(local.threads_ns.known().is_some_and(|ns| *ns > 0));
        assert!(
            run.warnings.iter().all(|w| !w.to_string().contains("responder")),
            "{:?}",
            run.warnings
        );
    }
    // A number of requests sets the window.
    let document = http(&[&url, "--requests", "500", "--responder", responder.target()]);
    assert!(document.runs[0].cpu.peer.known().is_some() && document.runs[0].transactions == 500);
    // Without a responder the note tells how to get the value.
    let run = &http(&[&url, "--requests", "500"]).runs[0];
    assert!(serde_json::to_string(&run.cpu.peer).unwrap().contains("--responder"));
}

#[test]
fn a_responder_elsewhere_is_said_and_a_wrong_one_is_one_line() {
    let server = Server::start(plain);
    let url = server.url("/");
    let elsewhere = Serve::start(&["--bind", "127.0.0.2"]);
    let run = &http(&[&url, "--requests", "50", "--responder", elsewhere.target()]).runs[0];
    assert!(
        run.warnings.iter().any(|w| w.to_string().contains("is not at the server's")),
        "{:?}",
        run.warnings
    );
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    writeln!(secret, "a long enough secret").unwrap();
    let path = secret.path().to_str().unwrap();
    let watchdog_running = Serve::start(&["--secret-file", path]);
    // An HTTP server is no responder, and neither is a closed port.
    let server_itself = url.trim_start_matches("http://").trim_end_matches('/');
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (target, code, says) in [
        (free.to_string(), 4, "start `netwright serve` there"),
        (server_itself.to_owned(), 4, server_itself),
        (watchdog_running.target().to_owned(), 3, "demands a secret"),
    ] {
        let args = ["measure", "http", &url, "--requests", "5", "--responder", &target];
        let out = output(NETWRIGHT, &args);
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{target}: {text}");
        assert!(text.contains(says) && text.lines().count() == 1, "{target}: {text}");
    }
    let args = ["--requests", "5", "--responder", watchdog_running.target(), "--secret-file", path];
    let document = http(&[&[&url[..]], &args[..]].concat());
    assert!(document.runs[0].cpu.peer.known().is_some());
}

/// Half of the interval's width, relative to its middle.
fn half_width(run: &HttpRun) -> Option<f64> {
    let interval = run.latency_p50_interval_ns.as_ref()?;
    Some((interval.high - interval.low) / 2.0 / interval.value)
}

#[test]
fn rounds_are_repeated_until_the_interval_is_narrow_or_it_says_why_not() {
    let server = Server::start(plain);
    let url = server.url("/");
    let round = ["--duration", "300ms", "--warmup", "20ms", "--cooldown", "0s"];
    // Too narrow to be reached: as many rounds as there is time for.
    let narrow = ["--precision", "0.1%", "--max-time", "2s"];
    let run = &http(&[&[&url[..]], &round[..], &narrow].concat()).runs[0];
    let reported = run.warnings.iter().any(|w| w.to_string().starts_with("±0.1% was not reached"));
    assert!(reported || half_width(run).unwrap() <= 0.001, "{:?}", run.warnings);
    assert_eq!(run.latency_ns.count, run.transactions);
    assert_eq!(run.statuses.values().sum::<u64>(), run.transactions);
    assert!(run.connect_ns.count >= run.window_ns.0 / 400_000_000, "a connection each round");
    // Wide enough to be reached, unless the machine changes all the time.
    let wide = ["--precision", "50%", "--max-time", "30s"];
    let run = &http(&[&[&url[..]], &round[..], &wide].concat()).runs[0];
    let reported = run.warnings.iter().any(|w| w.to_string().starts_with("±50% was not reached"));
    assert_ne!(reported, half_width(run).is_some_and(|w| w <= 0.5), "{run:?}");
    // Rounds of a fifth of the time: there are several.
    let args = ["--precision", "0.1%", "--max-time", "3s", "--rate", "500"];
    let run = &http(&[&[&url[..]], &round[..], &args].concat()).runs[0];
    let rate = run.transactions as f64 * 1e9 / run.window_ns.0 as f64;
    assert!((rate / run.transactions_per_s - 1.0).abs() < 1e-6, "the rate is of all rounds");
    let out = output(NETWRIGHT, &["measure", "http", &url, "--precision", "2%", "--requests", "5"]);
    assert_eq!(out.status.code(), Some(2));
}

/// The URL of a socket.
fn at_socket(path: &Path, rest: &str) -> String {
    format!("http+unix://{}{rest}", path.display().to_string().replace('/', "%2F"))
}

#[test]
fn nginx_on_a_unix_socket_logs_as_many_requests_as_were_counted() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("a.sock");
    let server = "keepalive_requests 100; location / { return 200 $host; }";
    let listen = format!("listen unix:{}; {server}", socket.display());
    let mut nginx = Nginx::start(folder.path(), &listen);
    let url = at_socket(&socket, "/a?b");
    let mut all = 0;
    for args in [
        &["--requests", "1000", "--flows", "4", "--threads", "2"][..],
        &["--requests", "300", "--new-connections", "--flows", "5"],
        &["--requests", "400", "--pipeline", "8", "--flows", "2"],
        &["--requests", "200", "--rate", "1000", "--flows", "2"],
        // TCP options change nothing.
        &["--requests", "50", "--dscp", "8", "--bind", "127.0.0.1", "-6"],
    ] {
        let document = http(&[&[&url[..]], args].concat());
        assert!(document.peer.program.starts_with("nginx/"), "{args:?}");
        assert_eq!(document.peer.address, format!("unix:{}", socket.display()));
        let run = &document.runs[0];
        assert_eq!((run.transport, run.placement.same_host), (Transport::Unix, true));
        assert_eq!((run.failed, run.unfinished, run.statuses[&200]), (0, 0, run.transactions));
        let connects = if run.new_connections { run.transactions } else { run.clients.into() };
        assert!(run.connect_ns.count >= connects, "{args:?}: {:?}", run.connect_ns);
        all += run.transactions;
    }
    let text = run(NETWRIGHT, &["measure", "http", &url, "--requests", "100"]);
    assert!(text.contains("over a Unix socket to http+unix://"), "{text}");
    nginx.stop();
    let log = nginx.log();
    assert_eq!((log.len() as u64, all), (all + 100, 1_950));
    let odd = log.iter().find(|line| !line.starts_with("200 GET /a "));
    assert_eq!(odd, None);
}

#[test]
fn a_unix_socket_without_a_server_or_with_one_that_stands_still_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let (none, still) = (folder.path().join("none"), folder.path().join("still"));
    let url = at_socket(&none, "/");
    let listener = UnixListener::bind(&still).unwrap();
    // SAFETY: shortens a listening socket's queue.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let _waits = UnixStream::connect(&still).unwrap();
    let stills = at_socket(&still, "/");
    let serve = format!("unix:{}", still.display());
    for (args, code, word) in [
        (&["http", &url[..]][..], 4, "no server listens"),
        (&["http", "http+unix:///run/a.sock/"], 2, "%2Frun%2Fapp.sock"),
        (&["http", &url, "http://localhost/"], 2, "two servers"),
        (&["http", &url, "--insecure"], 2, "TLS"),
        // Not forever.
        (&["http", &stills], 4, "server hang?"),
        (&["rtt", &serve], 4, "server hang?"),
    ] {
        let begun = Instant::now();
        let out = output(NETWRIGHT, &[&["measure"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{args:?}: {said}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{args:?}");
    }
}

/// The server hangs after the first contact: each new connection finds its queue full.
#[test]
fn a_unix_socket_whose_queue_stays_full_fails_by_the_time_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("still");
    let listener = UnixListener::bind(&path).unwrap();
    // SAFETY: shortens a listening socket's queue.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let url = at_socket(&path, "/");
    for more in [&["--new-connections"][..], &[]] {
        let accepts = listener.try_clone().unwrap();
        // The check before the first run is accepted, and nothing after it.
        let first = std::thread::spawn(move || accepts.accept().unwrap());
        let args = ["measure", "http", "--json", &url, "--requests", "6", "--flows", "3"];
        let limits = ["--timeout", "300ms", "--duration", "60s"];
        let begun = Instant::now();
        let out = output(NETWRIGHT, &[&args[..], more, &limits].concat());
        assert_eq!(out.status.code(), Some(4), "{}", String::from_utf8_lossy(&out.stderr));
        assert!(begun.elapsed() < Duration::from_secs(40), "{more:?}");
        let document: HttpDocument = serde_json::from_slice(&out.stdout).unwrap();
        let failures = &document.runs[0].failures;
        assert!(failures.contains_key("not connected in 300 ms"), "{more:?}: {failures:?}");
        drop(first.join().unwrap());
        // Empties the queue for the next check.
        listener.set_nonblocking(true).unwrap();
        while listener.accept().is_ok() {}
        listener.set_nonblocking(false).unwrap();
    }
}
