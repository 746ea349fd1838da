//! The real qperf program, as client and as server.

use std::{
    collections::BTreeMap,
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A client's output: `name = value unit` by test; times in nanoseconds.
#[derive(Debug)]
pub struct Printed {
    pub text: String,
    pub ok: bool,
    pub by_test: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Printed {
    pub fn value(&self, test: &str, name: &str) -> f64 {
        *self
            .by_test
            .get(test)
            .and_then(|t| t.get(name))
            .unwrap_or_else(|| panic!("{test} has no {name}:\n{}", self.text))
    }
}

/// Parses the output of `-uu`, unified units: nanoseconds, bytes, percent.
fn parse(text: String, ok: bool) -> Printed {
    let mut by_test = BTreeMap::new();
    let mut test = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|n| !n.starts_with(' ')) {
            test = name.to_owned();
        } else if let Some((name, value)) = line.split_once('=') {
            let number: String = value
                .trim()
                .chars()
                .take_while(|c| c.is_ascii_digit() || ".,e+-".contains(*c))
                .collect();
            if let Ok(n) = number.replace(',', "").parse::<f64>() {
                let values: &mut BTreeMap<String, f64> = by_test.entry(test.clone()).or_default();
                values.insert(name.trim().to_owned(), n);
            }
        }
    }
    Printed { text, ok, by_test }
}

/// A client against `host` at control port `port`; it must end within 60 s.
pub fn client(port: u16, host: &str, args: &[&str]) -> Printed {
    finish(begin(port, host, args))
}

pub fn begin(port: u16, host: &str, args: &[&str]) -> Child {
    let (options, tests): (Vec<&str>, Vec<&str>) = {
        let at = args.iter().position(|a| *a == "--").unwrap_or(0);
        let (a, b) = args.split_at(at);
        (a.to_vec(), b.iter().copied().filter(|a| *a != "--").collect())
    };
    Command::new("qperf")
        .args(["-lp", &port.to_string(), "-uu", "-e", "9"])
        .args(options)
        .arg(host)
        .args(tests)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("qperf (Debian package qperf) is needed: make test-deps")
}

pub fn finish(mut child: Child) -> Printed {
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            let out = child.wait_with_output().unwrap();
            panic!("qperf hangs: {}", String::from_utf8_lossy(&out.stdout));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let out = child.wait_with_output().unwrap();
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    parse(text, out.status.success())
}

/// A real server on a free port, of both families.
pub struct Server {
    pub port: u16,
    pub child: Child,
}

impl Server {
    pub fn new() -> Self {
        let port = {
            let free = TcpListener::bind("[::]:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let child = Command::new("qperf")
            .args(["-lp", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("qperf (Debian package qperf) is needed: make test-deps");
        let this = Self { port, child };
        let deadline = Instant::now() + Duration::from_secs(20);
        // The server's child for this empty connection ends at once.
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "qperf does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        this
    }

    pub fn target(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
