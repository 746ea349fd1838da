//! HTTP/1.1 requests to a server of any kind: the client's side alone.
//!
//! - [`url`] and [`request`]: from what was asked to the bytes that are sent, made once.
//! - [`response`]: where a response ends, whatever way it says so, and its status.
//! - [`pipeline`] and [`protocol`]: the requests of a connection, as [`traffic::engine`] runs them; no
//!   allocation for a request.
//! - [`recorder`] and [`result`]: distributions, counts, and what stood around them; [`statuses`]: what is said
//!   of errors and redirects.
//!
//! [`pieces`] is what the response parser is fuzzed by.
//!
//! TLS is [`traffic::net::tls`], for `https` URLs; [`traffic::engine::reach`] tries it before the first run.

pub mod measure;
pub mod pieces;
mod pipeline;
mod protocol;
mod recorder;
mod request;
mod response;
pub mod result;
pub mod statuses;
pub mod url;
