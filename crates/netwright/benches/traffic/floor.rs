//! The bare C loops of `../floor`, compiled for each run.

use std::{
    io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    cell::{Figures, Metric},
    process::Process,
    room::{Room, named},
    rtt::Exchange,
};

pub struct Floor {
    pingpong: PathBuf,
    stream: PathBuf,
}

/// One loop, by `cc -O2`.
pub fn compiled(room: &Room, name: &str) -> io::Result<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/floor");
    let program = room.folder.join(name);
    let source = sources.join(format!("{name}.c"));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-o"]).arg(&program).arg(source);
    let out = cc.output().map_err(|e| named("cc", &e))?;
    match out.status.success() {
        true => Ok(program),
        false => Err(io::Error::other(String::from_utf8_lossy(&out.stderr).into_owned())),
    }
}

/// Traffic before the measured part.
const WARMUP_MS: u32 = 100;

impl Floor {
    /// Compiles them with `cc -O2`.
    pub fn compile(room: &Room) -> io::Result<Self> {
        Ok(Self { pingpong: compiled(room, "pingpong")?, stream: compiled(room, "stream")? })
    }

    /// One run of round trips.
    pub fn rtt(&self, room: &Room, exchange: &Exchange, ms: u32) -> io::Result<Figures> {
        self.pingpong(room, exchange, ms, "record")
    }

    /// The same without timestamps: the mean only.
    pub fn rtt_unrecorded(&self, room: &Room, exchange: &Exchange, ms: u32) -> io::Result<Figures> {
        self.pingpong(room, exchange, ms, "count")
    }

    fn pingpong(&self, room: &Room, e: &Exchange, ms: u32, how: &str) -> io::Result<Figures> {
        let port = room.port();
        let common = |role: &str| {
            let mut command = Command::new(&self.pingpong);
            let protocol = if e.udp { "udp" } else { "tcp" };
            let wait = if e.spin { "spin" } else { "block" };
            command.args([role, protocol, &port.to_string(), &e.bytes.to_string(), wait]);
            command
        };
        let server = Process::start(room, common("serve"), e.peer_cpu_of(room))?;
        let _server = server.listening(room, e.udp, port)?;
        let mut client = common("client");
        client.args([&WARMUP_MS.to_string(), &ms.to_string(), how]);
        let limit = Duration::from_millis((WARMUP_MS + ms).into()) + Duration::from_secs(5);
        let printed = Process::start(room, client, room.local)?.finish(limit)?;
        let numbers: Vec<f64> = printed.split_whitespace().flat_map(str::parse).collect();
        let [median, mean, _, count, window] = numbers[..] else {
            return Err(io::Error::other(format!("pingpong printed {printed:?}")));
        };
        let mut figures =
            Figures::from([(Metric::Mean, mean), (Metric::Trips, count * 1e9 / window)]);
        if how == "record" {
            figures.insert(Metric::Median, median);
        }
        Ok(figures)
    }

    /// Both ends of a stream of this length: sender, receiver.
    pub fn stream(&self, room: &Room, ms: u32) -> io::Result<(Process, Process)> {
        let port = room.port();
        let command = |arguments: &[&str]| {
            let mut command = Command::new(&self.stream);
            command.args(arguments);
            command
        };
        let text = port.to_string();
        let receiver = Process::start(room, command(&["serve", &text]), room.peer)?;
        let receiver = receiver.listening(room, false, port)?;
        let sender =
            Process::start(room, command(&["client", &text, &ms.to_string()]), room.local)?;
        Ok((sender, receiver))
    }
}
