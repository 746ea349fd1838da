//! The options by which a command keeps its run in the history.

use std::path::PathBuf;

use clap::Args;

/// Where the history is.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreArgs {
    /// The history's file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root
    /// in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright].
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "FILE",
        help_heading = "History"
    )]
    pub store: Option<PathBuf>,
}

/// How a run is kept in the history.
#[derive(Debug, Clone, Default, Args)]
pub struct RecordArgs {
    /// Keep the run in the history under this word: `history list --tag WORD` finds it.
    #[arg(long, global = true, hide_short_help = true, value_name = "WORD", value_parser = word,
          help_heading = "History")]
    pub tag: Option<String>,
    #[command(flatten)]
    pub at: StoreArgs,
    /// Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command.
    #[arg(long, global = true, hide_short_help = true, conflicts_with_all = ["tag", "store"],
          help_heading = "History")]
    pub no_store: bool,
}

fn word(text: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&text.chars().count());
    let plain = |c: char| c.is_alphanumeric() || "-_.+:/@".contains(c);
    match fits && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("one word of letters, digits and -_.+:/@, at most 64".into()),
    }
}
