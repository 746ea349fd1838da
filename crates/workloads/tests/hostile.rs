//! Servers that try to hold a client for ever, or to fill its memory, before the measurement. Each
//! run must end in time with one line, after a bounded number of received bytes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use model::{
    Nanos,
    measure::{Common, HttpSpec, PeerProgram, PgDriver, PgProtocol, PgScript, PgSpec, TlsSpec},
};
use traffic::{Error, Run};

/// Behavior of a server on a connection; it counts the bytes that it could send.
type Script = fn(&mut Victim) -> std::io::Result<()>;

struct Victim {
    stream: TcpStream,
    sent: Arc<AtomicU64>,
}

impl Victim {
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)?;
        self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn message(&mut self, kind: u8, body: &[u8]) -> std::io::Result<()> {
        self.send(&message(kind, body))
    }

    /// Reads whatever the client sends next.
    fn hear(&mut self) -> std::io::Result<()> {
        self.stream.read(&mut [0; 4096]).map(|_| ())
    }

    /// Sends the same bytes for ever, at full speed.
    fn flood(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let many = bytes.repeat(65_536_usize.div_ceil(bytes.len()));
        loop {
            self.send(&many)?;
        }
    }

    /// Sends the same bytes for ever, one small piece at a time.
    fn drip(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        loop {
            self.send(bytes)?;
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Accepts the client's login, and reads its first query.
    fn let_in(&mut self) -> std::io::Result<()> {
        self.hear()?;
        self.message(b'R', &[0; 4])?;
        self.message(b'S', b"server_version\x0016.1\0")?;
        self.message(b'Z', b"I")?;
        self.hear()
    }

    fn still(&mut self) -> std::io::Result<()> {
        while self.stream.read(&mut [0; 4096])? > 0 {}
        Ok(())
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// Starts a server; returns its address, and a counter of bytes sent on all connections.
fn server(script: Script) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let sent = Arc::new(AtomicU64::new(0));
    let all = sent.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut victim = Victim { stream, sent: all.clone() };
            std::thread::spawn(move || script(&mut victim));
        }
    });
    (address, sent)
}

fn common(target: String) -> Common {
    Common {
        duration_ns: Nanos(100_000_000),
        warmup_ns: Nanos(0),
        cooldown_ns: Nanos(0),
        max_time_ns: Nanos(60_000_000_000),
        ..Common::plain(target, PeerProgram::Server)
    }
}

fn pg(script: Script, mode: &str, stop: &AtomicBool) -> (String, u64) {
    let (address, sent) = server(script);
    let spec = PgSpec {
        common: common(format!("postgres://u@{address}/b?sslmode={mode}&connect_timeout=1")),
        scripts: vec![PgScript { name: "select1".into(), weight: 1 }],
        protocol: PgProtocol::Simple,
        clients: vec![1],
        pipeline: false,
        connect_each: false,
        rate_per_s: None,
        transactions: None,
        max_tries: 1,
        per_statement: false,
        scale: None,
        seed: None,
        variables: Default::default(),
        timeout_ns: Nanos(1_000_000_000),
        interval_ns: None,
        responder: None,
        driver: PgDriver::Netwright,
        answer_delay_ns: Nanos(0),
    };
    let said = workloads::measure_pg(&spec, Some("secret"), None, Run::new(stop, &|_, _| {}));
    (line(said.map(|_| ())), sent.load(Ordering::Relaxed))
}

fn https(script: Script, stop: &AtomicBool) -> String {
    let (address, _) = server(script);
    let url = format!("https://{address}/");
    let spec = HttpSpec {
        common: common(format!("https://{address}")),
        urls: vec![url],
        tls: TlsSpec { insecure: true, ..TlsSpec::default() },
        responder: None,
        method: "GET".into(),
        headers: vec![],
        body: None,
        body_file: None,
        flows: vec![1],
        pipeline: 1,
        new_connections: false,
        rate_per_s: None,
        requests: None,
        timeout_ns: Nanos(1_000_000_000),
        interval_ns: None,
    };
    line(workloads::measure_http(&spec, None, Run::new(stop, &|_, _| {})).map(|_| ()))
}

fn line(said: Result<(), Error>) -> String {
    match said {
        Err(Error::Environment(line) | Error::Denied(line)) => line,
        other => panic!("{other:?}"),
    }
}

const IN_TIME: Duration = Duration::from_secs(5);
/// Limit on what the client reads, plus kernel buffers.
const MOST: u64 = 24 << 20;

#[test]
fn a_server_of_postgresql_cannot_keep_us() {
    let scripts: &[(&str, Script, &str, &str)] = &[
        ("silent", |v| v.still(), "disable", "silent: no answer to the login in 1 s"),
        (
            "notices",
            |v| v.hear().and_then(|()| v.flood(&message(b'N', b"SNOTICE\0Mhello\0\0"))),
            "disable",
            "more than 1 MiB in answer to the login",
        ),
        (
            "notices that drip",
            |v| v.hear().and_then(|()| v.drip(&message(b'N', b"Mhello\0\0"))),
            "disable",
            "the answer to the login was not over in 1 s",
        ),
        (
            "parameters",
            |v| {
                v.hear()?;
                v.message(b'R', &[0; 4])?;
                v.flood(&message(b'S', b"server_version\x0016.1\0"))
            },
            "disable",
            "more than 1 MiB",
        ),
        (
            "one endless message",
            |v| {
                v.hear()?;
                v.send(b"N\x3f\xff\xff\xff")?;
                v.flood(&[b'x'; 4096])
            },
            "disable",
            "too long",
        ),
        (
            "md5 again and again",
            |v| loop {
                v.hear()?;
                v.message(b'R', b"\0\0\0\x05abcd")?;
            },
            "disable",
            "asks for a password twice",
        ),
        (
            "a query that is never answered",
            |v| v.let_in().and_then(|()| v.still()),
            "disable",
            "silent: no answer to \"select count(*)",
        ),
        (
            "rows",
            |v| v.let_in().and_then(|()| v.flood(&message(b'D', b"\0\x01\0\0\0\x011"))),
            "disable",
            "more than 1 MiB in answer to \"select count(*)",
        ),
        (
            "rows that drip",
            |v| v.let_in().and_then(|()| v.drip(&message(b'D', b"\0\x01\0\0\0\x011"))),
            "disable",
            "was not over in 1 s",
        ),
        (
            "copy data",
            |v| v.let_in().and_then(|()| v.flood(&message(b'd', &[b'x'; 1000]))),
            "disable",
            "more than 1 MiB",
        ),
        (
            "no answer to the request for TLS",
            |v| v.still(),
            "require",
            "silent: no answer to the login in 1 s",
        ),
        ("TLS that drips", drips_tls, "require", "the TLS handshake was not over in 1 s"),
    ];
    for (name, script, mode, says) in scripts {
        let begun = Instant::now();
        let (said, sent) = pg(*script, mode, &AtomicBool::new(false));
        assert!(begun.elapsed() < IN_TIME, "{name}: {:?}", begun.elapsed());
        assert!(said.contains(says) && said.starts_with("127.0.0.1:"), "{name}: {said}");
        assert!(sent < MOST, "{name}: it could send {sent} bytes");
    }
}

/// Sends a 16 KiB handshake record, one byte at a time.
fn drips_tls(victim: &mut Victim) -> std::io::Result<()> {
    victim.hear()?;
    victim.send(b"S")?;
    victim.hear()?;
    victim.send(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xf0")?;
    victim.drip(b"x")
}

#[test]
fn a_server_of_http_cannot_keep_us_in_its_handshake() {
    let drips: Script = |v| {
        v.hear()?;
        v.send(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xf0")?;
        v.drip(b"x")
    };
    let begun = Instant::now();
    let said = https(drips, &AtomicBool::new(false));
    assert!(said.contains("the TLS handshake was not over in 5 s"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn the_end_is_heard_at_once_while_a_server_is_waited_for() {
    let silent: Script = |v| v.still();
    let query: Script = |v| v.let_in().and_then(|()| v.still());
    let flood: Script = |v| v.let_in().and_then(|()| v.drip(&message(b'N', b"Mx\0\0")));
    for script in [silent, query, flood] {
        let stop = AtomicBool::new(false);
        let took = std::thread::scope(|s| {
            let said = s.spawn(|| (pg(script, "disable", &stop).0, Instant::now()));
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
            let reported = Instant::now();
            let (said, ended) = said.join().unwrap();
            assert!(said.ends_with("ended before the measurement began"), "{said}");
            ended.duration_since(reported)
        });
        assert!(took < Duration::from_millis(300), "{took:?}");
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let said = s.spawn(|| https(silent, &stop));
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        let reported = Instant::now();
        let said = said.join().unwrap();
        assert!(said.ends_with("ended before the measurement began"), "{said}");
        assert!(reported.elapsed() < Duration::from_millis(300), "{:?}", reported.elapsed());
    });
}
