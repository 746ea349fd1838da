//! Who this end is, and whether both ends are one host.

use model::measure::End;
use probe::{Root, facts::topology};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity {
    /// Program, kernel, machine; the address is for others to fill in.
    pub end: End,
    /// A random number of the running kernel, made when it started; empty when not known.
    pub boot_id: String,
}

/// This end, of the running host.
pub fn of_this_host() -> Identity {
    identity(&Root::live())
}

/// Reads it. What cannot be read is empty, or 0.
pub fn identity(root: &Root) -> Identity {
    let word = |path: &str| root.word(path).into_known().unwrap_or_default();
    let cpus = topology::online(root).map_or(0, |c| c.len());
    let boot_id = word(BOOT_ID);
    Identity {
        end: End {
            program: crate::PROGRAM.into(),
            kernel: word("/proc/sys/kernel/osrelease"),
            // The machine that this was built for is the one it runs on.
            arch: std::env::consts::ARCH.into(),
            cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
            address: String::new(),
        },
        boot_id: if is_boot_id(&boot_id) { boot_id } else { String::new() },
    }
}

/// A UUID as the kernel prints it. The other end's word comes from the network, and nothing but
/// an equal one of this shape shall make two hosts one.
fn is_boot_id(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Whether two ends are one host: one running kernel. Containers and network namespaces of one
/// host are; virtual machines of one host are not. Two virtual machines restored from one
/// snapshot of memory have one boot id, too, and would be taken for one host.
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
        // Of this host's own processes, whatever namespaces they are in, one answer.
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
