//! `serve --qperf`: the server for stock qperf clients.

use std::{
    net::{IpAddr, SocketAddr, TcpListener},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use interop::qperf::{self, Event, Limits};
use serde_json::json;
use traffic::budget::Budget;

use super::{args::ServeArgs, log::Log};
use crate::{failure::Failure, output::Sink};

/// Binds the sockets for stock qperf clients; empty where not asked for.
///
/// # Errors
/// A secret would be demanded, which a stock client cannot give (exit code 2), or an address cannot
/// be bound (3 or 4).
pub fn listen(args: &ServeArgs, ips: &[IpAddr]) -> Result<Vec<TcpListener>, Failure> {
    let Some(port) = args.qperf else { return Ok(vec![]) };
    if !args.open && ips.iter().any(|ip| !ip.is_loopback()) {
        return Err(Failure::Usage(
            "a stock qperf client knows no secret: --qperf beyond loopback needs --open".into(),
        ));
    }
    let at: Vec<_> = ips.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
    Ok(qperf::listen(&at)?)
}

pub fn announce(args: &ServeArgs, listeners: &[TcpListener]) -> Result<(), Failure> {
    let names: Vec<String> =
        listeners.iter().filter_map(|l| l.local_addr().ok()).map(|a| a.to_string()).collect();
    if names.is_empty() {
        return Ok(());
    }
    if args.json {
        let line = json!({ "event": "listening", "protocol": "qperf", "addresses": names });
        return Sink::Stdout.text(&format!("{line}\n"));
    }
    match args.talk.quiet {
        true => Ok(()),
        false => {
            let look = Sink::Stdout.look(false);
            Sink::Stdout.text(&report::serve::listening(Some("qperf"), &names, look))
        }
    }
}

pub fn run(
    args: &ServeArgs,
    listeners: &[TcpListener],
    memory: &Arc<Budget>,
    stop: &AtomicBool,
    log: &Log,
) -> traffic::Result<()> {
    let limits = Limits {
        sessions: args.max_tests as usize,
        longest: Duration::from_nanos(args.max_duration.0),
        idle: Duration::from_nanos(args.idle.0),
        data_ports: args.data_ports.as_ref().map(|r| r.0.clone()),
        service_ns: args.service_time,
        memory: memory.clone(),
        ..Limits::default()
    };
    qperf::serve(listeners, &limits, stop, &|event| tell(args, &event, log))
}

fn tell(args: &ServeArgs, event: &Event, log: &Log) {
    match event {
        _ if args.json => log.out(line(event).to_string()),
        _ if args.talk.quiet => {}
        // Connections of port scanners are reported only with `--verbose`.
        Event::Began { .. } | Event::Ignored { .. } if !args.talk.verbose => {}
        event => log.note(format!("qperf: {event}")),
    }
}

/// One event as JSON.
fn line(event: &Event) -> serde_json::Value {
    let mut line = match event {
        Event::Began { client, test, message_bytes, seconds } => json!({
            "event": "started",
            "client": client,
            "test": test,
            "message_bytes": message_bytes,
            "asked_s": seconds,
        }),
        Event::Ended { client, test, received, sent, ns, why } => json!({
            "event": "finished",
            "client": client,
            "test": test,
            "received_messages": received,
            "sent_messages": sent,
            "window_ns": ns,
            "why": why,
        }),
        Event::Failed { client, why } => json!({ "event": "broken", "client": client, "why": why }),
        Event::Ignored { connections } => {
            json!({ "event": "turned_away", "connections": connections })
        }
    };
    if let Some(o) = line.as_object_mut() {
        o.insert("protocol".into(), json!("qperf"));
    }
    line
}
