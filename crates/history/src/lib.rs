//! Runs that were made before: a record of each in one SQLite file.
//!
//! `record` is what a run leaves, without `secrets`. `store` keeps and finds records in a file whose
//! tables `schema` makes and migrates. `rows` are the records in it, `zip` compresses their documents. `exchange` takes records from one
//! store to another, `facts` says what differs between two hosts.

mod error;
pub mod exchange;
pub mod facts;
mod filter;
mod record;
mod rows;
mod schema;
pub mod secrets;
mod store;
mod zip;

pub use error::HistoryError;
pub use filter::Filter;
pub use record::{Record, fingerprint};
pub use store::Store;
