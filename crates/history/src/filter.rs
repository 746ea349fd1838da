//! Which runs are wanted.

/// Which runs are wanted; every condition that is there must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// A host's name or fingerprint.
    pub host: Option<String>,
    /// A kind, or the first word of several: `measure`.
    pub kind: Option<String>,
    pub tag: Option<String>,
    /// From this moment on, milliseconds since 1970.
    pub since_unix_ms: Option<u64>,
    /// Before this moment, milliseconds since 1970.
    pub until_unix_ms: Option<u64>,
    /// At most this many, the newest.
    pub newest: Option<u64>,
}
