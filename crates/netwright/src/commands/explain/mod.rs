//! `netwright explain`: the network's part of a response time, and predictions for other paths.

pub mod args;
mod passive;
mod request;

use tune::operator::Operator;

use self::args::ExplainArgs;
use crate::{
    failure::{CommandEnd, Failure},
    output::Answer,
    session::Session,
};

/// Runs the measurement and prints the explanation.
pub fn run(args: &ExplainArgs) -> Result<CommandEnd, Failure> {
    if args.passive.is_asked_for() {
        return passive::run(args);
    }
    let request = request::request(args)?;
    let answer = Answer::to(&args.output)?;
    traffic::exact_timers();
    let session = Session::open(&args.output.talk);
    let progress = |what: &str, share: f64| session.progress(what, share);
    let explained = explain::explain(&request, traffic::Run::new(session.stop(), &progress));
    drop(session);
    let explain::Explained { document, broken } = explained?;
    answer.tell(&document, report::explain::text)?;
    match broken {
        Some(why) => Err(why.into()),
        None if document.sum.conclusive => Ok(CommandEnd::Yes),
        None => Ok(CommandEnd::No),
    }
}
