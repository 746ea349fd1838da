//! Identity of this end, and whether both ends run on one host.

use model::measure::End;
use probe::{Root, facts::topology};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity {
    /// Program, kernel and machine; the caller adds the address.
    pub end: End,
    /// Random id of the running kernel, made at boot; empty if unknown.
    pub boot_id: String,
}

/// Identity of the running host.
pub fn of_this_host() -> Identity {
    identity(&Root::live())
}

/// Reads the identity. A field that cannot be read is empty, or 0.
pub fn identity(root: &Root) -> Identity {
    let word = |path: &str| root.word(path).into_known().unwrap_or_default();
    let cpus = topology::online(root).map_or(0, |c| c.len());
    let boot_id = word(BOOT_ID);
    Identity {
        end: End {
            program: crate::PROGRAM.into(),
            kernel: word("/proc/sys/kernel/osrelease"),
            // The program's build architecture is that of the machine.
            arch: std::env::consts::ARCH.into(),
            cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
            address: String::new(),
        },
        boot_id: if is_boot_id(&boot_id) { boot_id } else { String::new() },
    }
}

/// Whether this is a UUID as the kernel prints it. The other end's id comes from the network; only
/// an equal and well-formed id may make two hosts one.
fn is_boot_id(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Whether two ends run on one host, which means on one kernel. Containers and network namespaces
/// share a kernel; virtual machines do not. Exception: two virtual machines restored from one
/// memory snapshot share a boot id and count as one host.
pub fn same_host(a: &str, b: &str) -> bool {
    is_boot_id(a) && a == b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_itself_and_says_who_it_is() {
        let root = Root::live();
        let (a, b) = (identity(&root), identity(&root));
        assert!(same_host(&a.boot_id, &b.boot_id), "{a:?}");
        assert!(a.end.program.starts_with("netwright ") && !a.end.kernel.is_empty());
        assert!(a.end.cpus >= 1);
    }

    #[test]
    fn in_another_network_namespace_it_is_the_same_host() {
        // All processes of this host get one answer, in any namespace.
        let own = identity(&Root::live()).boot_id;
        let read = std::thread::spawn(|| {
            // SAFETY: takes a number; only this thread is moved. Needs CAP_SYS_ADMIN.
            let moved = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
            (moved, identity(&Root::live()).boot_id)
        });
        let (moved, there) = read.join().unwrap();
        assert!(same_host(&own, &there), "moved: {moved}");
    }

    #[test]
    fn what_is_no_boot_id_is_nobody_s() {
        let one = "aeb5f17d-7553-4647-96f0-a79af8a1d443";
        assert!(same_host(one, one));
        for bad in
            ["", "x", "aeb5f17d-7553-4647-96f0-a79af8a1d44", "aeb5f17dx7553-4647-96f0-a79af8a1d443"]
        {
            assert!(!same_host(bad, bad), "{bad:?}");
        }
        assert!(!same_host(one, "aeb5f17d-7553-4647-96f0-a79af8a1d444"));
        let empty = tempfile::tempdir().unwrap();
        let nothing = identity(&Root::open(empty.path()).unwrap());
        assert_eq!((nothing.boot_id.as_str(), nothing.end.cpus), ("", 0));
    }
}
