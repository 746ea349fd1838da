//! Privileges that a write needs.

/// One privilege that a write needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A file that may be opened for writing.
    File(String),
    /// `CAP_NET_ADMIN` over the network namespace (`ns_capable`).
    Net,
    /// `CAP_NET_ADMIN` over the whole host (`capable`), as some files of interfaces do.
    HostNet,
    /// `CAP_SYS_ADMIN` over the whole host.
    SysAdmin,
    /// Moving the threads of this process: its user, or `CAP_SYS_NICE`.
    Place(u32),
    /// A signal to this process: its user, or `CAP_KILL`.
    Signal(u32),
}
