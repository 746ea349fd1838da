//! Tests of `explain` with servers that change during the measurement, hang, or are on a Unix
//! socket. A sum that does not add up is inconclusive with a reason, and the measurements are kept.

use std::{
    io::Write,
    net::TcpStream,
    process::{Child, Command, Output, Stdio},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT,
    http::{Nginx, Request, Server},
    output,
    serve::Serve,
    tls::Authority,
};
use model::{
    Warning,
    explain::{Disturbance, ExplainDocument, RoundSide},
};

/// Rounds that compete with another test say little.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn document(out: &Output) -> ExplainDocument {
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)))
}

fn begin(target: &str, args: &[&str]) -> Child {
    Command::new(NETWRIGHT)
        .args(["explain", "--json", "--quiet", target])
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// 20 ms for each request, during 300 ms of every 1,500. Of more, half the rounds might be slow in
/// whole or in part, and their median could meet the mean by chance. Otherwise 2 ms, which other
/// load of this host hardly changes: faster rounds than the median could make up for the slow ones.
fn slow_at_times(_: &Request, to: &mut TcpStream) -> bool {
    static SINCE: OnceLock<Instant> = OnceLock::new();
    let slow = SINCE.get_or_init(Instant::now).elapsed().as_millis() % 1500 < 300;
    std::thread::sleep(Duration::from_millis(if slow { 20 } else { 2 }));
    to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_ok()
}

/// The median of rounds omits what the mean over all rounds includes: a fifth of the time is far
/// slower.
#[test]
fn a_server_that_changes_while_it_is_looked_at_is_inconclusive() {
    let _alone = alone();
    let server = Server::start(slow_at_times);
    // A longer measurement does not help, as the disturbance persists.
    let most = ["--duration", "4s", "--max-duration", "4s"];
    let url = server.url("/");
    let args = [&["explain", &url, "--round", "60ms"][..], &most].concat();
    let out = output(NETWRIGHT, &[&args[..], &["--json"]].concat());
    let sum = document(&out).sum;
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{sum:?} {stderr}");
    assert!(!sum.conclusive && sum.error.abs() > sum.allowed, "{sum:?}");
    let apart =
        |d: &Disturbance| matches!(d, Disturbance::RoundsApart { side: RoundSide::Slower, .. });
    assert!(sum.disturbed.iter().any(apart), "{sum:?}");
    // On a busy machine the network's rounds may have been slower by chance.
    let why = |d: &Disturbance| {
        matches!(d, Disturbance::NetworkBeside { .. } | Disturbance::BusyCpus { .. })
    };
    assert!(sum.disturbed.iter().any(why), "{sum:?}");
    let text = output(NETWRIGHT, &args);
    let text = String::from_utf8_lossy(&text.stdout);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("Inconclusive: ") && flat.contains("10% slower"), "{text}");
}

/// An error page on a connection that the server then closes; the sixth request gets no response.
fn wrong_and_gone(request: &Request, to: &mut TcpStream) -> bool {
    if request.number != 5 {
        let page = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
        let _ = to.write_all(page);
    }
    false
}

#[test]
fn an_error_page_and_a_server_that_keeps_no_connection_are_reported() {
    let _alone = alone();
    let server = Server::start(wrong_and_gone);
    let args = ["--duration", "600ms", "--round", "60ms", "--path", "rtt=20ms"];
    let out = begin(&server.url("/"), &args);
    let out = out.wait_with_output().unwrap();
    let d = document(&out);
    assert_eq!(out.status.code(), Some(i32::from(!d.sum.conclusive)));
    // On another path TCP's handshake adds a round trip to each request.
    let [there] = &d.other_paths[..] else { panic!("{:?}", d.other_paths) };
    assert_eq!(d.exchange.connect_round_trips, Some(1.0));
    let reconnecting_ns = there.reconnecting_ns.unwrap();
    assert!((reconnecting_ns / there.added_ns - 1.0).abs() < 0.05, "{there:?}");
    let per_s = |path: &str| d.predictions.iter().find(|p| p.path == path).unwrap().predicted_per_s;
    let cycle = 1e9 / per_s("this") + there.added_ns + there.idle_ns + reconnecting_ns;
    assert!((per_s(&there.path) * cycle / 1e9 - 1.0).abs() < 0.01, "{there:?} {:?}", d.predictions);
    assert_eq!(d.statuses.keys().collect::<Vec<_>>(), [&404], "{d:?}");
    let warned = |words: &str| d.warnings.iter().any(|w| w.to_string().contains(words));
    assert!(warned("every response says that something is wrong"), "{:?}", d.warnings);
    assert!(warned("the server closes connections: "), "{:?}", d.warnings);
    let of = |w: &Warning| match w {
        Warning::ConnectionsNotKept { per_request, .. } => Some(*per_request),
        _ => None,
    };
    let per_request = d.warnings.iter().find_map(of).unwrap();
    assert!((0.95..1.05).contains(&per_request), "{:?}", d.warnings);
    assert!((0.95..1.05).contains(&d.exchange.new_connections), "{:?}", d.exchange);
    // Three segments through the kernel take at least this. The client's waits for a CPU depend on
    // other load.
    let reconnecting = d.components.iter().find(|c| c.name == "reconnecting").unwrap();
    assert!(reconnecting.reported && reconnecting.ns > 4000.0, "{:?}", d.components);
    for c in &d.components {
        assert_eq!(c.share.is_some(), c.reported, "{c:?}");
    }
}

/// Silent for a second, once: the round during it is empty.
fn silent_once(_: &Request, to: &mut TcpStream) -> bool {
    static SINCE: OnceLock<Instant> = OnceLock::new();
    static ONCE: AtomicBool = AtomicBool::new(false);
    let late = SINCE.get_or_init(Instant::now).elapsed() > Duration::from_millis(500);
    if late && !ONCE.swap(true, Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(1000));
    }
    to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_ok()
}

#[test]
fn one_unlucky_round_is_left_out_and_reported() {
    let _alone = alone();
    let server = Server::start(silent_once);
    let out = begin(&server.url("/"), &["--duration", "600ms", "--round", "60ms"]);
    let out = out.wait_with_output().unwrap();
    let d = document(&out);
    let why = d.left_out.keys().next().map_or("", String::as_str);
    assert!(why.contains("no request was answered in 60 ms"), "{:?}", d.left_out);
    assert!(
        d.warnings.iter().any(|w| w.to_string().contains("repeated; the figures leave")),
        "{:?}",
        d.warnings
    );
    // No figure may exceed the time limit of a request.
    assert!(d.quantiles.workload_ns.max < 900_000_000, "{:?}", d.quantiles);
}

/// Too early for the network's figures, but the client's are there.
#[test]
fn what_is_ended_before_three_pairs_says_what_it_knows() {
    let _alone = alone();
    let serve = Serve::start(&["--service-time", "50us"]);
    let target = format!("rtt://{}", serve.target());
    // Each round takes two seconds, so this is in the first pair.
    let child = begin(&target, &["--duration", "60s", "--round", "2s"]);
    std::thread::sleep(Duration::from_millis(4500));
    // SAFETY: our own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) }, 0);
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("One client has waited") && said.contains("64 B there"), "{said}");
}

/// Stopped, not ended: connections stay, and no response comes.
#[test]
fn a_server_that_stands_still_is_not_waited_for_for_ever() {
    let _alone = alone();
    let serve = Serve::start(&["--service-time", "50us"]);
    let target = format!("rtt://{}", serve.target());
    let explain = || begin(&target, &["--duration", "60s", "--round", "50ms"]);
    let (waits, ended) = (explain(), explain());
    std::thread::sleep(Duration::from_secs(6));
    serve.signal(libc::SIGSTOP);
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(500));
    // SAFETY: our own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(i32::try_from(ended.id()).unwrap(), libc::SIGTERM) }, 0);
    let outs = [waits, ended].map(|child| child.wait_with_output().unwrap());
    assert!(begun.elapsed() < Duration::from_secs(40), "{outs:?}");
    serve.signal(libc::SIGCONT);
    for (out, code) in outs.iter().zip([Some(4), None]) {
        let said = String::from_utf8_lossy(&out.stderr);
        let d = document(out);
        assert!(d.interrupted && d.rounds >= 3, "{d:?}");
        let code = code.unwrap_or(i32::from(!d.sum.conclusive));
        assert_eq!(out.status.code(), Some(code), "{said}");
        let lines = usize::from(code == 4);
        assert!(
            said.lines().count() == lines && (code != 4 || said.contains("is silent")),
            "{said}"
        );
    }
}

#[test]
fn nginx_on_a_unix_socket_is_held_against_a_responder_on_one() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("a.sock");
    let server = "location / { return 200 hello; }";
    let nginx = Nginx::start(folder.path(), &format!("listen unix:{}; {server}", socket.display()));
    let at = socket.display().to_string().replace('/', "%2F");
    let url = format!("http+unix://{at}/");
    let out = begin(&url, &["--duration", "1500ms", "--round", "60ms", "--flows", "1,2"]);
    let out = out.wait_with_output().unwrap();
    let d = document(&out);
    assert_eq!(out.status.code(), Some(i32::from(!d.sum.conclusive)));
    assert!(d.responder.starts_with("unix:/"), "{}", d.responder);
    let responder = std::path::Path::new(d.responder.trim_start_matches("unix:"));
    assert!(!responder.exists(), "it leaves its socket");
    assert_eq!(d.levels.iter().map(|l| l.clients).collect::<Vec<_>>(), [1, 2]);
    // The same request by TCP, except for the `Host` name.
    let text = crate::support::run(
        NETWRIGHT,
        &[
            "measure",
            "http",
            &nginx.url("/"),
            "-H",
            "Host: localhost",
            "--json",
            "--requests",
            "10",
        ],
    );
    let tcp: model::measure::HttpDocument = serde_json::from_str(&text).unwrap();
    assert_eq!(d.exchange.request_bytes, tcp.runs[0].request_bytes / 10);
    // nginx closes a connection now and then, which shortens that response.
    assert!(d.exchange.response_bytes.abs_diff(tcp.runs[0].response_bytes / 10) <= 3, "{d:?}");
}

/// Encryption here is a component. The server's is part of its service time, which is noted.
#[test]
fn https_has_a_part_for_the_cipher() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    authority.signs("s", "IP:127.0.0.1", 30);
    std::fs::write(folder.path().join("page"), "x".repeat(200_000)).unwrap();
    let nginx = Nginx::start_tls(folder.path(), "s", "location / { }");
    let url = nginx.url("/page");
    let ca = folder.path().join("ca.crt").display().to_string();
    let args = ["--duration", "1500ms", "--round", "60ms", "--ca", &ca];
    let out = begin(&url, &args).wait_with_output().unwrap();
    let d = document(&out);
    assert_eq!(out.status.code(), Some(i32::from(!d.sum.conclusive)));
    let names: Vec<&str> = d.components.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["network", "tls", "service", "client"]);
    let (sum, tls) = (d.components.iter().map(|c| c.ns).sum::<f64>(), d.components[1].ns);
    assert!((sum - d.sum.sum_ns).abs() < 1.0 && tls > 0.0 && tls < d.sum.measured_ns, "{d:?}");
    assert!(
        d.warnings.iter().any(|w| w.to_string().starts_with("the workload uses TLS")),
        "{:?}",
        d.warnings
    );
    // Without the authority's certificate no server is trusted.
    let out = output(NETWRIGHT, &["explain", "--quiet", &url]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.lines().count() == 1 && said.contains("certificate"), "{said}");
}

/// A preloaded library: each reading of the time of day returns another year, forwards and
/// backwards, as no adjusted clock would.
const JUMPS: &str = r"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
static long jump(void) { static long n; return (n++ % 3 - 1) * 31536000L; }
int clock_gettime(clockid_t id, struct timespec *t) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, __func__);
  int failed = real(id, t);
  if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI) t->tv_sec += jump();
  return failed;
}
int gettimeofday(struct timeval *t, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec, t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t) *t = now.tv_sec;
  return now.tv_sec;
}
";

/// All durations use the monotonic clock. The machine's clock is not changed: the time of day jumps
/// for both ends only.
#[test]
fn a_clock_that_jumps_changes_no_figure() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("jumps.c"), folder.path().join("jumps.so"));
    std::fs::write(&source, JUMPS).unwrap();
    let [source, library] = [source, library].map(|path| path.display().to_string());
    crate::support::run("cc", &["-shared", "-fPIC", "-o", &library, &source, "-ldl"]);
    let jumping = |args: &[&str]| {
        let mut command = Command::new(NETWRIGHT);
        command.args(args).env("LD_PRELOAD", &library);
        command
    };
    let serve = ["serve", "--json", "--port", "0", "--service-time", "3ms"];
    let serve = Serve::of(jumping(&serve));
    let mut years = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let args = ["measure", "rtt", serve.target(), "--json", "--duration", "500ms"];
        let begun = Instant::now();
        let out = jumping(&args).output().unwrap();
        let took = begun.elapsed();
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        let d: model::measure::RttDocument = serde_json::from_slice(&out.stdout).unwrap();
        let run = &d.runs[0];
        assert!(run.window_ns.0 >= 500_000_000 && u128::from(run.window_ns.0) < took.as_nanos());
        // As many as fit into the window, none shorter than one takes or longer than all.
        assert!((1..=run.window_ns.0 / 2_990_000 + 1).contains(&run.transactions), "{run:?}");
        assert!(run.rtt_ns.min >= 2_990_000 && run.rtt_ns.max < run.window_ns.0 * 2, "{run:?}");
        years.insert(d.started_unix_s / 31_536_000);
    }
    let target = format!("rtt://{}", serve.target());
    let args = ["explain", "--json", &target, "--duration", "1500ms", "--round", "60ms"];
    let begun = Instant::now();
    let out = jumping(&args).output().unwrap();
    let d = document(&out);
    assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
    years.insert(d.started_unix_s / 31_536_000);
    assert!(d.injected_service_ns.is_some_and(|ns| (2_900_000.0..60e6).contains(&ns)), "{d:?}");
    assert!(d.sum.measured_ns > 2_990_000.0 && d.sum.measured_ns < 60e6, "{:?}", d.sum);
    // It did jump.
    let today = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() / 31_536_000;
    assert!(years.iter().any(|year| *year != today), "{years:?}");
}
