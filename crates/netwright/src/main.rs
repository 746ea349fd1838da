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
mod first;
mod fleet_args;
mod help;
mod interrupt;
#[cfg(test)]
mod manuals;
mod output;
mod record_args;
mod recorder;
mod request;
mod session;
mod severity_arg;
mod starved;
mod topics;
mod version;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, error::ErrorKind};

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
            match e.kind() {
                // Usage as well: a script that lost its command must not go on.
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if is_alone() => {
                    let root = rustix::process::geteuid().is_root();
                    first::screen(root).lines().for_each(output::row);
                }
                _ => output::refused(&e),
            }
            return ExitCode::from(2);
        }
        Err(e) if e.kind() == ErrorKind::DisplayVersion && version::is_long() => {
            output::Sink::Stdout.text(&version::long()).map(|()| CommandEnd::Yes)
        }
        // Help and version are the answer: failing to write them is an error.
        Err(e) if output::Sink::Stdout.is_terminal() => e.exit(),
        Err(e) => output::Sink::Stdout.text(&e.render().to_string()).map(|()| CommandEnd::Yes),
    })
}

fn typed() -> clap::error::Result<Cli> {
    if let Some(cli) = Cli::of_one_command(std::env::args_os()) {
        return Ok(cli);
    }
    let mut command = Cli::command();
    let matches = match command.try_get_matches_from_mut(std::env::args_os()) {
        // Two lengths of help for all flags take 4 ms, which no other run should pay.
        Err(e) if shows_help(e.kind()) => {
            command = help::both(Cli::command());
            command.try_get_matches_from_mut(std::env::args_os())?
        }
        given => given?,
    };
    let cli = Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command))?;
    if cli.verbose {
        let why = "-v before a command belongs to --version; type it after the command";
        return Err(command.error(ErrorKind::ArgumentConflict, why));
    }
    Ok(cli)
}

fn shows_help(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// Whether `netwright` was typed alone.
fn is_alone() -> bool {
    std::env::args_os().len() <= 1
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
        Command::Doctor(args) if args.fleet.fleet.is_some() => commands::doctor_fleet::run(&args),
        Command::Doctor(args) => commands::doctor_peer::either(&request::Doctor::check(args)?),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Fix(args) => commands::fix::run(&args),
        Command::History(args) => commands::history::run(&args),
        Command::Inspect(args) => commands::inspect::run(&request::Inspect::check(args)?),
        Command::Lab(args) => commands::lab::run(args),
        Command::Lint(args) => commands::lint::run(args),
        Command::Measure(args) => commands::measure::run(&args),
        Command::Mesh(args) => commands::mesh::run(&args),
        Command::Place(args) => commands::place::run(args),
        Command::Prove(args) => commands::prove::run(&args),
        Command::Remote(args) => commands::remote::run(args),
        Command::Report(args) => commands::report::run(&args),
        Command::Serve(args) => commands::serve::run(&args),
        Command::Snapshot(args) => commands::snapshot::run(&request::Snapshot::check(args)?),
        Command::Tune(args) => commands::tune::run(args),
        Command::Watch(args) => commands::watch::run(&args),
        Command::Help(args) => commands::help::run(&args, help::both(Cli::command())),
        Command::Schema(args) => commands::schema::run(&args),
    }
}
