//! Notes, before every command, a change that an earlier command left unfinished.

use tune::{
    Host, Store, status,
    target::{TargetNames, options},
};

use crate::{
    cli::Command,
    commands::tune::args::{TuneArgs, TuneCommand},
    output::note,
};

/// Notes a change that was interrupted or waits for confirmation. The `tune` commands other than
/// `plan` report it themselves.
pub fn announce(command: &Command) {
    use Command::{Help, Lab, Tune};
    let quiet = |c: &TuneCommand| !matches!(c, TuneCommand::Plan(_));
    match command {
        Tune(t) if quiet(&t.command) => return,
        // `lab` runs inside guests and namespaces, which have their own journals.
        Lab(_) | Help(_) => return,
        _ => {}
    }
    let names = match command {
        Tune(TuneArgs { command: TuneCommand::Plan(p) }) => {
            TargetNames { state_dir: p.place.state_dir.clone(), ..TargetNames::default() }
        }
        _ => TargetNames::default(),
    };
    let options = options(&names);
    // `tune` itself refuses to work beside an unreadable journal.
    let uses = matches!(command, Tune(_));
    if let Some(text) = status::notice(&Host::live(), &Store::of(names.state_dir), &options, uses) {
        note(&text);
    }
}
