//! Round-trip time: request and response.
//!
//! `measure` runs one combination of sizes and flows after the other. A client thread uses
//! [`single`] for one flow with one outstanding request, else `many`; a server thread uses
//! [`single`] or `peer`. With many streams on a thread, `uring` replaces both.

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
