//! Tests of a scripted hostile client: complete sessions of all three protocols with some messages
//! changed, cut, repeated, omitted or reordered. Afterwards the server still serves, and holds no
//! more resources than before.
//!
//! `NETWRIGHT_SESSIONS=10000` runs that many on each protocol instead of [`SESSIONS`], and prints
//! the server's resources before and after.

use std::{
    io::{BufRead, Read, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    time::{Duration, Instant},
};

use crate::support::{
    dice::{Dice, NUMBERS},
    hostile::{HeldConnections, frame, held, serves, test},
    serve::Serve,
};
use serde_json::{Value, json};

/// Mutated sessions of each protocol.
const SESSIONS: u64 = 300;
/// Hostile clients at the same time.
const PEERS: u64 = 8;
/// How long a client waits for the server's message.
const PATIENCE: Duration = Duration::from_millis(60);

/// One step of a client.
#[derive(Clone)]
enum Step {
    /// Sends this on the control connection.
    Say(Vec<u8>),
    /// Receives a message on the control connection.
    Hear,
    /// Opens a data connection to the server's data port, or to its own port.
    Open,
    /// Sends this on the newest data connection; `None`: the data connection's first message.
    Data(Option<Vec<u8>>),
    /// Sends a datagram to the data port; `None` as above.
    Datagram(Option<Vec<u8>>),
}

/// A server's answer about its data connections.
#[derive(Default, Clone)]
struct Room {
    port: Option<u16>,
    preamble: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Protocol {
    Ours,
    Iperf3,
    Qperf,
}

/// Changes a message: a number in it, bits, its length, or a repetition.
fn mutate(bytes: &mut Vec<u8>, protocol: Protocol, dice: &mut Dice) {
    match dice.roll(8) {
        // A number in its text, with the length before it adjusted.
        0..4 => {
            let text = String::from_utf8_lossy(bytes.get(8..).unwrap_or_default()).into_owned();
            let (head, text) = match protocol {
                Protocol::Iperf3 if bytes.len() > 40 => {
                    (0, String::from_utf8_lossy(&bytes[4..]).into_owned())
                }
                _ => (4, text),
            };
            let starts: Vec<usize> = (1..text.len())
                .filter(|i| {
                    let b = text.as_bytes();
                    b[*i].is_ascii_digit() && !b[i - 1].is_ascii_alphanumeric()
                })
                .collect();
            if starts.is_empty() || matches!(protocol, Protocol::Qperf) {
                // Fields of 32 bits.
                let at = dice.roll(bytes.len() / 4) * 4;
                let n = *dice.of(&[0u32, 1, 255, 65_536, 1 << 31, u32::MAX]);
                if let Some(field) = bytes.get_mut(at..at + 4) {
                    field.copy_from_slice(&n.to_le_bytes());
                }
                return;
            }
            let at = *dice.of(&starts);
            let end = text[at..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |n| at + n);
            let new = format!("{}{}{}", &text[..at], dice.of(&NUMBERS), &text[end..]);
            let magic: Vec<u8> = bytes[..head].to_vec();
            *bytes = [&magic[..], &(new.len() as u32).to_be_bytes(), new.as_bytes()].concat();
        }
        4 => {
            for _ in 0..=dice.roll(4) {
                let at = dice.roll(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.roll(8);
                }
            }
        }
        5 => bytes.truncate(dice.roll(bytes.len())),
        6 => {
            let more = vec![dice.roll(256) as u8; dice.roll(5000)];
            let at = dice.roll(bytes.len() + 1);
            bytes.splice(at..at, more);
        }
        _ => bytes.extend_from_within(..),
    }
}

/// Changes a session: its messages, or their order.
fn attack(steps: &mut Vec<Step>, protocol: Protocol, dice: &mut Dice) {
    for _ in 0..=dice.roll(2) {
        let at = dice.roll(steps.len());
        match dice.roll(10) {
            0 => drop(steps.remove(at)),
            1 => steps.insert(at, steps[at].clone()),
            2 => {
                let other = dice.roll(steps.len());
                steps.swap(at, other);
            }
            3 => steps.truncate(at + 1),
            _ => {
                let says = |s: &&mut Step| {
                    matches!(s, Step::Say(_) | Step::Data(Some(_)) | Step::Datagram(Some(_)))
                };
                let n = steps.iter_mut().filter(says).count();
                let which = dice.roll(n);
                if let Some(Step::Say(b) | Step::Data(Some(b)) | Step::Datagram(Some(b))) =
                    steps.iter_mut().filter(says).nth(which)
                {
                    mutate(b, protocol, dice);
                }
            }
        }
    }
}

/// Plays a session to its end, or until the server closes it.
fn play(steps: &[Step], protocol: Protocol, to: SocketAddr) -> Option<()> {
    let mut control = TcpStream::connect(to).ok()?;
    control.set_read_timeout(Some(PATIENCE)).unwrap();
    control.set_write_timeout(Some(PATIENCE)).unwrap();
    let (mut room, mut data, mut datagrams) = (Room::default(), vec![], None);
    if let (Protocol::Iperf3, Some(Step::Say(cookie))) = (protocol, steps.first()) {
        room = Room { port: Some(to.port()), preamble: cookie.clone() };
    }
    for step in steps {
        match step {
            Step::Say(bytes) => control.write_all(bytes).ok()?,
            Step::Hear => hear(&mut control, protocol, &mut room)?,
            Step::Open => {
                let at = SocketAddr::new(to.ip(), room.port.unwrap_or(to.port()));
                let one = TcpStream::connect(at).ok()?;
                one.set_write_timeout(Some(PATIENCE)).unwrap();
                data.push(one);
            }
            Step::Data(bytes) => {
                let bytes = bytes.as_ref().unwrap_or(&room.preamble);
                data.last_mut()?.write_all(bytes).ok()?;
            }
            Step::Datagram(bytes) => {
                let socket =
                    datagrams.get_or_insert_with(|| UdpSocket::bind((to.ip(), 0)).unwrap());
                let at = SocketAddr::new(to.ip(), room.port.unwrap_or(to.port()));
                let _ = socket.send_to(bytes.as_ref().unwrap_or(&room.preamble), at);
            }
        }
    }
    Some(())
}

/// Receives one message, or whatever comes; `None` at the end.
fn hear(control: &mut TcpStream, protocol: Protocol, room: &mut Room) -> Option<()> {
    let mut bytes = [0u8; 4096];
    let n = match control.read(&mut bytes) {
        Ok(0) => return None,
        Ok(n) => n,
        Err(_) => return Some(()),
    };
    match protocol {
        Protocol::Ours => {
            let said: Value = serde_json::from_slice(bytes.get(8..n)?).unwrap_or_default();
            let ready = &said["ready"];
            if let (Some(port), Some(token)) = (ready["ports"][0].as_u64(), ready["token"].as_str())
            {
                let byte = |i: usize| u8::from_str_radix(&token[2 * i..2 * i + 2], 16).unwrap();
                let token: Vec<u8> = (0..16).map(byte).collect();
                let preamble = [&b"NWD1"[..], &token, &[0; 4]].concat();
                *room = Room { port: u16::try_from(port).ok(), preamble };
            }
        }
        Protocol::Iperf3 => {}
        Protocol::Qperf if n == 4 => {
            room.port = u16::try_from(u32::from_le_bytes(bytes[..4].try_into().unwrap())).ok();
        }
        Protocol::Qperf => {}
    }
    Some(())
}

fn said(message: &Value) -> Step {
    Step::Say(frame(message))
}

/// Correct sessions with our own server.
fn ours() -> Vec<Vec<Step>> {
    let hello = json!({ "hello": { "protocol": 1, "program": "peer", "nonce": "00",
        "proof": null, "boot_id": "" } });
    let rtt = json!({ "rtt": { "request_bytes": 8, "response_bytes": 8, "queue_depth": 4 } });
    let stream = json!({ "stream": { "direction": "both", "message_bytes": 1000,
        "rate_bps": 1_000_000, "zerocopy": null, "skip_receive_copy": false } });
    let connect = json!({ "connect": { "request_bytes": 4, "response_bytes": 4,
        "close": "peer", "from": ["127.0.0.1"] } });
    let short = 50_000_000u64;
    let tests = [
        json!({ "kind": rtt, "max_time_ns": short, "service_ns": 1000 }),
        json!({ "kind": rtt, "max_time_ns": short, "transport": "udp" }),
        json!({ "kind": stream, "max_time_ns": short }),
        json!({ "kind": stream, "max_time_ns": short, "transport": "udp" }),
        json!({ "kind": connect, "max_time_ns": short }),
        json!({ "kind": "look", "max_time_ns": short, "flows": 0, "threads": 0 }),
    ];
    let session = |changes: &Value| {
        let mut steps =
            vec![Step::Hear, said(&hello), Step::Hear, said(&test(changes)), Step::Hear];
        let udp = changes["transport"] == "udp";
        let flows = if changes["kind"].get("stream").is_some() { 2u8 } else { 1 };
        for _ in 0..flows {
            match udp {
                true => steps.push(Step::Datagram(None)),
                false => steps.extend([Step::Open, Step::Data(None)]),
            }
        }
        steps.extend([Step::Hear, said(&json!("mark")), Step::Hear]);
        match udp {
            true => steps.push(Step::Datagram(Some(vec![7; 1000]))),
            false => steps.push(Step::Data(Some(vec![7; 1000]))),
        }
        steps.extend([said(&json!("mark")), Step::Hear, said(&json!("finish")), Step::Hear]);
        steps
    };
    tests.iter().map(session).collect()
}

fn long(value: &Value) -> Step {
    let text = value.to_string();
    Step::Say([&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat())
}

/// Correct sessions with the iperf3 server.
fn iperf3() -> Vec<Vec<Step>> {
    let params = |more: Value| {
        let mut all = json!({ "tcp": true, "omit": 0, "time": 1, "num": 0, "blockcount": 0,
            "parallel": 1, "len": 1000, "bandwidth": 0, "window": 10_000, "burst": 2,
            "client_version": "3.12", "congestion": "cubic" });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let results = json!({ "cpu_util_total": 1.5, "cpu_util_user": 1, "cpu_util_system": 0.5,
        "sender_has_retransmits": 1, "congestion_used": "cubic", "streams": [{ "id": 1,
        "bytes": 1000, "retransmits": 0, "jitter": 0, "errors": 0, "packets": 0,
        "start_time": 0, "end_time": 1 }] });
    let session = |more: Value| {
        let udp = more.get("udp").is_some();
        // The cookie, different for each session, precedes it.
        let mut steps = vec![Step::Hear, long(&params(more)), Step::Hear];
        match udp {
            true => steps.push(Step::Datagram(Some(b"9876".to_vec()))),
            false => steps.extend([Step::Open, Step::Data(None)]),
        }
        steps.extend([Step::Hear, Step::Hear]);
        match udp {
            true => steps.push(Step::Datagram(Some(vec![3; 1000]))),
            false => steps.push(Step::Data(Some(vec![3; 1000]))),
        }
        steps.extend([Step::Say(vec![4]), Step::Hear, long(&results), Step::Hear]);
        steps.push(Step::Say(vec![16]));
        steps
    };
    [
        json!({}),
        json!({ "reverse": true }),
        json!({ "bidirectional": true, "parallel": 1 }),
        json!({ "udp": true, "tcp": false }),
        json!({ "get_server_output": 1, "zerocopy": 1 }),
    ]
    .map(session)
    .into()
}

/// Correct sessions with the qperf server.
fn qperf() -> Vec<Vec<Step>> {
    let session = |index: u16, udp: bool| {
        let mut request: Vec<u8> =
            [0, 4, 11, index].into_iter().flat_map(u16::to_le_bytes).collect();
        let mut fields = [0u32; 16];
        (fields[4], fields[13], fields[14]) = (100, 1, 1);
        request.extend(fields.into_iter().flat_map(u32::to_le_bytes));
        request.resize(200, 0);
        let mut steps = vec![Step::Say(request), Step::Hear];
        if !udp {
            steps.push(Step::Open);
        }
        steps.extend([Step::Hear, Step::Say(b"synchronization before test".to_vec())]);
        match udp {
            true => steps.push(Step::Datagram(Some(vec![5; 100]))),
            false => steps.push(Step::Data(Some(vec![5; 300]))),
        }
        steps.extend([Step::Hear, Step::Say(b"synchronization after test".to_vec())]);
        steps
    };
    vec![session(8, false), session(9, false), session(10, true), session(11, true)]
}

fn sessions() -> u64 {
    std::env::var("NETWRIGHT_SESSIONS").ok().map_or(SESSIONS, |n| n.parse().unwrap())
}

/// Attacks a server with this many sessions, which the clients take in turn.
fn flood(protocol: Protocol, honest: &[Vec<Step>], to: SocketAddr) {
    std::thread::scope(|threads| {
        for peer in 0..PEERS {
            threads.spawn(move || {
                for n in (peer..sessions()).step_by(PEERS as usize) {
                    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (n + 1).wrapping_mul(0xff51_afd7));
                    let mut steps = honest[n as usize % honest.len()].clone();
                    if let Protocol::Iperf3 = protocol {
                        let digits = format!("{n:0>36}").into_bytes();
                        steps.insert(0, Step::Say([&digits[..], &[0]].concat()));
                    }
                    attack(&mut steps, protocol, &mut dice);
                    let _ = play(&steps, protocol, to);
                }
            });
        }
    });
}

/// The resources of the server after the sessions.
fn settled(serve: &Serve, before: HeldConnections) -> HeldConnections {
    const KEPT_KIB: u64 = 24 << 10;
    let begun = Instant::now();
    loop {
        let now = held(serve);
        if now.threads <= before.threads
            && now.descriptors <= before.descriptors
            && now.rss_kib <= before.rss_kib + KEPT_KIB
        {
            return now;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{before:?} became {now:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn mutated_sessions_of_every_protocol_leave_the_server_as_it_was() {
    let mut serve = Serve::start(&["--iperf3", "0", "--qperf", "0", "--quiet", "--idle", "5s"]);
    let mut beside = || -> SocketAddr {
        let mut line = String::new();
        serve.events.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["addresses"][0].as_str().unwrap_or_else(|| panic!("{said}"));
        address.parse().unwrap()
    };
    let (to_iperf3, to_qperf) = (beside(), beside());
    // Its log is read, as an operator would.
    let mut events = std::mem::replace(&mut serve.events, nothing());
    std::thread::spawn(move || std::io::copy(&mut events, &mut std::io::sink()));
    serves(&serve);
    let to_ours: SocketAddr = serve.target().parse().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    for (protocol, honest, to) in [
        (Protocol::Ours, ours(), to_ours),
        (Protocol::Iperf3, iperf3(), to_iperf3),
        (Protocol::Qperf, qperf(), to_qperf),
    ] {
        let before = held(&serve);
        let begun = Instant::now();
        flood(protocol, &honest, to);
        let took = begun.elapsed();
        serves(&serve);
        let after = settled(&serve, before);
        println!("{protocol:?}: {} sessions in {took:.1?}: {before:?} → {after:?}", sessions());
    }
}

/// A reader that has ended.
fn nothing() -> std::io::BufReader<std::process::ChildStdout> {
    let mut child =
        std::process::Command::new("true").stdout(std::process::Stdio::piped()).spawn().unwrap();
    let out = child.stdout.take().unwrap();
    child.wait().unwrap();
    std::io::BufReader::new(out)
}
