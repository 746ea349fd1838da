//! A running `netwright export`, and a real Prometheus.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{NETWRIGHT, heeding};

/// How long anything may take: the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

static NEXT: AtomicU32 = AtomicU32::new(1);

/// The exporter on a free port of loopback, ended when dropped.
pub struct Exporter {
    child: Child,
    pub address: SocketAddr,
}

impl Exporter {
    pub fn start(args: &[&str]) -> Self {
        Self::of("export", args)
    }

    /// Another command that serves metrics.
    pub fn of(name: &str, args: &[&str]) -> Self {
        let mut command = Command::new(NETWRIGHT);
        command.args([name, "--listen", "127.0.0.1:0"]).args(args);
        command.env_remove("NETWRIGHT_SECRET").stdout(Stdio::piped());
        let mut child = heeding(command, libc::SIGINT).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("metrics: http://").and_then(|l| l.split('/').next());
        let address = address.and_then(|a| a.parse().ok());
        Self { child, address: address.unwrap_or_else(|| panic!("{line:?}")) }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Head and body of the answer.
    pub fn get(&self, target: &str, headers: &str) -> (String, String) {
        get(self.address, target, headers)
    }

    /// The page in Prometheus' text format.
    pub fn page(&self) -> String {
        let (head, body) = self.get("/metrics", "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        body
    }

    /// Asks for pages until one has a series with this beginning.
    pub fn page_with(&self, series: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let page = self.page();
            if page.lines().any(|l| l.starts_with(series)) {
                return page;
            }
            assert!(Instant::now() < until, "no {series}: {page}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends it as Ctrl-C does; its exit code.
    pub fn end(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Head and body of the answer to a GET.
pub fn get(address: SocketAddr, target: &str, headers: &str) -> (String, String) {
    let answer = try_get(address, target, headers).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.to_owned(), body.to_owned())
}

fn try_get(address: SocketAddr, target: &str, headers: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!("GET {target} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = vec![];
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The value of a series, named as on the page.
pub fn value(page: &str, series: &str) -> Option<f64> {
    let line = page.lines().find_map(|l| l.strip_prefix(series)?.strip_prefix(' '));
    line.and_then(|v| v.parse().ok())
}

/// A Prometheus of Debian on a loopback address of its own, ended when dropped.
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// Starts it with this configuration, and `rules.yml` beside it; waits until it answers.
    pub fn start(config: &str, rules: &str) -> Self {
        let prometheus = Self::begin(Self::free_address(), config, rules, &[]);
        let until = Instant::now() + PATIENCE;
        while !try_get(prometheus.address, "/-/ready", "").is_ok_and(|a| a.contains(" 200 ")) {
            let log = || fs::read_to_string(prometheus._folder.path().join("log"));
            assert!(Instant::now() < until, "{:?}", log());
            thread::sleep(Duration::from_millis(50));
        }
        prometheus
    }

    /// Starts it on this address with TLS and a login, as this file for its web server says; waits until
    /// it listens.
    pub fn start_tls(address: SocketAddr, config: &str, web: &Path) -> Self {
        let web = format!("--web.config.file={}", web.display());
        let prometheus = Self::begin(address, config, "", &[&web]);
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(prometheus.address).is_err() {
            assert!(Instant::now() < until);
            thread::sleep(Duration::from_millis(50));
        }
        prometheus
    }

    /// An address that nobody else has: 127.0.0.0/8 is all loopback.
    pub fn free_address() -> SocketAddr {
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let ip = Ipv4Addr::new(127, 64 | (high << 4) | (number as u8 & 15), middle, low);
        SocketAddr::new(ip.into(), 9090)
    }

    fn begin(address: SocketAddr, config: &str, rules: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("prometheus.yml"), config).unwrap();
        fs::write(path("rules.yml"), rules).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", path("prometheus.yml")));
        command.arg(format!("--storage.tsdb.path={}", path("data")));
        command.arg(format!("--web.listen-address={address}")).args(more);
        let log = fs::File::create(path("log")).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        let child = command.spawn().expect("prometheus: install it by `make test-deps`");
        Self { child, address, _folder: folder }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A configuration that scrapes one target twice a second.
    pub fn scraping(target: SocketAddr, more: &str) -> String {
        format!(
            "global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}\n\
             rule_files: [rules.yml]\n\
             scrape_configs:\n- job_name: netwright\n{more}  static_configs: [{{targets: ['{target}']}}]\n"
        )
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What its HTTP API answers; panics where that is no success.
    pub fn api(&self, path: &str) -> Value {
        let (head, body) = get(self.address, path, "");
        let answer: Value =
            serde_json::from_str(&body).unwrap_or_else(|e| panic!("{path}: {e}: {head}\n{body}"));
        assert_eq!(answer["status"], "success", "{path}: {body}");
        answer["data"].clone()
    }

    /// The result of an instant query.
    pub fn query(&self, query: &str) -> Vec<Value> {
        let encoded: String = query.bytes().map(|b| format!("%{b:02x}")).collect();
        let data = self.api(&format!("/api/v1/query?query={encoded}"));
        data["result"].as_array().unwrap_or_else(|| panic!("{query}: {data}")).clone()
    }

    /// Asks until the query has a result.
    pub fn answered(&self, query: &str) -> Vec<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let result = self.query(query);
            if !result.is_empty() {
                return result;
            }
            assert!(
                Instant::now() < until,
                "no answer to {query}: {}",
                self.api("/api/v1/targets")
            );
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The number of the only result, once there is one.
    pub fn number(&self, query: &str) -> f64 {
        let all = self.answered(query);
        assert_eq!(all.len(), 1, "{query}: {all:?}");
        all[0]["value"][1].as_str().unwrap().parse().unwrap()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
