//! Redis commands over kept connections on one thread, beside redis-benchmark. A real redis-server
//! answers on another CPU. The figures are the server's own count and the client's CPU time,
//! between two moments of steady traffic.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    cell::{Cell, Compare, Contender, Figures, Metric, Target},
    options::Options,
    ours::{self, NAME},
    process::Process,
    room::{Room, sleep},
    table::Table,
};

/// How long traffic flows before the first reading.
const SETTLE: Duration = Duration::from_millis(250);

pub fn measure(room: &Room, options: &Options, table: &mut Table) -> io::Result<()> {
    table.part(&format!(
        "Redis, GET of a key that is not there, one thread: redis-server on CPU {}, clients on CPU {}",
        room.local, room.peer
    ));
    table.columns();
    for (flows, pipeline) in [(1u32, 1u32), (50, 1), (50, 16)] {
        let window = Duration::from_millis(options.window_ms.into());
        let theirs = move || steady(room, window, |port| benchmark(room, flows, pipeline, port));
        let mut contenders = vec![Contender { name: "redis-benchmark", run: Box::new(theirs) }];
        if ours::ready() {
            let run = move || steady(room, window, |port| netwright(room, flows, pipeline, port));
            contenders.push(Contender { name: NAME, run: Box::new(run) });
        }
        let one =
            |metric, target| Compare { metric, subject: NAME, other: "redis-benchmark", target };
        let compare = vec![
            one(Metric::Requests, Target::AtLeast(1.0, None)),
            one(Metric::CpuPerRequest, Target::AtMost(1.0)),
        ];
        let name = format!("{flows} connections, {pipeline} outstanding");
        Cell { name, contenders, compare }.measure(options, table)?;
    }
    Ok(())
}

fn benchmark(room: &Room, flows: u32, pipeline: u32, port: u16) -> io::Result<Process> {
    let mut command = Command::new("redis-benchmark");
    let (port, flows, pipeline) = (port.to_string(), flows.to_string(), pipeline.to_string());
    command.args(["-p", &port, "-c", &flows, "-P", &pipeline, "-t", "get", "-r", "100000"]);
    command.args(["-n", "1000000000", "--csv"]);
    Process::start(room, command, room.peer)
}

fn netwright(room: &Room, flows: u32, pipeline: u32, port: u16) -> io::Result<Process> {
    let mut command = Command::new(ours::NETWRIGHT);
    let (flows, pipeline) = (flows.to_string(), pipeline.to_string());
    command.args(["measure", "redis", &format!("redis://127.0.0.1:{port}"), "--json"]);
    command.args(["--flows", &flows, "--pipeline", &pipeline]);
    command.args(["--warmup", "0s", "--duration", "60s", "--cpu", &room.peer.to_string()]);
    Process::start(room, command, room.peer)
}

/// One run: a new server, a client, two readings; both are killed then.
fn steady(
    room: &Room,
    window: Duration,
    start: impl Fn(u16) -> io::Result<Process>,
) -> io::Result<Figures> {
    let port = room.port();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--save", "", "--dir"]).arg(&room.folder);
    let _server = Process::start(room, command, room.local)?.listening(room, false, port)?;
    let client = start(port)?;
    room.wait_traffic(1_000_000)?;
    sleep(SETTLE)?;
    let look = || -> io::Result<_> { Ok((Instant::now(), commands(port)?, client.cpu_ns()?)) };
    let (begun, commands, cpu_ns) = look()?;
    sleep(window)?;
    let (ended, commands_after, cpu_ns_after) = look()?;
    let n = (commands_after - commands) as f64;
    Ok(Figures::from([
        (Metric::Requests, n / (ended - begun).as_secs_f64()),
        (Metric::CpuPerRequest, (cpu_ns_after - cpu_ns) as f64 / n),
    ]))
}

/// How many commands the server has had.
fn commands(port: u16) -> io::Result<u64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"INFO stats\r\nQUIT\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let count = text.lines().find_map(|l| l.strip_prefix("total_commands_processed:"));
    let count = count.and_then(|n| n.trim().parse().ok());
    count.ok_or_else(|| io::Error::other(format!("redis-server does not say its commands: {text}")))
}
