//! Facts and findings for people: aligned text and pictures. Pure: values in, text out.
//!
//! Only this crate prints `µs` or `MiB`. Everything it prints passes [`text::clean`]: a process
//! name can contain terminal control characters, and a snapshot can come from anyone.

pub mod compare;
pub mod doctor;
pub mod explain;
pub mod fix;
pub mod history;
pub mod inspect;
pub mod lab;
pub mod lint;
pub mod measure;
pub mod mesh;
mod notes;
mod path;
pub mod picture;
pub mod place;
mod places;
pub mod prove;
pub mod senders;
pub mod serve;
pub mod snapshot;
#[cfg(test)]
mod testing;
pub mod text;
pub mod tune;
pub mod watch;
mod words;

pub use doctor::document::DoctorDocument;
pub use text::{TextStyle, clean};
