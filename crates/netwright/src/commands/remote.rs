//! `netwright remote`: the remote end that another host's `fix`, `prove` and `tune` start over ssh.

use std::{
    io::{BufReader, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{atomic::AtomicBool, mpsc},
};

use clap::Args;
use model::{Goal, Nanos, measure::Pin};
use remote::{Answer, Greeting, LEASE, Request, host::ClientSession, ssh::next_line};
use traffic::{
    Secret,
    serve::{Limits, Listen, Options, Server},
};

use super::doctor;
use crate::{
    failure::{CommandEnd, Failure},
    session::Listener,
};

#[derive(Debug, Args)]
pub struct RemoteArgs {
    /// Take requests from standard input and answer on standard output, a line of JSON each.
    #[arg(long, required = true)]
    pub stdio: bool,
    /// The connection that it is started over, as sshd's SSH_CONNECTION says: a change that may cut
    /// it is refused.
    #[arg(long, value_name = "ADDRESSES")]
    pub connection: Option<String>,
}

/// Answers until the client disconnects or is silent for [`LEASE`]; then what is on trial is
/// reverted.
pub fn run(args: RemoteArgs) -> Result<CommandEnd, Failure> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(std::io::stdin());
        while let Some(line) = next_line(&mut reader) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let mut stdout = std::io::stdout();
    let mut say = |line: Result<String, serde_json::Error>| {
        line.is_ok_and(|line| writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_ok())
    };
    let greeting = Greeting { netwright: env!("CARGO_PKG_VERSION").to_owned() };
    let listener = Listener { quiet: true };
    let mut session = ClientSession::new(args.connection.clone(), &listener);
    let mut goes_on = say(serde_json::to_string(&greeting));
    while goes_on {
        let Ok(line) = lines.recv_timeout(LEASE) else { break };
        let answer = match model::json::read::<Request>(&line) {
            Ok(Request::Judge { window_ns, goal }) => judged(window_ns, goal),
            Ok(Request::Serve) => served(args.connection.as_deref()),
            _ => session.answer(&line),
        };
        goes_on = say(serde_json::to_string(&answer));
    }
    Ok(CommandEnd::Yes)
}

/// This host's document of `doctor`.
fn judged(window_ns: Nanos, goal: Goal) -> Answer {
    match serde_json::to_value(doctor::for_peer(window_ns, goal)) {
        Ok(document) => Answer::Judged(Box::new(document)),
        Err(e) => Answer::Failed { code: 4, why: e.to_string() },
    }
}

/// Serves measurements on the address that the client reached, with a secret of its own, until this
/// process ends.
fn served(connection: Option<&str>) -> Answer {
    let reached = connection.and_then(|c| c.split(' ').nth(2)?.parse::<IpAddr>().ok());
    let address = SocketAddr::new(reached.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), 0);
    let begin = || -> traffic::Result<Answer> {
        let (secret, text) = Secret::one_time()?;
        let server = Server::bind(Options {
            listen: vec![Listen::Tcp(address)],
            data_ports: None,
            secret: Some(secret),
            limits: Limits::default(),
            service_ns: Nanos(0),
            pin: Pin::No,
        })?;
        let listening = server.listening().into_iter().find_map(|l| match l {
            Listen::Tcp(address) => Some(address.to_string()),
            Listen::Unix(_) => None,
        });
        let serve = move || server.run(&AtomicBool::new(false), &|_| {});
        std::thread::Builder::new()
            .name("nw-serve".into())
            .spawn(serve)
            .map_err(|e| traffic::Error::io("cannot start a thread", &e))?;
        Ok(Answer::Serving { address: listening.unwrap_or_default(), secret: text })
    };
    begin().unwrap_or_else(|e| Answer::Failed { code: 4, why: e.to_string() })
}
