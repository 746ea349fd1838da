//! `netwright remote`: the remote end that another host's `fix`, `prove` and `tune` start over ssh.

use std::{
    io::{BufReader, Write},
    sync::mpsc,
};

use clap::Args;
use remote::{Greeting, LEASE, host::ClientSession, ssh::next_line};

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
    let mut session = ClientSession::new(args.connection, &listener);
    let mut goes_on = say(serde_json::to_string(&greeting));
    while goes_on {
        let Ok(line) = lines.recv_timeout(LEASE) else { break };
        goes_on = say(serde_json::to_string(&session.answer(&line)));
    }
    Ok(CommandEnd::Yes)
}
