//! A made-up fleet: one listener that is the exporter of many hosts. Each has an address of its own in
//! 127.0.0.0/8 and the page of a real exporter, with findings of its own.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use super::{NETWRIGHT, run};

/// A finding of a host, with the change for it.
#[derive(Clone)]
pub struct Planted {
    pub rule: &'static str,
    pub subject: String,
    pub severity: &'static str,
    /// Knob and value.
    pub change: Option<(&'static str, String)>,
}

/// A host of the fleet.
#[derive(Clone, Default)]
pub struct Simulated {
    pub findings: Vec<Planted>,
    /// Whether nobody listens there.
    pub is_down: bool,
    /// How old its last interval is, seconds.
    pub age_s: u64,
    /// Its label `dc`.
    pub dc: &'static str,
    pub drifted: Option<&'static str>,
}

/// The same page for all fleets of a process.
static BASE: OnceLock<String> = OnceLock::new();

/// The exporters, ended when dropped.
pub struct SimulatedFleet {
    hosts: Vec<Simulated>,
    port: u16,
    stop: Arc<AtomicBool>,
}

impl SimulatedFleet {
    /// Starts all of them; host `n` is called `hN`.
    pub fn start(hosts: Vec<Simulated>) -> Self {
        let base = BASE.get_or_init(base_page);
        let pages: Arc<Vec<(u64, String)>> =
            Arc::new(hosts.iter().map(|h| (h.age_s, page(base, h))).collect());
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let pages = pages.clone();
                std::thread::spawn(move || drop(serve(stream, &pages)));
            }
        });
        Self { hosts, port, stop }
    }

    /// A configuration of Prometheus that scrapes all of them this often.
    pub fn config(&self, every: &str) -> String {
        let mut text = format!(
            "global: {{scrape_interval: {every}, scrape_timeout: {every}, evaluation_interval: 15s}}\n\
             scrape_configs:\n- job_name: netwright\n  static_configs:\n"
        );
        for (n, host) in self.hosts.iter().enumerate() {
            let port = if host.is_down { 1 } else { self.port };
            let _ = writeln!(
                text,
                "  - {{targets: ['{}:{port}'], labels: {{instance: 'h{n}:7473', dc: '{}'}}}}",
                address(n),
                host.dc
            );
        }
        text
    }
}

impl Drop for SimulatedFleet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// The address of a host: the listener sees which one was asked.
fn address(n: usize) -> Ipv4Addr {
    let [high, low] = (n as u16).to_be_bytes();
    Ipv4Addr::new(127, 33, high, low)
}

fn number(address: SocketAddr) -> Option<usize> {
    let SocketAddr::V4(v4) = address else { return None };
    let [127, 33, high, low] = v4.ip().octets() else { return None };
    Some(usize::from(u16::from_be_bytes([high, low])))
}

/// Answers requests on one connection until the scraper closes it.
fn serve(stream: TcpStream, pages: &[(u64, String)]) -> std::io::Result<()> {
    let (age_s, page) = match number(stream.local_addr()?).and_then(|n| pages.get(n)) {
        Some(host) => host,
        None => return Ok(()),
    };
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut to, mut line) = (stream, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            let ended = format!("netwright_last_interval_timestamp_seconds {}\n", now - age_s);
            write!(
                to,
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n\
                 {ended}{page}",
                ended.len() + page.len()
            )?;
        }
    }
}

/// A page of the real exporter, without what each host has of its own.
fn base_page() -> String {
    let page = run(NETWRIGHT, &["export", "--once", "--interval", "500ms", "--quiet"]);
    let own = ["netwright_finding", "netwright_last_interval", "netwright_change"];
    let kept = page.lines().filter(|l| {
        let name = l.strip_prefix("# HELP ").or_else(|| l.strip_prefix("# TYPE ")).unwrap_or(l);
        !own.iter().any(|o| name.starts_with(o))
    });
    kept.fold(String::new(), |all, line| all + line + "\n")
}

/// The page of a host.
fn page(base: &str, host: &Simulated) -> String {
    let mut page = base.to_owned();
    for severity in ["critical", "warning", "info"] {
        let n = host.findings.iter().filter(|f| f.severity == severity).count();
        let _ = writeln!(page, "netwright_findings{{severity=\"{severity}\"}} {n}");
    }
    for Planted { rule, subject, severity, change } in &host.findings {
        let labels = format!("rule=\"{rule}\",subject=\"{subject}\"");
        let _ = writeln!(page, "netwright_finding{{{labels},severity=\"{severity}\"}} 1");
        if let Some((knob, value)) = change {
            let labels = format!("{labels},knob=\"{knob}\",value=\"{value}\"");
            let _ = writeln!(page, "netwright_finding_change{{{labels}}} 1");
        }
    }
    if let Some(knob) = host.drifted {
        let _ = writeln!(page, "netwright_change_drifted{{change=\"1\",knob=\"{knob}\"}} 1");
    }
    page
}
