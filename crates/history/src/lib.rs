//! Runs that were made before: a record of each in one SQLite file.
//!
//! `record` is what a run leaves, without `secrets`. `store` keeps and finds records in a file whose
//! tables `schema` makes and migrates. `zip` compresses documents.

mod error;
mod filter;
mod record;
mod schema;
pub mod secrets;
mod store;
mod zip;

pub use error::HistoryError;
pub use filter::Filter;
pub use record::{Record, fingerprint};
pub use store::Store;
