//! HTTP requests over kept connections on one thread, beside wrk. A real nginx answers with a few
//! bytes on another CPU. The figures are nginx's own count and the client's CPU time, between two
//! moments of steady traffic.

use std::{
    fs,
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

/// How long traffic flows before the first reading: wrk calibrates itself at first.
const SETTLE: Duration = Duration::from_millis(250);

pub fn measure(room: &Room, options: &Options, table: &mut Table) -> io::Result<()> {
    table.part(&format!(
        "HTTP, a response of 2 bytes, blocking, one thread: nginx on CPU {}, clients on CPU {}",
        room.local, room.peer
    ));
    table.columns();
    for flows in [16u32, 64] {
        let window = Duration::from_millis(options.window_ms.into());
        let theirs = move || steady(room, window, |url| wrk(room, flows, url));
        let mut contenders = vec![Contender { name: "wrk", run: Box::new(theirs) }];
        if ours::ready() {
            let run = move || steady(room, window, |url| netwright(room, flows, url));
            contenders.push(Contender { name: NAME, run: Box::new(run) });
        }
        let one = |metric, target| Compare { metric, subject: NAME, other: "wrk", target };
        let compare = vec![
            one(Metric::Requests, Target::AtLeast(1.0, None)),
            one(Metric::CpuPerRequest, Target::AtMost(1.0)),
        ];
        let name = format!("{flows} connections");
        Cell { name, contenders, compare }.measure(options, table)?;
    }
    Ok(())
}

fn wrk(room: &Room, flows: u32, url: &str) -> io::Result<Process> {
    let mut command = Command::new("wrk");
    command.args(["-t1", &format!("-c{flows}"), "-d60s", url]);
    Process::start(room, command, room.peer)
}

fn netwright(room: &Room, flows: u32, url: &str) -> io::Result<Process> {
    let mut command = Command::new(ours::NETWRIGHT);
    command.args(["measure", "http", url, "--flows", &flows.to_string(), "--json"]);
    command.args(["--warmup", "0s", "--duration", "60s", "--cpu", &room.peer.to_string()]);
    Process::start(room, command, room.peer)
}

/// One run: a new server, a client, two readings; both are killed then.
fn steady(
    room: &Room,
    window: Duration,
    start: impl Fn(&str) -> io::Result<Process>,
) -> io::Result<Figures> {
    let (_server, port) = nginx(room)?;
    let client = start(&format!("http://127.0.0.1:{port}/hi"))?;
    room.wait_traffic(1_000_000)?;
    sleep(SETTLE)?;
    let look = || -> io::Result<_> { Ok((Instant::now(), requests(port)?, client.cpu_ns()?)) };
    let (begun, requests, cpu_ns) = look()?;
    sleep(window)?;
    let (ended, requests_after, cpu_ns_after) = look()?;
    let n = (requests_after - requests) as f64;
    Ok(Figures::from([
        (Metric::Requests, n / (ended - begun).as_secs_f64()),
        (Metric::CpuPerRequest, (cpu_ns_after - cpu_ns) as f64 / n),
    ]))
}

/// One process without a master, so that it ends with us.
fn nginx(room: &Room) -> io::Result<(Process, u16)> {
    let (port, file) = (room.port(), room.file("nginx.conf"));
    let at = room.folder.display();
    let text = format!(
        "daemon off; master_process off; pid {at}/{port}.pid; error_log /dev/null;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_requests 1000000000;\n\
         client_body_temp_path {at}/body; proxy_temp_path {at}/proxy;\n\
         fastcgi_temp_path {at}/fastcgi; uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;\n\
         server {{ listen 127.0.0.1:{port}; location = /hi {{ return 200 hi; }}\n\
         location = /count {{ stub_status; }} }} }}\n"
    );
    fs::write(&file, text)?;
    let program = ["/usr/sbin/nginx", "nginx"];
    let there = fs::exists(program[0]).unwrap_or(false);
    let mut command = Command::new(program[usize::from(!there)]);
    command.arg("-p").arg(&room.folder).arg("-c").arg(&file);
    let server = Process::start(room, command, room.local)?.listening(room, false, port)?;
    Ok((server, port))
}

/// How many requests the server has had.
fn requests(port: u16) -> io::Result<u64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET /count HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    // `server accepts handled requests`, and below it the three numbers.
    let numbers = text.lines().skip_while(|l| !l.starts_with("server accepts")).nth(1);
    let count = numbers.and_then(|l| l.split_whitespace().nth(2)?.parse().ok());
    count.ok_or_else(|| io::Error::other(format!("nginx does not say its requests: {text}")))
}
