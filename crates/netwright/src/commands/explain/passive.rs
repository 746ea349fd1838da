//! `explain --pid`, `--port`: observes a running server and sends nothing.

use explain::passive::Request;
use tune::operator::Operator;

use super::args::{ExplainArgs, PassiveArgs};
use crate::{
    failure::{CommandEnd, Failure},
    output::Answer,
    session::Session,
};

/// Observes the server and prints its exchanges.
pub fn run(args: &ExplainArgs) -> Result<CommandEnd, Failure> {
    let PassiveArgs { port, pid, always } = args.passive.clone();
    let request = Request { ports: port, pids: pid, always, duration: args.duration };
    request.check()?;
    let answer = Answer::to(&args.output)?;
    let session = Session::open(&args.output.talk);
    let progress = |share| session.progress("watching", share);
    let watched = explain::passive::watch(&request, session.stop(), &progress);
    drop(session);
    answer.tell(&watched?, report::explain::passive::text)?;
    Ok(CommandEnd::Yes)
}
