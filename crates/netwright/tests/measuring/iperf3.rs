//! Tests of both roles of iperf3's protocol with the real program (Debian package `iperf3`), in
//! namespaces with known loss and rates.

use std::{
    io::BufRead,
    process::{Child, Command, Stdio},
};

use crate::support::{NETWRIGHT, Namespace, planted::nstat, serve::Serve};
use serde_json::Value;

/// The server's address, in its namespace.
const PEER: &str = "10.77.0.2";

/// Two namespaces with a link between them.
struct Pair {
    local: Namespace,
    peer: Namespace,
}

impl Pair {
    fn new() -> Self {
        let (local, peer) = (Namespace::new(), Namespace::new());
        local.run("ip", &["link", "add", "w", "type", "veth", "peer", "w", "netns", &peer.name]);
        for (ns, address) in [(&local, "10.77.0.1/24"), (&peer, "10.77.0.2/24")] {
            ns.run("ip", &["addr", "add", address, "dev", "w"]);
            ns.run("ip", &["link", "set", "w", "up"]);
            // Each datagram is one packet, no longer than the link's MTU.
            ns.run("ethtool", &["-K", "w", "tso", "off", "gso", "off", "gro", "off"]);
        }
        Self { local, peer }
    }

    /// Limits the link to 40 Mbit/s in that direction, with a queue of 32 KiB that TCP overruns.
    fn slow(ns: &Namespace) {
        // Reno sends more until the queue drops. BBR, the default of some kernels, may keep it just
        // filled for seconds.
        ns.run("sysctl", &["-q", "net.ipv4.tcp_congestion_control=reno"]);
        let tbf = "qdisc replace dev w root tbf rate 40mbit burst 10kb limit 32kb";
        ns.run("tc", &tbf.split(' ').collect::<Vec<_>>());
    }

    /// Datagrams dropped on the way to the server: by the link, and on a busy host by a full
    /// receive buffer.
    fn dropped(&self) -> u64 {
        let text = self.local.run("tc", &["-s", "-j", "qdisc", "show", "dev", "w"]);
        let all: Value = serde_json::from_str(&text).unwrap();
        all[0]["drops"].as_u64().unwrap() + no_room(&self.peer)
    }

    /// `netwright serve --iperf3` at the server.
    fn serve(&self) -> Serve {
        self.serve_with(&[])
    }

    fn serve_with(&self, words: &[&str]) -> Serve {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.peer.name, NETWRIGHT, "serve", "--json"]);
        command.args(["--port", "0", "--bind", PEER, "--open", "--iperf3"]).args(words);
        let serve = Serve::of(command);
        // It listens before it prints so; the line about iperf3 is the second.
        self.peer.await_listener(5201);
        serve
    }

    /// `iperf3 -s` at the server.
    fn stock(&self) -> Stock {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.peer.name, "iperf3", "-s"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.peer.await_listener(5201);
        Stock(child)
    }

    /// The stock client's JSON.
    fn iperf3(&self, words: &str) -> Value {
        let mut args = vec!["60", "iperf3", "-J", "-c", PEER];
        args.extend(words.split(' '));
        let text = self.local.run("timeout", &args);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(value.get("error").is_none(), "{words}: {value:#}");
        value
    }

    /// The first run of `netwright measure stream --peer iperf3`.
    fn measure(&self, words: &str) -> Value {
        let mut args = vec!["measure", "stream", PEER, "--peer", "iperf3", "--json", "--quiet"];
        args.extend(words.split(' '));
        let document = self.local.netwright_json(&args);
        document["runs"][0].clone()
    }
}

/// Datagrams dropped by full receive buffers.
fn no_room(ns: &Namespace) -> u64 {
    nstat(ns, "UdpRcvbufErrors")
}

/// Killed when dropped. (`ip netns exec` becomes the program.)
struct Stock(Child);

impl Drop for Stock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn count(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path}: {value:#}"))
}

fn rate(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path}: {value:#}"))
}

/// Of 40 Mbit/s in frames of 1514 bytes, TCP's payload of 1448 bytes is the most; the start and the
/// final queue take their part.
fn is_the_wires(rate: f64) {
    assert!((0.85..=1.0).contains(&(rate / 40e6)), "{rate} over a wire of 40 Mbit/s");
}

#[test]
fn a_stock_client_hears_from_us_of_every_datagram_that_was_dropped() {
    let pair = Pair::new();
    let _serve = pair.serve();
    Pair::slow(&pair.local);
    // A link that is fast enough loses nothing.
    let value = pair.iperf3("-u -b 5M -l 1000 -t 1");
    let (sent, received) =
        (count(&value, "/end/sum_sent/packets"), count(&value, "/end/sum_received/packets"));
    assert_eq!((sent, count(&value, "/end/sum/lost_packets")), (received, pair.dropped()));
    for words in ["-u -b 80M -l 1200 -t 2", "-u -b 80M -l 1200 -t 1 -P 3 --udp-counters-64bit"] {
        let before = pair.dropped();
        let value = pair.iperf3(words);
        let dropped = pair.dropped() - before;
        let lost = count(&value, "/end/sum/lost_packets");
        assert!(dropped > 100, "{words}: only {dropped} were dropped");
        assert_eq!(lost, dropped, "{words}");
        let (sent, received) =
            (count(&value, "/end/sum_sent/bytes"), count(&value, "/end/sum_received/bytes"));
        assert_eq!(sent - received, lost * 1200, "{words}");
    }
}

#[test]
fn a_stock_client_hears_from_us_what_its_receiver_had_no_room_for() {
    let ns = Namespace::new();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &ns.name, NETWRIGHT, "serve", "--json", "--port", "0"]);
    command.args(["--bind", "127.0.0.1", "--iperf3"]);
    let _serve = Serve::of(command);
    let words = "60 iperf3 -J -c 127.0.0.1 -u -b 0 -l 30000 -w 32K -t 1";
    let value: Value =
        serde_json::from_str(&ns.run("timeout", &words.split(' ').collect::<Vec<_>>())).unwrap();
    let dropped = no_room(&ns);
    assert!(dropped > 0, "{value:#}");
    assert_eq!(count(&value, "/end/sum/lost_packets"), dropped);
}

#[test]
fn a_stock_clients_tcp_has_the_wires_rate_both_ways() {
    let pair = Pair::new();
    let _serve = pair.serve();
    Pair::slow(&pair.local);
    Pair::slow(&pair.peer);
    for words in ["-t 3 -O 1", "-t 3 -O 1 -R", "-t 3 -O 1 -P 4"] {
        let value = pair.iperf3(words);
        is_the_wires(rate(&value, "/end/sum_received/bits_per_second"));
        // A full queue drops: the sender's kernel retransmitted, in the client or in our server.
        let lines = value["intervals"].as_array().unwrap();
        let again = |i: &Value| i["sum"]["retransmits"].as_u64().unwrap_or(0);
        let during: u64 = lines.iter().map(again).sum();
        assert!(count(&value, "/end/sum_sent/retransmits") + during > 0, "{words}: {value:#}");
    }
}

#[test]
fn we_count_what_was_dropped_on_the_way_to_a_stock_server() {
    let pair = Pair::new();
    let _stock = pair.stock();
    Pair::slow(&pair.local);
    let before = pair.dropped();
    let run = pair.measure("--udp --rate 80Mbit --message 1200 --duration 2s --warmup 0s");
    let dropped = pair.dropped() - before;
    assert!(dropped > 100, "only {dropped} were dropped");
    assert_eq!(count(&run, "/datagrams/lost"), dropped, "{run:#}");
    let received = count(&run, "/datagrams/received");
    assert_eq!(count(&run, "/bytes"), received * 1200);
    assert!((rate(&run, "/bits_per_s") / 40e6 - 1200.0 / 1242.0).abs() < 0.05, "{run:#}");
}

#[test]
fn we_see_the_wires_rate_to_and_from_a_stock_server() {
    let pair = Pair::new();
    let _stock = pair.stock();
    Pair::slow(&pair.local);
    Pair::slow(&pair.peer);
    for (direction, sender) in [("forward", &pair.local), ("reverse", &pair.peer)] {
        let measure = |times: &str| {
            let before = nstat(sender, "TcpRetransSegs");
            let run = pair.measure(&format!("--direction {direction} {times}"));
            let kernels = nstat(sender, "TcpRetransSegs") - before;
            (count(&run, "/retransmits"), kernels, run)
        };
        // Without a warm-up the kernel counts the same time, but for what is queued at the end.
        let (measured, kernels, run) = measure("--duration 2s --warmup 0s");
        let same = measured <= kernels && kernels - measured <= kernels / 5;
        assert!(kernels > 0 && same, "{measured} of {kernels}: {run:#}");
        // Slow start overflows the queue; that is in the warm-up.
        let (measured, kernels, run) = measure("--duration 3s --warmup 1s");
        is_the_wires(rate(&run, "/bits_per_s"));
        assert!(0 < measured && measured < kernels, "{measured} of {kernels}: {run:#}");
        let lines = run["intervals"].as_array().unwrap();
        assert_eq!(lines.len(), 3);
        for line in lines {
            // An interval may include data queued in its neighbours.
            let share = rate(line, "/bits_per_s") / 40e6;
            assert!((0.5..=1.3).contains(&share), "{line:#}");
        }
    }
}

#[test]
fn a_result_of_a_stock_server_is_measured_again_by_the_same_protocol() {
    let pair = Pair::new();
    let _stock = pair.stock();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("first.json");
    let file = file.to_str().unwrap();
    let first = "measure stream 10.77.0.2 --peer iperf3 --duration 300ms --warmup 0s --json";
    let first = format!("{first} --rate 10Mbit --output {file}");
    pair.local.run(NETWRIGHT, &first.split(' ').collect::<Vec<_>>());
    let again = pair.local.netwright_json(&["measure", "--rerun", file, "--json"]);
    assert_eq!(again["peer"]["program"], "iperf3");
    assert_eq!(again["request"]["rate"], 10_000_000);
    assert_eq!(again["runs"][0]["bytes"].as_u64().map(|b| b > 100_000), Some(true), "{again:#}");
}

#[test]
fn a_host_that_falls_silent_in_the_midst_is_forgotten() {
    let pair = Pair::new();
    let mut serve = pair.serve_with(&["--idle", "2s"]);
    let mut client = Command::new("ip");
    client.args(["netns", "exec", &pair.local.name]);
    // The program itself must be killed, not a wrapper: without a server it spins.
    client.args(["setpriv", "--pdeathsig", "KILL", "iperf3", "-c", PEER]);
    client.args("-u -R -b 1M -t 60".split(' '));
    let client = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let client = Stock(client);
    await_event(&mut serve, "started");
    // It sends nothing more, not even a reset.
    pair.local.run("ip", &["route", "add", "blackhole", PEER]);
    let why = await_event(&mut serve, "broken")["why"].clone();
    drop(client);
    pair.local.run("ip", &["route", "del", "blackhole", PEER]);
    assert!(why.as_str().unwrap().contains("control connection"), "{why}");
    assert!(count(&pair.iperf3("-t 1"), "/end/sum_received/bytes") > 0);
}

/// The next event of that name.
fn await_event(serve: &mut Serve, name: &str) -> Value {
    loop {
        let mut line = String::new();
        assert!(serve.events.read_line(&mut line).unwrap() > 0, "serve ended");
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["event"] == name {
            return event;
        }
        assert_ne!(event["event"], "finished", "{event}");
    }
}

#[test]
fn beyond_loopback_a_stock_client_is_only_served_when_all_are() {
    let pair = Pair::new();
    let out = pair.peer.output(NETWRIGHT, &["serve", "--bind", PEER, "--iperf3"]);
    assert_eq!(out.status.code(), Some(2));
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("--iperf3 beyond loopback needs --open"), "{text}");
}
