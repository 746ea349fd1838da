//! Facts and findings for people: aligned text and pictures. Pure: values in, text out.
//!
//! Only this crate prints `µs` or `MiB`; everything it prints passes [`text::clean`], for a
//! process may name itself with terminal control characters, and a snapshot may come from
//! anybody.

pub mod doctor;
pub mod document;
pub mod explain;
pub mod fix;
pub mod inspect;
pub mod measure;
mod notes;
mod path;
pub mod picture;
mod places;
pub mod prove;
#[cfg(test)]
mod testing;
pub mod text;
pub mod tune;
pub mod watch;
mod words;

pub use document::Diagnosed;
pub use text::{TextStyle, clean};
