//! The peers, each with its best options for the same exchange.

use std::{io, path::Path, process::Command, time::Duration};

use crate::{
    cell::{Figures, Metric},
    process::Process,
    room::Room,
    rtt::Exchange,
};

/// The shortest time that all of them can measure.
pub const SECONDS: u32 = 1;
const LIMIT: Duration = Duration::from_secs(SECONDS as u64 + 6);

/// sockperf's smallest message: its own header.
pub const SOCKPERF_LEAST_BYTES: u32 = 14;

fn command(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// The number that follows a word in a program's output.
fn number_after(text: &str, word: &str) -> io::Result<f64> {
    let after = text.split_once(word).map(|(_, rest)| rest.trim_start_matches([' ', '=', ':']));
    let number = after.and_then(|t| t.split([' ', '\n', '\u{1b}']).next()?.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("no {word:?} in {text:?}")))
}

/// qperf blocks only, as its polling is for RDMA. It reports a mean over both ends' counts, and
/// half the round trip, which is doubled here.
pub fn qperf(room: &Room, exchange: &Exchange) -> io::Result<Figures> {
    let port = room.port();
    let (listen, data) = (port.to_string(), (port + 1).to_string());
    let server = command("qperf", &["--listen_port", &listen]);
    let server = Process::start(room, server, exchange.peer_cpu_of(room))?;
    let _server = server.listening(room, false, port)?;
    let (seconds, bytes) = (SECONDS.to_string(), exchange.bytes.to_string());
    let test = if exchange.udp { "udp_lat" } else { "tcp_lat" };
    let client = command(
        "qperf",
        &[
            "127.0.0.1",
            "--listen_port",
            &listen,
            "--ip_port",
            &data,
            "--time",
            &seconds,
            "--msg_size",
            &bytes,
            "--precision",
            "9",
            "--unify_units",
            test,
        ],
    );
    let printed = Process::start(room, client, room.local)?.finish(LIMIT)?;
    // Its figures have the unit that all of them share; a single one is in nanoseconds.
    if !printed.contains(" ns") {
        return Err(io::Error::other(format!("qperf's latency is not in ns: {printed:?}")));
    }
    Ok(Figures::from([(Metric::Mean, 2.0 * number_after(&printed, "latency")?)]))
}

/// sockperf's ping-pong: `recvfrom` on one socket, which blocks, or spins with `--nonblocked` at
/// both ends. Of its second, 400 ms are warm-up and 50 ms cool-down.
pub fn sockperf(room: &Room, exchange: &Exchange) -> io::Result<Figures> {
    let port = room.port();
    let text = port.to_string();
    let common = |role: &str| {
        let mut command = command("sockperf", &[role, "-i", "127.0.0.1", "-p", &text]);
        command.args((!exchange.udp).then_some("--tcp"));
        command.args(exchange.spin.then_some("--nonblocked"));
        command
    };
    let server = Process::start(room, common("server"), exchange.peer_cpu_of(room))?;
    let _server = server.listening(room, exchange.udp, port)?;
    let mut client = common("ping-pong");
    let (seconds, bytes) = (SECONDS.to_string(), exchange.bytes.to_string());
    client.args(["-m", &bytes, "-t", &seconds, "--full-rtt"]);
    let printed = Process::start(room, client, room.local)?.finish(LIMIT)?;
    Ok(Figures::from([
        (Metric::Median, 1e3 * number_after(&printed, "percentile 50.000")?),
        (Metric::Mean, 1e3 * number_after(&printed, "avg-rtt")?),
    ]))
}

/// Both ends of neper's `tcp_rr` with this many flows on one thread each: client, server.
pub fn neper_start(room: &Room, path: &Path, flows: u32) -> io::Result<(Process, Process)> {
    let port = room.port();
    let (control, data) = (port.to_string(), (port + 1).to_string());
    let backlog = flows.max(128).to_string();
    let common = ["--nolog", "-T", "1", "-C", &control, "-P", &data, "-I", "0.05"];
    let mut server = command(path, &common);
    server.args(["--listen-backlog", &backlog]);
    let server = Process::start(room, server, room.peer)?.listening(room, false, port)?;
    let mut client = command(path, &common);
    let (seconds, flows) = (SECONDS.to_string(), flows.to_string());
    client.args(["-c", "-H", "127.0.0.1", "-F", &flows, "-l", &seconds]);
    Ok((Process::start(room, client, room.local)?, server))
}

/// Round trips a second of neper's `tcp_rr`, as it reports them.
pub fn neper(room: &Room, path: &Path, flows: u32) -> io::Result<Figures> {
    let (client, _server) = neper_start(room, path, flows)?;
    let printed = client.finish(LIMIT)?;
    Ok(Figures::from([(Metric::Trips, number_after(&printed, "\nthroughput")?)]))
}

/// Both ends of iperf3 with one stream: sender, receiver.
pub fn iperf3(room: &Room) -> io::Result<(Process, Process)> {
    let port = room.port();
    let text = port.to_string();
    let server = command("iperf3", &["-s", "-1", "-p", &text]);
    let receiver = Process::start(room, server, room.peer)?.listening(room, false, port)?;
    // One second more than is measured.
    let seconds = (SECONDS + 1).to_string();
    let client = command("iperf3", &["-c", "127.0.0.1", "-p", &text, "-t", &seconds]);
    Ok((Process::start(room, client, room.local)?, receiver))
}
