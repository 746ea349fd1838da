//! What the two ends say to each other beside the data: frames of JSON on one connection.
//!
//! The server speaks first (`Hello` with a nonce), the client answers with its own nonce and,
//! where a secret is demanded, the proof that it has it; then one test after the other:
//! `Test`, `Ready`, data connections, `Connected`, any number of `Mark`s, `Finish`, `Report`.

pub mod frame;
pub mod message;
pub mod secret;

pub use message::{ToClient, ToServer};
