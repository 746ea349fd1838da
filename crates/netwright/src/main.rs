//! `netwright`: finds network bottlenecks of a Linux host.
//!
//! Arguments ([`cli`], [`args`]) → checked request ([`request`]) → one command ([`commands`]) in
//! its [`session`] → exit code ([`exit`]).

#[macro_use]
mod args;
mod announce;
mod answered;
mod cli;
mod commands;
mod exit;
mod failure;
mod help;
mod interrupt;
mod output;
mod record_args;
mod recorder;
mod request;
mod session;
mod starved;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use cli::{Cli, Command};
use failure::{CommandEnd, Failure};

#[global_allocator]
static MEMORY: starved::Memory = starved::Memory;

fn main() -> ExitCode {
    exit::on_panic();
    starved::hear_of_full_files();
    exit::code(match typed() {
        Ok(cli) => run(cli.command),
        Err(e) if e.use_stderr() => {
            output::refused(&e);
            return ExitCode::from(2);
        }
        // Help and version are the answer: failing to write them is an error.
        Err(e) if output::Sink::Stdout.is_terminal() => e.exit(),
        Err(e) => output::Sink::Stdout.text(&e.render().to_string()).map(|()| CommandEnd::Yes),
    })
}

fn typed() -> clap::error::Result<Cli> {
    let mut command = help::both(Cli::command());
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command))
}

fn run(command: Command) -> Result<CommandEnd, Failure> {
    announce::announce(&command);
    let recorder = recorder::begin(&command);
    let end = obey(command);
    if let Some(recorder) = recorder {
        recorder.end(&end);
    }
    end
}

fn obey(command: Command) -> Result<CommandEnd, Failure> {
    match command {
        Command::Compare(args) => commands::compare::run(&args),
        Command::Doctor(args) => commands::doctor_peer::either(&request::Doctor::check(args)?),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Fix(args) => commands::fix::run(&args),
        Command::History(args) => commands::history::run(&args),
        Command::Inspect(args) => commands::inspect::run(&request::Inspect::check(args)?),
        Command::Lab(args) => commands::lab::run(args),
        Command::Lint(args) => commands::lint::run(args),
        Command::Measure(args) => commands::measure::run(&args),
        Command::Place(args) => commands::place::run(args),
        Command::Prove(args) => commands::prove::run(&args),
        Command::Remote(args) => commands::remote::run(args),
        Command::Report(args) => commands::report::run(&args),
        Command::Serve(args) => commands::serve::run(&args),
        Command::Snapshot(args) => commands::snapshot::run(&request::Snapshot::check(args)?),
        Command::Tune(args) => commands::tune::run(args),
        Command::Watch(args) => commands::watch::run(&args),
        Command::Schema(args) => commands::schema::run(&args),
    }
}
