//! Faults at single sockets, planted for real, and look-alikes: `doctor` names the socket, its
//! process and the remedy.

use std::{
    net::UdpSocket,
    process::{Child, Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT, Namespace, await_listener, needs_root,
    planted::{Inside, finding},
};
use lab::{pair::PairSpec, testing::TestLab};
use model::Nanos;
use serde_json::Value;

/// Sends this many datagrams at once, again after each pause.
fn send(ns: &Namespace, at_once: usize, pause: Duration) -> Inside {
    Inside::run(ns, move |stop| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..at_once {
                let _ = socket.send_to(&[0; 1000], "127.0.0.1:9999");
            }
            thread::sleep(pause);
        }
    })
}

fn doctor(ns: &Namespace) -> Value {
    ns.netwright_json(&["doctor", "--window", "4s", "--no-bpf", "--json"])
}

/// Knobs of a finding's changes.
fn knobs(f: &Value) -> Vec<&str> {
    let all = f["changes"].as_array().unwrap().iter().map(|c| c["knob"].as_str().unwrap());
    all.filter(|knob| !knob.is_empty()).collect()
}

#[test]
fn a_socket_that_nobody_reads_is_named_and_no_buffer_is_proposed() {
    let ns = Namespace::new();
    let _holder = Inside::run(&ns, |stop| {
        let _never_read = UdpSocket::bind("127.0.0.1:9999").unwrap();
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let _sender = send(&ns, 20, Duration::from_millis(5));
    // Full before the window begins.
    thread::sleep(Duration::from_millis(500));
    let d = doctor(&ns);
    let f = finding(&d, "udp_receive_drops").unwrap_or_else(|| panic!("{d:#}"));
    assert_eq!((&f["severity"], &f["confidence"]), (&"critical".into(), &"high".into()), "{f:#}");
    assert_eq!(f["subject"], "127.0.0.1:9999");
    let says = f["explanation"].as_str().unwrap();
    assert!(says.contains("is not reading") && says.contains("sustained"), "{says}");
    let owner = format!("[{}]", std::process::id());
    assert!(says.contains(&owner), "{says}");
    assert!(says.contains("A larger buffer does not help"), "{says}");
    assert_eq!(knobs(f), [] as [&str; 0], "{f:#}");
}

/// The look-alike: the same counter grows, and a larger buffer helps.
#[test]
fn bursts_at_a_socket_that_is_read_are_distinguished_from_that() {
    let ns = Namespace::new();
    let _reader = Inside::run(&ns, |stop| {
        let socket = UdpSocket::bind("127.0.0.1:9999").unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; 2000];
        while !stop.load(Ordering::Relaxed) {
            while socket.recv(&mut buffer).is_ok() {}
            thread::sleep(Duration::from_millis(40));
        }
    });
    let _sender = send(&ns, 4_000, Duration::from_millis(1_300));
    let deadline = Instant::now() + Duration::from_secs(60);
    let says = loop {
        let d = doctor(&ns);
        let f = finding(&d, "udp_receive_drops").unwrap_or_else(|| panic!("{d:#}"));
        let says = f["explanation"].as_str().unwrap().to_owned();
        let asks = f["changes"].to_string();
        // On a busy machine most readings may see a burst by chance.
        if says.contains("come in bursts") {
            assert!(asks.contains("set SO_RCVBUF to"), "{f:#}");
            break says;
        }
        assert!(!says.contains("is not reading"), "{f:#}");
        assert!(Instant::now() < deadline, "{f:#}");
    };
    assert!(says.contains(&format!("[{}]", std::process::id())), "{says}");
}

/// Waits until somebody listens on this port of the right host.
fn listens(lab: &TestLab, port: u16) {
    await_listener(port, |args| {
        let out = lab.output("right", &[&["ss"], args].concat()).unwrap();
        String::from_utf8(out.stdout).unwrap()
    });
}

/// `iperf3` from the left host to the right one, ended on drop.
struct Iperf([Child; 2]);

impl Iperf {
    fn start(lab: &TestLab, more: &[&str]) -> Self {
        let begin = |host, args: &[&str]| {
            let mut command: Command = lab.command(host, args).unwrap();
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
        };
        let server = begin("right", &["iperf3", "-s", "-1"]);
        listens(lab, 5201);
        let client = ["iperf3", "-c", "10.99.0.2", "-t", "30"];
        Self([begin("left", &[&client[..], more].concat()), server])
    }
}

impl Drop for Iperf {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn doctor_of(lab: &TestLab) -> Value {
    let args = [NETWRIGHT, "doctor", "--window", "4s", "--no-bpf", "--json"];
    let out = lab.output("left", &args).unwrap();
    assert_eq!(out.code, 0, "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// What limits the sender of this name.
fn limited_by<'a>(d: &'a Value, process: &str) -> &'a Value {
    let all = d["senders"].as_array().unwrap_or_else(|| panic!("{:#}", d["senders"]));
    let sender = all.iter().find(|s| s["process"] == process);
    &sender.unwrap_or_else(|| panic!("{all:#?}"))["limited_by"]
}

/// What `watch` says in most of its intervals that this process is limited by.
fn watched(lab: &TestLab, process: &str) -> String {
    let args = [NETWRIGHT, "watch", "--plain", "--no-bpf", "--interval", "1s", "--duration", "5s"];
    let out = lab.output("left", &args).unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let causes = ["the application", "the receiver's window", "its send buffer", "the network"];
    let rows = text.lines().filter(|l| l.trim_start().starts_with(process));
    let said: Vec<&str> =
        rows.filter_map(|row| causes.into_iter().find(|cause| row.contains(cause))).collect();
    assert!(said.len() >= 4, "a row in each interval: {text}");
    let most = causes.into_iter().max_by_key(|c| said.iter().filter(|s| s == &c).count());
    most.unwrap().to_owned()
}

fn path(delay_us: u64, loss: f64) -> TestLab {
    needs_root();
    let spec = PairSpec {
        queues: 1,
        delay: (delay_us > 0).then_some(Nanos(delay_us * 1_000)),
        loss,
        program: Some(NETWRIGHT.into()),
        ..PairSpec::default()
    };
    TestLab::pair(&spec).unwrap()
}

#[test]
fn a_small_buffer_over_a_long_path_is_what_limits() {
    let lab = path(5_000, 0.0);
    let _running = Iperf::start(&lab, &["-w", "64K"]);
    thread::sleep(Duration::from_secs(1));
    let d = doctor_of(&lab);
    let f = finding(&d, "buffer_below_bdp").unwrap_or_else(|| panic!("{d:#}"));
    assert_eq!(f["severity"], "warning");
    let evidence = f["evidence"].to_string();
    assert!(evidence.contains("10.99.0.2:5201") && evidence.contains("iperf3["), "{f:#}");
    assert!(!d.to_string().contains("not known → "), "{d:#}");
    let by = limited_by(&d, "iperf3");
    assert!(by == "receiver" || by == "send_buffer", "{:#}", d["senders"]);
}

/// The look-alike: default buffers on a short path; the CPUs are the limit.
#[test]
fn a_short_path_with_the_kernels_buffers_is_clear() {
    let lab = path(0, 0.0);
    let _running = Iperf::start(&lab, &[]);
    thread::sleep(Duration::from_secs(1));
    let d = doctor_of(&lab);
    assert!(finding(&d, "buffer_below_bdp").is_none(), "{d:#}");
    let clear = d["passed"].as_array().unwrap().iter().find(|c| c["rule"] == "buffer_below_bdp");
    assert!(clear.is_some(), "{d:#}");
}

/// Reno, which takes every loss for a full path. BBR does not, whatever the kernel's default is: it
/// fills the send buffer with what waits for the lost segments, and that buffer then limits it.
#[test]
fn retransmits_name_the_peer() {
    let lab = path(1_000, 0.02);
    let _running = Iperf::start(&lab, &["-C", "reno"]);
    thread::sleep(Duration::from_secs(1));
    let d = doctor_of(&lab);
    let f = finding(&d, "retransmits").unwrap_or_else(|| panic!("{d:#}"));
    let evidence = f["evidence"].to_string();
    assert!(evidence.contains("retransmitted to 10.99.0.2, iperf3["), "{f:#}");
    assert_eq!(limited_by(&d, "iperf3"), "network", "{:#}", d["senders"]);
    assert_eq!(watched(&lab, "iperf3"), "the network");
}

/// 5 Mbit/s that the sender itself keeps to, over a path that carries a hundred times of it. Its
/// data is under way most of the time.
#[test]
fn an_application_that_sends_little_is_not_limited_by_the_network() {
    let lab = path(5_000, 0.0);
    let _running = Iperf::start(&lab, &["-b", "5M", "-l", "4K"]);
    thread::sleep(Duration::from_secs(1));
    let d = doctor_of(&lab);
    assert_eq!(limited_by(&d, "iperf3"), "application", "{:#}", d["senders"]);
    assert_eq!(watched(&lab, "iperf3"), "the application");
    let rate = d["senders"][0]["bits_per_s"].as_f64().unwrap();
    assert!((4e6..6e6).contains(&rate), "{:#}", d["senders"]);
}

/// One connection between two programs, until dropped.
struct Connection([Child; 2]);

impl Connection {
    fn start(lab: &TestLab, receive: &str, send: &str) -> Self {
        let receive = format!(
            "import socket, time\ns = socket.create_server(('10.99.0.2', 7000)); c, _ = s.accept()\n{receive}"
        );
        let send = format!(
            "import socket; s = socket.socket()\n{send}\nwhile True: s.sendall(bytes(100000))"
        );
        let begin = |host, program: &str| {
            let argv = ["python3", "-c", program];
            lab.command(host, &argv).unwrap().stderr(Stdio::null()).spawn().unwrap()
        };
        let receiver = begin("right", &receive);
        listens(lab, 7000);
        Self([receiver, begin("left", &send)])
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_receiver_that_reads_slowly_is_named() {
    let lab = path(1_000, 0.0);
    let slow = "while c.recv(20000): time.sleep(0.01)";
    let _running = Connection::start(&lab, slow, "s.connect(('10.99.0.2', 7000))");
    thread::sleep(Duration::from_secs(3));
    let d = doctor_of(&lab);
    assert_eq!(limited_by(&d, "python3"), "receiver", "{:#}", d["senders"]);
    assert_eq!(watched(&lab, "python3"), "the receiver's window");
}

/// It set 16 KiB for a path that carries more within a round trip.
#[test]
fn a_sender_with_a_small_buffer_is_limited_by_it() {
    let lab = path(5_000, 0.0);
    let small =
        "s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)\ns.connect(('10.99.0.2', 7000))";
    let _running = Connection::start(&lab, "while c.recv(1000000): pass", small);
    thread::sleep(Duration::from_secs(3));
    let d = doctor_of(&lab);
    assert_eq!(limited_by(&d, "python3"), "send_buffer", "{:#}", d["senders"]);
    assert_eq!(watched(&lab, "python3"), "its send buffer");
}
