//! The live view of `watch`. What is drawn is a function of a [`Screen`]; only [`terminal`]
//! touches a terminal.

mod draw;
mod grid;
mod help;
mod ink;
pub mod only;
mod pane;
pub mod state;
mod table;
pub mod terminal;
#[cfg(test)]
mod tests;

use model::watch::{WatchHost, WatchRecord};

pub use draw::draw;
pub use state::{Act, Seek, ViewState};

/// Everything that one picture shows.
pub struct Screen<'a> {
    pub host: &'a WatchHost,
    /// The interval; none until the first is over.
    pub record: Option<&'a WatchRecord>,
    /// What the user chose.
    pub state: &'a ViewState,
    /// Whether colours may be used.
    pub colour: bool,
}
