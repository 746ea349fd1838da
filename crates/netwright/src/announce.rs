//! Said before every command: what an earlier one left.

use tune::{
    Host, Store, status,
    target::{TargetNames, options},
};

use crate::{
    cli::Command,
    commands::tune::args::{TuneArgs, TuneCommand},
    output::note,
};

/// Whether an earlier change was interrupted, or waits for a confirmation. The commands that deal with
/// it say so themselves.
pub fn announce(command: &Command) {
    use Command::{Lab, Tune};
    let quiet = |c: &TuneCommand| !matches!(c, TuneCommand::Plan(_));
    match command {
        Tune(t) if quiet(&t.command) => return,
        // It runs within guests and namespaces of its own.
        Lab(_) => return,
        _ => {}
    }
    let names = match command {
        Tune(TuneArgs { command: TuneCommand::Plan(p) }) => {
            TargetNames { state_dir: p.place.state_dir.clone(), ..TargetNames::default() }
        }
        _ => TargetNames::default(),
    };
    let options = options(&names);
    // Those that change a host refuse to do it beside a journal that cannot be read.
    let uses = matches!(command, Tune(_));
    if let Some(text) = status::notice(&Host::live(), &Store::of(names.state_dir), &options, uses) {
        note(&text);
    }
}
