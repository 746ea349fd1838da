//! `watch --serve`: its events beside the JSON of the same run, what it refuses, browsers that do
//! not read, and the page in a real Chromium.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use model::{
    Reading,
    watch::{WatchInterval, WatchRecord, test_data},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{NETWRIGHT, chromium::Chromium, heeding};

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/softirq.zst");
/// How long anything may take: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `watch --serve`, ended when dropped.
struct Site {
    child: Child,
    address: SocketAddr,
    /// What follows the address: the key.
    query: String,
    out: Option<Receiver<String>>,
}

impl Site {
    /// With JSON on standard output.
    fn json(args: &[&str]) -> Self {
        let mut command = Command::new(NETWRIGHT);
        command.args(["watch", "--json"]).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = heeding(command, libc::SIGINT).spawn().unwrap();
        let (address, query) = printed(&lines(child.stderr.take().unwrap()));
        let out = Some(lines(child.stdout.take().unwrap()));
        Self { child, address, query, out }
    }

    /// Browsers alone.
    fn start(args: &[&str], secret: Option<&str>) -> Self {
        let mut command = Command::new(NETWRIGHT);
        command.arg("watch").args(args).stdout(Stdio::piped()).env_remove("NETWRIGHT_SECRET");
        if let Some(secret) = secret {
            command.env("NETWRIGHT_SECRET", secret);
        }
        let mut child = heeding(command, libc::SIGINT).spawn().unwrap();
        let (address, query) = printed(&lines(child.stdout.take().unwrap()));
        Self { child, address, query, out: None }
    }

    fn replay(recording: &Path) -> Self {
        let recording = recording.to_str().unwrap();
        Self::start(&["--serve", "127.0.0.1:0", "--replay", recording], None)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The whole answer to these bytes.
    fn answer(&self, request: &str) -> String {
        let mut stream = self.connect();
        // The server may refuse before the end.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = vec![];
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, target: &str) -> String {
        self.answer(&format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }

    /// A stream of events.
    fn stream(&self, path: &str) -> Events {
        let mut stream = self.connect();
        let request =
            format!("GET {path}{} HTTP/1.1\r\nHost: {}\r\n\r\n", self.query, self.address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
        Events(lines)
    }

    /// Ends it as Ctrl-C does; its exit code.
    fn end(&mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

/// The address that the program printed, and its query.
fn printed(from: &Receiver<String>) -> (SocketAddr, String) {
    let line = from.recv_timeout(PATIENCE).expect("an address");
    let (_, url) = line.split_once("watching in a browser: http://").expect(&line);
    let (address, query) = url.split_once('/').unwrap();
    let address = address.replace("ADDRESS", "127.0.0.1");
    (address.parse().unwrap(), query.to_owned())
}

struct Events(BufReader<TcpStream>);

#[derive(Debug)]
struct Event {
    id: u64,
    kind: String,
    data: Value,
}

impl Events {
    fn next(&mut self) -> Event {
        let (mut id, mut kind, mut data) = (0, String::new(), None);
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            let line = line.trim_end();
            match (line.split_once(": "), data.take()) {
                (None, Some(data)) if line.is_empty() => return Event { id, kind, data },
                (Some(("id", n)), _) => id = n.parse().unwrap(),
                (Some(("event", name)), _) => name.clone_into(&mut kind),
                (Some(("data", text)), _) => data = Some(serde_json::from_str(text).unwrap()),
                _ => {}
            }
        }
    }
}

/// A counter of the interface in a headline, from the document alone.
fn rate(document: &Value, nic: &str, counter: &str) -> f64 {
    let nics = document["samples"]["nics"].as_array().unwrap();
    let nic = nics.iter().find(|n| n["name"] == *nic).unwrap();
    nic["statistics"][counter].as_f64().unwrap() / document["interval_s"].as_f64().unwrap()
}

#[test]
fn the_events_are_the_documents_and_the_page_has_their_figures() {
    let mut site = Site::json(&["--serve", "0", "--interval", "200ms", "--no-bpf"]);
    let (mut documents, mut page, mut second) =
        (site.stream("/events"), site.stream("/page"), site.stream("/events"));
    let hello = page.next();
    assert_eq!(hello.kind, "hello");
    let out = site.out.take().unwrap();
    let mut printed: Vec<Value> = vec![];
    let (mut same, mut compared) = (0, 0);
    let mut shown: Vec<Event> = vec![];
    for _ in 0..5 {
        let event = documents.next();
        assert_eq!(event.kind, "", "a plain message");
        while printed.len() < event.id as usize {
            let line = out.recv_timeout(PATIENCE).unwrap();
            printed.push(serde_json::from_str(&line).unwrap());
        }
        assert_eq!(event.data, printed[event.id as usize - 1], "the line of `watch --json`");
        let other = second.next();
        if other.id == event.id {
            assert_eq!(other.data, event.data, "both browsers are shown one observer");
            same += 1;
        }
        shown.push(page.next());
    }
    assert!(same > 0, "the clients had no interval in common");
    for event in shown.iter().filter(|e| e.id as usize <= printed.len()) {
        let document = &printed[event.id as usize - 1];
        assert_eq!(event.kind, "interval");
        let headline = event.data["headline"].as_array().unwrap();
        let of = |name: &str| headline.iter().find(|f| f["name"] == name).unwrap();
        let received = of("Received");
        let nic = received["about"].as_str().unwrap().split(' ').next().unwrap();
        let bits = rate(document, nic, "rx_bytes") * 8.0;
        assert!((received["value"].as_f64().unwrap() - bits).abs() <= 0.5, "{received} {bits}");
        let again = document["samples"]["protocols"]["Tcp.RetransSegs"].as_f64().unwrap();
        assert_eq!(of("Retransmits")["value"].as_f64(), Some(again));
        compared += 1;
    }
    assert!(compared > 0, "no interval was compared");
    assert_eq!(site.end(), Some(0));
    while documents.next().kind != "end" {}
}

#[test]
fn what_is_no_request_of_a_browser_is_refused_and_harms_nobody() {
    let mut site = Site::json(&["--serve", "127.0.0.1:0", "--interval", "200ms", "--no-bpf"]);
    let mut browser = site.stream("/page");
    browser.next();
    let host = site.address;
    let long = "a".repeat(100_000);
    let many: String = (0..500).map(|n| format!("X-{n}: 1\r\n")).collect();
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), "421"),
        (format!("GET /events HTTP/1.1\r\nHost: {}.evil.example\r\n\r\n", host.ip()), "421"),
        ("GET / HTTP/1.1\r\n\r\n".into(), "400"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n".into(), "400"),
        (format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n\r\nhello"), "405"),
        (format!("GET /../../etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n"), "404"),
        (format!("GET /{long} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "431"),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\n{many}\r\n"), "431"),
        (
            format!("GET /page HTTP/1.1\r\nHost: {host}\r\nSec-Fetch-Site: cross-site\r\n\r\n"),
            "403",
        ),
        (
            format!("GET /page HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\n\r\n"),
            "403",
        ),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03".into(), "400"),
        ("\0\0\0\0garbage\r\n\r\n".into(), "400"),
    ] {
        let answer = site.answer(&request);
        let first = answer.lines().next().unwrap_or_default().to_owned();
        assert!(first.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.60}: {answer:.200}");
        assert!(!answer.contains("Access-Control"), "{answer}");
    }
    // A request that never ends is ended, and many of them keep nobody out.
    let mut slow = site.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
    let since = Instant::now();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(since.elapsed() > Duration::from_secs(4), "it had {:?}", since.elapsed());
    let idle: Vec<TcpStream> = (0..200).map(|_| site.connect()).collect();
    assert!(site.get("/").starts_with("HTTP/1.1 200 "));
    assert_eq!(browser.next().kind, "interval", "the browser from before is still served");
    drop(idle);
    // Streams have a bound, and a browser that leaves makes room.
    let streams: Vec<Events> = (1..32).map(|_| site.stream("/events")).collect();
    assert!(site.get("/events").starts_with("HTTP/1.1 503 "));
    drop(streams);
    let until = Instant::now() + PATIENCE;
    while !TcpStream::connect(host).is_ok_and(|mut s| {
        let _ = write!(s, "GET /events HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let mut first = [0; 12];
        s.read_exact(&mut first).is_ok() && first.ends_with(b"200")
    }) {
        assert!(Instant::now() < until, "no room after the streams had left");
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(site.end(), Some(0));
}

#[test]
fn browsers_that_do_not_read_stall_nothing() {
    let args = ["--serve", "0", "--interval", "100ms", "--duration", "6s", "--no-bpf", "-o"];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    let mut site = Site::json(&[&args[..], &[file.to_str().unwrap()]].concat());
    let dead: Vec<TcpStream> = (0..8)
        .map(|n| {
            let mut stream = site.connect();
            rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
            let path = if n % 2 == 0 { "/events" } else { "/page" };
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", site.address).unwrap();
            stream
        })
        .collect();
    let mut good = site.stream("/events");
    let mut last = good.next();
    while last.kind != "end" {
        last = good.next();
    }
    assert!(site.child.wait().unwrap().success());
    let text = fs::read_to_string(&file).unwrap();
    let intervals: Vec<WatchInterval> =
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let bytes = text.len();
    // Were it stalled, it would have stood still for the ten seconds that a write may take.
    assert!(intervals.len() >= 50 && bytes > 500_000, "{} intervals, {bytes}", intervals.len());
    let longest = intervals.iter().map(|i| i.interval_s).fold(0.0, f64::max);
    assert!(longest < 3.0, "an interval of {longest} s");
    drop(dead);
}

#[test]
fn beyond_loopback_a_browser_needs_the_secret() {
    let site = Site::start(&["--serve", "0.0.0.0:0", "--no-bpf"], None);
    assert!(site.query.strip_prefix("?key=").is_some_and(|k| k.len() == 32), "{}", site.query);
    for target in
        ["/", "/page", "/events", "/?key=", "/events?key=00000000000000000000000000000000"]
    {
        let answer = site.get(target);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{target}: {answer}");
    }
    assert!(site.get(&format!("/{}", site.query)).starts_with("HTTP/1.1 200 "));
    site.stream("/page").next();
    // A secret of the operator is not printed, and counts on loopback too.
    let site = Site::start(&["--serve", "0", "--no-bpf"], Some("a secret of mine"));
    assert_eq!(site.query, "?key=SECRET");
    assert!(site.get("/?key=SECRET").starts_with("HTTP/1.1 403 "));
    assert!(site.get("/?key=a%20secret%20of%20mine").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_server_that_cannot_be_is_one_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (args, secret, exit, part) in [
        (&["--serve", "0.0.0.0:0", "--quiet"][..], "", 2, "needs a secret"),
        (&["--serve", "0"], "short", 2, "at least 8 characters"),
        (&["--serve", "nonsense"], "", 2, "no address"),
        (&["--serve", "203.0.113.77:0"], "", 4, "cannot listen on 203.0.113.77:0"),
        (&["--serve", &taken], "", 4, "cannot listen on"),
        (&["--secret-file", "x"], "", 2, "--serve"),
        (&["--serve", "0", "--secret-file", "/nowhere"], "", 4, "/nowhere"),
    ] {
        let out = Command::new(NETWRIGHT)
            .args(["watch", "--no-bpf", "--duration", "1s"])
            .args(args)
            .env("NETWRIGHT_SECRET", secret)
            .output()
            .unwrap();
        let why = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(exit), "{args:?}: {why}");
        assert!(why.contains(part), "{args:?}: {why}");
    }
}

/// The cells of the page's tables: by title, the rows.
const TABLES: &str = "Object.fromEntries([...document.querySelectorAll('table')].map(t => \
    [t.caption.textContent, [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent))]))";

/// A recording's last interval.
fn last_of(recording: &Path) -> (model::watch::WatchHost, WatchRecord) {
    let mut recording = view::recording::open(recording).unwrap();
    (recording.host.clone(), recording.get(recording.len() - 1).unwrap())
}

#[test]
fn chromium_shows_the_figures_of_the_text_and_loads_nothing_else() {
    let site = Site::replay(Path::new(RECORDING));
    let mut browser = Chromium::start();
    browser.look(1100, 900, false);
    let address = format!("http://{}/", site.address);
    browser.open(&address);
    let (host, record) = last_of(Path::new(RECORDING));
    let at = report::watch::clock(record.interval.ended_unix_ns.0);
    let costs = report::watch::costs(&record.interval);
    browser.until(&format!("document.getElementById('when')?.textContent.includes('{costs}')"));
    let when = browser.eval("document.getElementById('when').textContent");
    assert!(when.as_str().unwrap().starts_with(&at), "{when}");
    assert_eq!(browser.eval("document.getElementById('state').textContent"), "Replay");
    // Every table, cell by cell.
    browser.eval("document.querySelectorAll('button[aria-expanded=false]:not([hidden])').forEach(b => b.click())");
    let shown = browser.eval(TABLES);
    let mut expected = vec![("CPUs", report::watch::panes::cpus(&record.interval, &host))];
    expected.push(("interrupts", report::watch::panes::interrupts(&record.interval)));
    let rest = report::watch::tables(&record.interval, false);
    expected.extend(rest.into_iter().map(|t| (t.title, t.list)));
    let mut cells = 0;
    for (title, list) in expected.into_iter().filter(|(_, l)| !l.rows.is_empty()) {
        let rows = list.without_empty_columns().rows;
        let texts = |row: &Vec<report::watch::listing::Cell>| {
            row.iter().map(|c| Value::from(c.text.clone())).collect::<Vec<_>>()
        };
        let rows: Vec<Value> = rows.iter().take(100).map(|r| texts(r).into()).collect();
        cells += rows.iter().map(|r| r.as_array().unwrap().len()).sum::<usize>();
        assert_eq!(shown[title], Value::from(rows), "{title}");
    }
    assert!(cells > 300, "only {cells} cells were compared");
    // The headline is that of the text.
    let traffic = report::watch::traffic(&record.interval).unwrap();
    let text = browser.eval("document.getElementById('figures').textContent");
    let text = text.as_str().unwrap();
    for part in [
        traffic.nic.as_ref().unwrap().received.bits.to_string(),
        traffic.nic.as_ref().unwrap().sent.bits.to_string(),
        traffic.retransmits.unwrap().to_string(),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    let points = browser.eval("document.querySelector('.trend').points.numberOfItems");
    assert_eq!(points.as_u64(), Some(10), "a line of the whole recording");
    // Pausing, and a phone.
    browser.eval("document.getElementById('pause').click()");
    assert_eq!(browser.eval("document.getElementById('state').textContent"), "Paused");
    browser.eval("document.getElementById('pause').click()");
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = browser.eval(paper);
    browser.look(360, 740, true);
    assert_ne!(browser.eval(paper), light, "dark colours");
    let wide = browser.eval("document.documentElement.scrollWidth");
    assert!(wide.as_u64().unwrap() <= 360, "a phone would scroll sideways: {wide}");
    let unnamed = browser.eval(
        "[...document.querySelectorAll('svg[role=img]')].filter(s => !s.getAttribute('aria-label')).length",
    );
    assert_eq!(unnamed.as_u64(), Some(0), "a picture without a name");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let requests = browser.requests();
    assert_eq!(requests, [address.clone(), format!("{address}page")], "nothing else is loaded");
}

#[test]
fn chromium_shows_hostile_names_as_text() {
    const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{202e}'\"&";
    let mut interval = test_data::interval(2, 0);
    let hostile = || HOSTILE.to_owned();
    if let Reading::Known(all) = &mut interval.interrupted_tasks {
        all[0].process = Reading::Known(hostile());
        all[0].name = hostile();
    }
    if let Reading::Known(all) = &mut interval.napi {
        all[0].nic = Reading::Known(hostile());
    }
    interval.process_ipc = Reading::absent(HOSTILE);
    let mut host = test_data::host(2, 1);
    host.name = Reading::Known(hostile());
    let record = WatchRecord { interval, findings: vec![] };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.zst");
    let lines = [serde_json::to_string(&host).unwrap(), serde_json::to_string(&record).unwrap()];
    let packed = zstd::encode_all((lines.join("\n") + "\n").as_bytes(), 1).unwrap();
    fs::write(&path, packed).unwrap();
    let site = Site::replay(&path);
    let mut browser = Chromium::start();
    browser.open(&format!("http://{}/", site.address));
    browser.until("document.querySelectorAll('table').length > 4");
    let text = browser.eval("document.body.innerText + document.title");
    let text = text.as_str().unwrap();
    let shown = "</script><img src=x onerror=alert(1)>\\u{202e}'\"&";
    assert!(text.matches(shown).count() >= 5, "{text}");
    assert!(!text.contains('\u{202e}'), "it would turn the text around");
    assert_eq!(browser.eval("document.images.length"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.requests().len(), 2, "the page and its events");
}
