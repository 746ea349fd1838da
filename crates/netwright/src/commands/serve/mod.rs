//! `netwright serve`: the server of measurements.

pub mod args;
mod foreign;
pub mod log;
mod qperf;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, atomic::Ordering},
    thread::Builder,
    time::Duration,
};

use model::measure::Pin;
use serde_json::json;
use traffic::{
    Secret,
    budget::Budget,
    serve::{Event, Limits, Listen, Options, Server},
};

use self::{args::ServeArgs, log::Log};
use crate::{
    commands::measure::{flags::SecretArgs, secret},
    failure::{CommandEnd, Failure},
    interrupt::Window,
    output::Sink,
};

/// Serves until Ctrl-C or SIGTERM.
pub fn run(args: &ServeArgs) -> Result<CommandEnd, Failure> {
    traffic::exact_timers();
    let window = Window::open();
    let (secret, printed) = demanded(args)?;
    let log = Log::start();
    if args.softirq {
        traffic::host::softirq::attach()?;
    }
    let memory = Arc::new(Budget::new(usize::try_from(args.max_memory.0).unwrap_or(usize::MAX)));
    let server = Server::bind(Options {
        listen: addresses(args),
        data_ports: args.data_ports.as_ref().map(|r| r.0.clone()),
        secret,
        limits: Limits {
            sessions: args.max_tests as usize,
            flows: args.max_flows,
            longest: Duration::from_nanos(args.max_duration.0),
            idle: Duration::from_nanos(args.idle.0),
            memory: memory.clone(),
            ..Limits::default()
        },
        service_ns: args.service_time,
        pin: match (&args.cpu, args.no_pin) {
            (Some(list), _) => Pin::List(list.clone()),
            (None, true) => Pin::No,
            (None, false) => Pin::Auto,
        },
    })?;
    let iperf3 = foreign::iperf3(args, &ips(args))?;
    let qperf = qperf::listen(args, &ips(args))?;
    announce(args, &server.listening(), printed.as_deref())?;
    foreign::announce(args, &iperf3)?;
    qperf::announce(args, &qperf)?;
    let stop = window.stop();
    let (log, memory) = (&log, &memory);
    std::thread::scope(|scope| {
        // If one server fails, all end.
        let ending = |result| {
            stop.store(true, Ordering::Relaxed);
            result
        };
        let iperf3 = iperf3.map(|server| -> Serving<'_> {
            Box::new(move || foreign::run(args, &server, memory, stop, log))
        });
        let qperf = (!qperf.is_empty()).then(|| -> Serving<'_> {
            Box::new(move || qperf::run(args, &qperf, memory, stop, log))
        });
        let beside = [iperf3, qperf].into_iter().flatten();
        let beside = beside.map(|s| Builder::new().spawn_scoped(scope, move || ending(s())));
        let (done, beside) = match beside.collect::<Result<Vec<_>, _>>() {
            Err(e) => return ending(Err(traffic::Error::io("cannot start a thread", &e))),
            Ok(beside) => (ending(server.run(stop, &|event| tell(args, &event, log))), beside),
        };
        beside.into_iter().fold(done, |done, thread| done.and(thread.join().unwrap_or(Ok(()))))
    })?;
    Ok(CommandEnd::Yes)
}

/// A server for foreign clients.
type Serving<'a> = Box<dyn FnOnce() -> traffic::Result<()> + Send + 'a>;

/// The addresses to listen on: loopback by default.
fn ips(args: &ServeArgs) -> Vec<IpAddr> {
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let ips = if args.bind.is_empty() { &loopback[..] } else { &args.bind };
    // On a host without IPv6 the default serves IPv4 alone; addresses asked for must work.
    let here = |ip: &IpAddr| {
        !args.bind.is_empty() || std::net::UdpSocket::bind(SocketAddr::new(*ip, 0)).is_ok()
    };
    ips.iter().copied().filter(here).collect()
}

fn addresses(args: &ServeArgs) -> Vec<Listen> {
    let only_unix = args.bind.is_empty() && args.unix.is_some();
    let ips = if only_unix { Vec::new() } else { ips(args) };
    let tcp = ips.into_iter().map(|ip| Listen::Tcp(SocketAddr::new(ip, args.port)));
    tcp.chain(args.unix.clone().map(Listen::Unix)).collect()
}

/// The secret to demand, and the generated one to print.
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
        let look = Sink::Stdout.look(false);
        let mut text = report::serve::listening(None, &names, look);
        text += &secret.map(|s| report::serve::secret(s, look)).unwrap_or_default();
        Sink::Stdout.text(&text)?;
    }
    Ok(())
}

/// Prints a line for an event; connections of port scanners only with `--verbose`.
fn tell(args: &ServeArgs, event: &Event, log: &Log) {
    if args.json {
        let line = match event {
            Event::TurnedAway(why) => json!({ "event": "turned_away", "why": why }),
            Event::Served(who, tests) => {
                json!({ "event": "served", "client": who, "tests": tests })
            }
            Event::Broken(who, why) => json!({ "event": "broken", "client": who, "why": why }),
        };
        log.out(line.to_string());
        return;
    }
    match event {
        _ if args.talk.quiet => {}
        Event::Served(who, 1) => log.note(format!("{who}: 1 test")),
        Event::Served(who, tests) => log.note(format!("{who}: {tests} tests")),
        Event::Broken(who, why) => log.note(format!("{who}: {why}")),
        Event::TurnedAway(why) if args.talk.verbose => log.note(format!("turned away: {why}")),
        Event::TurnedAway(_) => {}
    }
}
