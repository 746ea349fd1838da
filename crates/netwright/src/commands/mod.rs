//! One file per command; each is the story of what it does.

pub mod doctor;
pub mod explain;
pub mod fix;
pub mod inspect;
pub mod lab;
pub mod measure;
pub mod peer;
pub mod prove;
pub mod remote;
pub mod schema;
pub mod serve;
pub mod snapshot;
pub mod tune;
pub mod watch;
