//! An HTTP/1.1 client that measures servers of any kind.
//!
//! - [`url`] and [`request`]: build the bytes of each request, once.
//! - [`response`]: finds the end of a response in each of its forms, and its status.
//! - [`pipeline`] and [`protocol`]: the requests of a connection, run by [`traffic::engine`]
//!   without an allocation for each request.
//! - [`recorder`] and [`result`]: distributions, counts and context; [`statuses`]: warnings on
//!   errors and redirects.
//!
//! [`fetch`] gets one URL and keeps the body. [`pieces`] feeds the response parser for fuzzing.
//!
//! TLS for `https` URLs is [`traffic::net::tls`]; [`traffic::engine::reach`] tries it before the
//! first run.

pub mod fetch;
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
