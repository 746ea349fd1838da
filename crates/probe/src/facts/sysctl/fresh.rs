//! The kernel's own defaults, read in a new network namespace.

use std::collections::BTreeMap;

use crate::{ReadError, Root};

/// The key under which a snapshot keeps the answer.
const KEY: &str = "fresh-namespace-sysctls";

/// The values of `paths` (below `/proc/sys`) in a new network namespace; paths that it does not
/// have are left out.
///
/// **Source**: `unshare(CLONE_NEWNET)` in a temporary thread; its end removes the namespace.
/// `/proc/sys/net` shows each thread its own namespace's settings. Needs `CAP_SYS_ADMIN`.
///
/// # Errors
/// Denied without the capability; absent where a snapshot has no answer.
pub fn values(root: &Root, paths: Vec<String>) -> Result<BTreeMap<String, String>, ReadError> {
    root.ask(KEY, move || {
        std::thread::Builder::new()
            .name("fresh-netns".into())
            .spawn(move || in_fresh_namespace(&paths))
            .map_err(|e| ReadError::from_io("clone(2)", &e))?
            .join()
            .unwrap_or_else(|_| Err(ReadError::from_errno(KEY, libc::EIO)))
    })
}

fn in_fresh_namespace(paths: &[String]) -> Result<BTreeMap<String, String>, ReadError> {
    // SAFETY: no memory is passed; only this thread changes its namespace.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let e = std::io::Error::last_os_error();
        return Err(ReadError::from_io("unshare(CLONE_NEWNET)", &e));
    }
    Ok(paths
        .iter()
        .filter_map(|p| {
            let bytes = std::fs::read(format!("/proc/sys/{p}")).ok()?;
            let text = parse::sysctl_conf::folded(&String::from_utf8_lossy(&bytes));
            Some((p.clone(), text))
        })
        .collect())
}
