//! Servers for foreign clients: iperf3 and qperf.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use interop::iperf3::{Event, Limits, Server};
use serde_json::json;
use traffic::budget::Budget;

use super::{args::ServeArgs, log::Log};
use crate::{failure::Failure, output::Sink};

/// Binds the server for stock iperf3 clients; `None` where it was not asked for.
///
/// # Errors
/// A secret would be demanded, which a stock client cannot give (exit code 2), or an address cannot
/// be bound (3 or 4).
pub fn iperf3(args: &ServeArgs, ips: &[IpAddr]) -> Result<Option<Server>, Failure> {
    let Some(port) = args.iperf3 else { return Ok(None) };
    if !args.open && ips.iter().any(|ip| !ip.is_loopback()) {
        return Err(Failure::Usage(
            "a stock iperf3 client knows no secret: --iperf3 beyond loopback needs --open".into(),
        ));
    }
    let listen: Vec<_> = ips.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
    Ok(Some(Server::bind(&listen)?))
}

pub fn announce(args: &ServeArgs, server: &Option<Server>) -> Result<(), Failure> {
    let Some(server) = server else { return Ok(()) };
    let names: Vec<String> = server.addresses().iter().map(ToString::to_string).collect();
    if args.json {
        let line = json!({ "event": "listening", "protocol": "iperf3", "addresses": names });
        return Sink::Stdout.text(&format!("{line}\n"));
    }
    match args.talk.quiet {
        true => Ok(()),
        false => {
            let look = Sink::Stdout.look(false);
            Sink::Stdout.text(&report::serve::listening(Some("iperf3"), &names, look))
        }
    }
}

pub fn run(
    args: &ServeArgs,
    server: &Server,
    memory: &Arc<Budget>,
    stop: &AtomicBool,
    log: &Log,
) -> traffic::Result<()> {
    let limits = Limits {
        clients: args.max_tests as usize,
        streams: args.max_flows as usize,
        duration: Duration::from_nanos(args.max_duration.0),
        idle: Duration::from_nanos(args.idle.0),
        memory: memory.clone(),
        ..Limits::default()
    };
    server.run(&limits, stop, &|event| tell(args, &event, log))
}

fn tell(args: &ServeArgs, event: &Event, log: &Log) {
    if args.json {
        log.out(line(event).to_string());
        return;
    }
    match event {
        _ if args.talk.quiet => {}
        Event::Started { client, what } if args.talk.verbose => {
            log.note(format!("{client}: iperf3: {what}"));
        }
        Event::Finished { client, received_bytes, sent_bytes, seconds } => {
            let (received, sent) = (model::Bytes(*received_bytes), model::Bytes(*sent_bytes));
            log.note(format!(
                "{client}: iperf3: received {received}, sent {sent} in {seconds:.2} s"
            ));
        }
        Event::Warned { client, what } => log.note(format!("{client}: iperf3: {what}")),
        Event::Trouble { what } => log.note(format!("iperf3: {what}")),
        Event::Broken { client, why } => log.note(format!("{client}: iperf3: {why}")),
        // Connections of port scanners are reported only with `--verbose`.
        Event::TurnedAway { client, why } if args.talk.verbose => {
            log.note(format!("{client}: iperf3: turned away: {why}"));
        }
        _ => {}
    }
}

/// One event as JSON.
fn line(event: &Event) -> serde_json::Value {
    let mut line = match event {
        Event::Started { client, what } => {
            json!({ "event": "started", "client": client, "what": what })
        }
        Event::Finished { client, received_bytes, sent_bytes, seconds } => json!({
            "event": "finished",
            "client": client,
            "received_bytes": received_bytes,
            "sent_bytes": sent_bytes,
            "window_s": seconds,
        }),
        Event::Warned { client, what } => {
            json!({ "event": "warned", "client": client, "what": what })
        }
        Event::Broken { client, why } => json!({ "event": "broken", "client": client, "why": why }),
        Event::TurnedAway { client, why } => {
            json!({ "event": "turned_away", "client": client, "why": why })
        }
        Event::Trouble { what } => json!({ "event": "trouble", "what": what }),
        _ => json!({ "event": "other" }),
    };
    if let Some(o) = line.as_object_mut() {
        o.insert("protocol".into(), json!("iperf3"));
    }
    line
}
