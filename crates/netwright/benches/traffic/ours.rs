//! `netwright serve` and `netwright measure`, as whole processes.

use std::{io, process::Command, sync::OnceLock, time::Duration};

use serde_json::Value;

use crate::{
    cell::{Figures, Metric},
    process::Process,
    room::Room,
    rtt::Exchange,
};

pub const NETWRIGHT: &str = env!("CARGO_BIN_EXE_netwright");

/// Its name in the table.
pub const NAME: &str = "netwright";

/// Whether this build has the two commands.
pub fn ready() -> bool {
    static READY: OnceLock<bool> = OnceLock::new();
    *READY.get_or_init(|| {
        ["serve", "measure"].iter().all(|c| {
            let help = Command::new(NETWRIGHT).args([c, "--help"]).output();
            help.is_ok_and(|out| out.status.success())
        })
    })
}

/// A server on its own port.
pub fn serve(room: &Room, cpu: usize) -> io::Result<(Process, u16)> {
    let port = room.port();
    let mut command = Command::new(NETWRIGHT);
    command.args(["serve", "--quiet", "--port", &port.to_string()]);
    let server = Process::start(room, command, cpu)?.listening(room, false, port)?;
    Ok((server, port))
}

/// `netwright measure KIND` against it.
pub fn measure(
    room: &Room,
    port: u16,
    ms: u64,
    cpu: usize,
    arguments: &[&str],
) -> io::Result<Process> {
    let mut command = Command::new(NETWRIGHT);
    let (kind, rest) = arguments.split_first().unwrap_or((&"rtt", &[]));
    let (local, peer) = (room.local.to_string(), cpu.to_string());
    command.args(["measure", kind, &format!("127.0.0.1:{port}"), "--json", "--warmup", "100ms"]);
    command
        .args(["--duration", &format!("{ms}ms"), "--cpu", &local, "--peer-cpu", &peer])
        .args(rest);
    Process::start(room, command, room.local)
}

/// The document of a measurement of this many milliseconds.
pub fn document(process: Process, ms: u64) -> io::Result<Value> {
    let printed = process.finish(Duration::from_millis(ms) + Duration::from_secs(10))?;
    let document: Value = serde_json::from_str(&printed)?;
    Ok(document)
}

/// A number of a document.
pub fn number(document: &Value, pointer: &str) -> io::Result<f64> {
    let number = document.pointer(pointer).and_then(Value::as_f64);
    number.ok_or_else(|| io::Error::other(format!("netwright's document has no {pointer}")))
}

/// One run of round trips.
pub fn rtt(room: &Room, exchange: &Exchange, flows: u32, ms: u32) -> io::Result<Figures> {
    let cpu = exchange.peer_cpu_of(room);
    let (_server, port) = serve(room, cpu)?;
    let (bytes, flows) = (exchange.bytes.to_string(), flows.to_string());
    let wait = if exchange.spin { "spin" } else { "block" };
    let mut arguments = vec!["rtt", "--request", &bytes, "--flows", &flows, "--wait", wait];
    arguments.extend(exchange.udp.then_some("--udp"));
    let document = document(measure(room, port, ms.into(), cpu, &arguments)?, ms.into())?;
    Ok(Figures::from([
        (Metric::Median, number(&document, "/runs/0/rtt_ns/p50")?),
        (Metric::Mean, number(&document, "/runs/0/rtt_ns/mean")?),
        (Metric::Trips, number(&document, "/runs/0/transactions_per_s")?),
    ]))
}
