//! The live view of `watch`: of this host ([`live`]) or of a recording ([`replay`]). A picture
//! depends on a [`Screen`] alone; only [`terminal`] touches a terminal. [`web`] serves browsers.

mod draw;
pub mod error;
mod grid;
mod help;
pub mod live;
mod palette;
mod pane;
pub mod recording;
pub mod recording_file;
pub mod replay;
mod row_filter;
pub mod sampling;
pub mod state;
mod table;
pub mod terminal;
#[cfg(test)]
mod tests;
pub mod web;

use model::watch::{WatchHost, WatchRecord};

pub use draw::draw;
pub use state::{KeyAction, Seek, ViewState};

/// Everything that one picture shows.
pub struct Screen<'a> {
    pub host: &'a WatchHost,
    /// The interval; `None` until the first is over.
    pub record: Option<&'a WatchRecord>,
    /// The user's choices, and the findings so far.
    pub state: &'a ViewState,
    /// Whether colours may be used.
    pub colour: bool,
}
