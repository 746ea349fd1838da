//! Tests of clients against hostile servers. Real sessions of each protocol pass a relay that
//! changes, cuts, repeats, delays or ends the server's messages. Each client must end in time, with
//! a result or with one line and a documented exit code, and use little memory.
//!
//! `NETWRIGHT_SESSIONS=1000` runs that many of each client instead of [`SESSIONS`].

use std::{
    io::{BufRead, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT,
    dice::{Dice, NUMBERS},
    http,
    postgres::Postgres,
    redis::Redis,
    schema,
    serve::Serve,
};

/// Sessions of each client.
const SESSIONS: u64 = 20;
/// How many more windows the unmodified session gets, where the first was empty.
const WINDOWS: u32 = 4;
const AT_ONCE: u64 = 8;
/// A client gives up on a silent server well before this, also on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);
/// The most resident memory of a client, most of it the program's own.
const MOST_KIB: i64 = 200 << 10;

/// The modification of the server's messages, and the piece that it applies to, counted over all
/// connections.
struct Lies {
    dice: Mutex<Dice>,
    next: AtomicU64,
    at: u64,
}

/// The modifications of a piece.
enum PieceOutcome {
    Goes(Vec<u8>),
    /// It is the last piece; the connection stays open.
    Silence(Vec<u8>),
    /// It is the last piece; the connection is closed.
    End(Vec<u8>),
}

impl Lies {
    fn of(&self, piece: &[u8]) -> PieceOutcome {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let mut bytes = piece.to_vec();
        if number != self.at && number != self.at + 2 {
            return PieceOutcome::Goes(bytes);
        }
        let mut dice = self.dice.lock().unwrap();
        match dice.roll(12) {
            0 => return PieceOutcome::Silence(bytes),
            1 => {
                bytes.truncate(dice.roll(bytes.len()));
                return PieceOutcome::Silence(bytes);
            }
            2 => {
                bytes.truncate(dice.roll(bytes.len()));
                return PieceOutcome::End(bytes);
            }
            3 => bytes.extend_from_within(..),
            4 => {
                let more = vec![dice.roll(256) as u8; dice.roll(100_000)];
                let at = dice.roll(bytes.len() + 1);
                bytes.splice(at..at, more);
            }
            5 => bytes.clear(),
            6 | 7 => {
                for _ in 0..=dice.roll(4) {
                    let at = dice.roll(bytes.len());
                    bytes[at] ^= 1 << dice.roll(8);
                }
            }
            8 => {
                let at = dice.roll(bytes.len());
                let n = *dice.of(&[0u32, 1, 255, 65_536, 1 << 31, u32::MAX]);
                let n = if dice.roll(2) == 0 { n.to_be_bytes() } else { n.to_le_bytes() };
                bytes.truncate(at);
                bytes.extend(n);
                bytes.extend(piece.iter().skip(at + 4));
            }
            _ => number_of_text(&mut bytes, &mut dice),
        }
        PieceOutcome::Goes(bytes)
    }
}

/// Another number in a piece's text; the length of four bytes before JSON is adjusted.
fn number_of_text(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let digit =
        |i: usize| bytes[i].is_ascii_digit() && (i == 0 || !bytes[i - 1].is_ascii_alphanumeric());
    let starts: Vec<usize> = (0..bytes.len()).filter(|i| digit(*i)).collect();
    if starts.is_empty() {
        return;
    }
    let at = *dice.of(&starts);
    let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    bytes.splice(at..at + digits, dice.of(&NUMBERS).bytes());
    if let Some(head) = bytes.iter().position(|b| *b == b'{').filter(|h| [4, 8].contains(h)) {
        let length = (bytes.len() - head) as u32;
        bytes[head - 4..head].copy_from_slice(&length.to_be_bytes());
    }
}

/// A relay between one client and its server.
struct Relay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Relay {
    fn to(server: SocketAddr, lies: Lies) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, lies) = (Arc::new(AtomicBool::new(false)), Arc::new(lies));
        let stopped = stop.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(server) = TcpStream::connect(server) else { continue };
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    carry(from, to, |piece| PieceOutcome::Goes(piece.to_vec()))
                });
                let lies = lies.clone();
                std::thread::spawn(move || carry(server, client, |piece| lies.of(piece)));
            }
        });
        Self { address, stop }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// Relays one direction until either end closes.
fn carry(mut from: TcpStream, mut to: TcpStream, fate: impl Fn(&[u8]) -> PieceOutcome) {
    let (mut piece, mut silent) = (vec![0; 1 << 16], false);
    while let Ok(n @ 1..) = from.read(&mut piece) {
        if silent {
            continue;
        }
        let (bytes, end) = match fate(&piece[..n]) {
            PieceOutcome::Goes(bytes) => (bytes, false),
            PieceOutcome::Silence(bytes) => (bytes, std::mem::replace(&mut silent, true)),
            PieceOutcome::End(bytes) => (bytes, true),
        };
        if to.write_all(&bytes).is_err() || end {
            break;
        }
    }
    let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}

/// Runs a client to its end, and checks exit code, output, time and memory.
fn run(args: &[&str], target: &str, what: &str) -> (i32, Duration) {
    let mut command = Command::new(NETWRIGHT);
    command.arg("measure").arg(args[0]).arg(target).args(&args[1..]).arg("--json");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (begun, mut child) = (Instant::now(), command.spawn().unwrap());
    let reader = |pipe: OwnedFd| {
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = std::fs::File::from(pipe).read_to_string(&mut text);
            text
        })
    };
    let out = reader(child.stdout.take().unwrap().into());
    let err = reader(child.stderr.take().unwrap().into());
    let (status, most_kib) = loop {
        let mut status = 0;
        // SAFETY: zero is a valid value of it.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: our own child, which no other code waits for; both outlive the call.
        let ended = unsafe {
            libc::wait4(child.id() as i32, &raw mut status, libc::WNOHANG, &raw mut usage)
        };
        if ended != 0 {
            break (std::process::ExitStatus::from_raw(status), usage.ru_maxrss);
        }
        if begun.elapsed() > LONGEST {
            let _ = child.kill();
            panic!("{what}: still there after {LONGEST:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let (took, out, err) = (begun.elapsed(), out.join().unwrap(), err.join().unwrap());
    let code = status.code().unwrap_or_else(|| panic!("{what}: {status}: {err}"));
    assert!([0, 2, 3, 4].contains(&code), "{what}: exit code {code}: {err}");
    assert!(most_kib < MOST_KIB, "{what}: {most_kib} KiB");
    assert!(!err.contains("panicked") && !err.contains('\u{1b}'), "{what}: {err}");
    if code != 0 {
        assert_eq!(err.lines().count(), 1, "{what}: {err}");
        assert!(err.starts_with("netwright: ") && err.len() < 2000, "{what}: {err}");
    }
    schema::held(&command, out.as_bytes());
    (code, took)
}

/// Runs this many sessions of a client with its server, each with another modification.
fn besiege(
    name: &str,
    args: &[&str],
    server: SocketAddr,
    target: impl Fn(SocketAddr) -> String + Sync,
) {
    let sessions = std::env::var("NETWRIGHT_SESSIONS").map_or(SESSIONS, |n| n.parse().unwrap());
    let next = AtomicU64::new(0);
    let ends = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    if n >= sessions {
                        return;
                    }
                    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (n + 1).wrapping_mul(0xff51_afd7));
                    // The first session is unmodified, to show that the relay itself breaks
                    // nothing.
                    let at = if n == 0 { u64::MAX - 2 } else { dice.roll(8) as u64 };
                    let lies = Lies { dice: Mutex::new(dice), next: AtomicU64::new(0), at };
                    let relay = Relay::to(server, lies);
                    let what = format!("{name}, session {n}, from piece {at}");
                    let (mut code, took) = run(args, &target(relay.address), &what);
                    // On a busy CPU such a short window may be empty.
                    for _ in 0..WINDOWS {
                        if n > 0 || code == 0 {
                            break;
                        }
                        code = run(args, &target(relay.address), &what).0;
                    }
                    assert!(n > 0 || code == 0, "{what}: exit code {code}");
                    ends.lock().unwrap().push((code, took));
                }
            });
        }
    });
    let ends = ends.into_inner().unwrap();
    let longest = ends.iter().map(|(_, took)| *took).max().unwrap();
    let of = |code: i32| ends.iter().filter(|(c, _)| *c == code).count();
    println!("{name}: {} done, {} refused, longest {longest:.1?}", of(0), ends.len() - of(0));
    assert!(of(0) < ends.len(), "{name}: no lie was noticed");
}

/// A server of ours, with iperf3's and qperf's protocols.
fn ours() -> (Serve, [SocketAddr; 3]) {
    let mut serve = Serve::start(&["--iperf3", "0", "--qperf", "0", "--quiet", "--idle", "5s"]);
    let mut beside = || -> SocketAddr {
        let mut line = String::new();
        serve.events.read_line(&mut line).unwrap();
        let said: serde_json::Value = serde_json::from_str(&line).unwrap();
        said["addresses"][0].as_str().unwrap().parse().unwrap()
    };
    let (iperf3, qperf) = (beside(), beside());
    let own = serve.target().parse().unwrap();
    (serve, [own, iperf3, qperf])
}

const SHORT: [&str; 2] = ["--duration", "200ms"];

#[test]
fn our_own_clients_outlast_a_server_that_lies() {
    let (_serve, [own, ..]) = ours();
    for kind in ["rtt", "stream", "connect"] {
        besiege(kind, &[&[kind][..], &SHORT].concat(), own, |a| a.to_string());
    }
}

#[test]
fn the_iperf3_client_outlasts_a_server_that_lies() {
    let (_serve, [_, iperf3, _]) = ours();
    let args = ["stream", "--peer", "iperf3", "--duration", "1s"];
    besiege("iperf3", &args, iperf3, |a| a.to_string());
}

#[test]
fn the_qperf_client_outlasts_a_server_that_lies() {
    let (_serve, [.., qperf]) = ours();
    for kind in ["rtt", "stream"] {
        let args = [kind, "--peer", "qperf", "--duration", "1s"];
        besiege(&format!("qperf {kind}"), &args, qperf, |a| a.to_string());
    }
}

#[test]
fn the_http_client_outlasts_a_server_that_lies() {
    let server = http::Server::start(http::plain);
    let url = server.url("/");
    let address = url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    let args = [&["http", "--timeout", "1s"][..], &SHORT].concat();
    besiege("http", &args, address, |a| format!("http://{a}/"));
}

#[test]
fn the_pg_client_outlasts_a_server_that_lies() {
    let server = Postgres::start();
    let address = ([127, 0, 0, 1], server.port).into();
    let args = ["pg", "--script", "select1", "--duration", "500ms", "--timeout", "1s"];
    besiege("pg", &args, address, |a| format!("postgres://postgres@{a}/postgres?sslmode=disable"));
}

#[test]
fn the_redis_client_outlasts_a_server_that_lies() {
    let server = Redis::start(&[]);
    let address = ([127, 0, 0, 1], server.port).into();
    let args = [&["redis", "--timeout", "1s"][..], &SHORT].concat();
    besiege("redis", &args, address, |a| format!("redis://{a}"));
}
