//! Request and response.
//!
//! `measure` runs one combination of sizes and flows after the other; a thread's work is
//! [`single`] where it has one flow and one request outstanding, else `many`; the server's is
//! [`single`] or `peer`. Where a thread has many streams, `uring` takes the place of both.

pub(crate) mod exchange;
mod flow;
mod many;
pub(crate) mod measure;
pub(crate) mod peer;
pub mod result;
pub mod single;
mod split;
pub mod sums;
pub(crate) mod uring;
