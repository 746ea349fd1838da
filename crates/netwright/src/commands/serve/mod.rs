//! `netwright serve`: the far end of measurements.

pub mod args;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use model::measure::Pin;
use serde_json::json;
use traffic::{
    Secret,
    serve::{Event, Limits, Listen, Options, Server},
};

use self::args::ServeArgs;
use crate::{
    commands::measure::{args::SecretArgs, secret},
    exit::{Done, Failure},
    interrupt::Window,
    output::{Sink, note},
};

/// Serves until Ctrl-C or SIGTERM.
pub fn run(args: &ServeArgs) -> Result<Done, Failure> {
    let window = Window::open();
    let (secret, printed) = demanded(args)?;
    let server = Server::bind(Options {
        listen: addresses(args),
        data_ports: args.data_ports.as_ref().map(|r| r.0.clone()),
        secret,
        limits: Limits {
            sessions: args.max_tests as usize,
            flows: args.max_flows,
            longest: Duration::from_nanos(args.max_duration.0),
            idle: Duration::from_nanos(args.idle.0),
            ..Limits::default()
        },
        service_ns: args.service_time,
        pin: match (&args.cpu, args.no_pin) {
            (Some(list), _) => Pin::List(list.clone()),
            (None, true) => Pin::No,
            (None, false) => Pin::Auto,
        },
    })?;
    announce(args, &server.listening(), printed.as_deref())?;
    server.run(window.stop(), &|event| tell(args, &event))?;
    Ok(Done::Yes)
}

/// Loopback unless told otherwise.
fn addresses(args: &ServeArgs) -> Vec<Listen> {
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let ips: &[IpAddr] = match (&args.bind[..], &args.unix) {
        ([], Some(_)) => &[],
        ([], None) => &loopback,
        (asked, _) => asked,
    };
    // A host without IPv6 serves IPv4: only what was asked for by name must work.
    let here = |ip: &IpAddr| {
        !args.bind.is_empty() || std::net::UdpSocket::bind(SocketAddr::new(*ip, 0)).is_ok()
    };
    let tcp =
        ips.iter().filter(|ip| here(ip)).map(|ip| Listen::Tcp(SocketAddr::new(*ip, args.port)));
    tcp.chain(args.unix.clone().map(Listen::Unix)).collect()
}

/// The secret to demand, and the one to print when it was made up.
fn demanded(args: &ServeArgs) -> Result<(Option<Secret>, Option<String>), Failure> {
    if args.open {
        return Ok((None, None));
    }
    let given = secret(&SecretArgs { secret_file: args.secret_file.clone() })?;
    let beyond = args.bind.iter().any(|ip| !ip.is_loopback());
    match given {
        Some(secret) => Ok((Some(secret), None)),
        None if beyond => {
            let (secret, text) = Secret::one_time()?;
            Ok((Some(secret), Some(text)))
        }
        None => Ok((None, None)),
    }
}

fn announce(args: &ServeArgs, listening: &[Listen], secret: Option<&str>) -> Result<(), Failure> {
    let names: Vec<String> = listening
        .iter()
        .map(|l| match l {
            Listen::Tcp(a) => a.to_string(),
            Listen::Unix(p) => format!("unix:{}", p.display()),
        })
        .collect();
    if args.json {
        let line = json!({ "event": "listening", "addresses": names, "secret": secret });
        return Sink::Stdout.text(&format!("{line}\n"));
    }
    if !args.talk.quiet {
        let mut text = format!("serving on {}\n", names.join(", "));
        if let Some(secret) = secret {
            text += &format!(
                "the other end needs this secret: NETWRIGHT_SECRET={secret} netwright measure …\n"
            );
        }
        Sink::Stdout.text(&text)?;
    }
    Ok(())
}

/// A line for each event; what scanners do is told only when asked for.
fn tell(args: &ServeArgs, event: &Event) {
    if args.json {
        let line = match event {
            Event::TurnedAway(why) => json!({ "event": "turned_away", "why": why }),
            Event::Served(who, tests) => {
                json!({ "event": "served", "client": who, "tests": tests })
            }
            Event::Broken(who, why) => json!({ "event": "broken", "client": who, "why": why }),
        };
        let _ = Sink::Stdout.text(&format!("{line}\n"));
        return;
    }
    match event {
        _ if args.talk.quiet => {}
        Event::Served(who, 1) => note(&format!("{who}: 1 test")),
        Event::Served(who, tests) => note(&format!("{who}: {tests} tests")),
        Event::Broken(who, why) => note(&format!("{who}: {why}")),
        Event::TurnedAway(why) if args.talk.verbose => note(&format!("turned away: {why}")),
        Event::TurnedAway(_) => {}
    }
}
