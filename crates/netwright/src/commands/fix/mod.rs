//! `netwright fix`: diagnose, try each remedy, measure it, keep it or revert it.

mod answers;
pub mod args;
mod request;

use std::io::IsTerminal;

use model::tune::Plan;
use tune::operator::Operator;

use self::{answers::Answers, args::FixArgs};
use crate::{
    failure::{CommandEnd, Failure},
    output::{Answer, row},
    session::Session,
};

/// Runs the whole command and prints what was kept.
pub fn run(args: &FixArgs) -> Result<CommandEnd, Failure> {
    let answer = Answer::to(&args.output)?;
    let request = request::request(args)?;
    if !args.dry_run {
        consent(args)?;
    }
    let ours = super::ours()?;
    let session = Session::open(&args.output.talk);
    let mut answers = Answers::of_operator();
    let mut ask = |plan: &Plan| wanted(args.yes, &mut answers, &session, plan);
    let means = fix::Means { operator: &session, ask: &mut ask, ours: &ours };
    let document = fix::run(&request, means)?;
    answer.tell(&document, report::fix::text)?;
    let helped = document.kept.is_some() || document.kept_peer.is_some() || document.dry_run;
    Ok(if helped { CommandEnd::Yes } else { CommandEnd::No })
}

/// Refuses to change a host without the operator's consent.
fn consent(args: &FixArgs) -> Result<(), Failure> {
    if args.yes || args.ask || std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::Usage(
        "fix changes this host: --yes permits it, --ask asks before each change, --dry-run only \
         lists the candidates"
            .into(),
    ))
}

/// Asks before a change, where the operator wants to be asked.
fn wanted(yes: bool, answers: &mut Answers, session: &Session, plan: &Plan) -> bool {
    if yes || answers.over() {
        return yes;
    }
    for c in &plan.changes {
        let disturbs = &c.impact.why;
        let disturbs = if disturbs.is_empty() { "disturbs nothing" } else { disturbs };
        row(&format!("{}: {} -> {} {} ({disturbs})", c.knob, c.old, c.new, c.unit));
    }
    row("try it, and keep it only if it helps? [y/N] ");
    answers.yes(session.stop())
}
