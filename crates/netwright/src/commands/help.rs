//! `netwright help`: prints the page of a concept, or the whole help of a command.

use clap::Command;

use crate::{
    failure::{CommandEnd, Failure},
    output::Sink,
    topics::{HelpArgs, PAGES, Topic},
};

/// Prints the page of a topic, or a command's help from `netwright`, the definition of all commands.
///
/// # Errors
/// Neither a topic nor a command has the name, or standard output cannot be written.
pub fn run(args: &HelpArgs, netwright: Command) -> Result<CommandEnd, Failure> {
    let text = match &args.about {
        None => of(netwright, &[])?,
        Some(Topic::Command(words)) => of(netwright, words)?,
        Some(topic) => topic.page().unwrap_or_default().to_owned(),
    };
    Sink::Stdout.text(&text)?;
    Ok(CommandEnd::Yes)
}

/// The long help of a command, in colour on a terminal.
fn of(mut netwright: Command, words: &[String]) -> Result<String, Failure> {
    // Gives each command its full name, as in its usage.
    netwright.build();
    let command = words.iter().try_fold(&mut netwright, |c, word| c.find_subcommand_mut(word));
    let Some(command) = command else {
        let topics = PAGES.map(|(name, _)| name).join(", ");
        let what = words.join(" ");
        return Err(Failure::Usage(format!(
            "no topic and no command is named {what:?}; topics: {topics}; `netwright --help` lists \
             the commands"
        )));
    };
    let help = command.render_long_help();
    Ok(match Sink::Stdout.look(false).colour {
        true => help.ansi().to_string(),
        false => help.to_string(),
    })
}
