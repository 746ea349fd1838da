//! The control connection between client and server: JSON frames.
//!
//! The server sends `Hello` with a nonce. The client answers with its own nonce and, if a secret is
//! required, its proof. Then tests follow one after the other: `Test`, `Ready`, data connections,
//! `Connected`, any number of `Mark`s, `Finish`, `Report`.

pub mod frame;
pub mod message;
pub mod secret;

pub use message::{ToClient, ToServer};
