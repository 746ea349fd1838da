//! What the kernel's log says of the interfaces.

use model::{Reading, kernel_log::NicLogEvent, nic::Nic};
use parse::kernel_log;

use crate::{ReadError, Root};

/// The question's name in a snapshot.
const KEY: &str = "kernel/log";
/// What archives call the log since boot, the best first.
const PRINTED: [&str; 6] = [
    "dmesg",
    "dmesg -T",
    "dmesg -x",
    "journalctl --no-pager --boot",
    "journalctl --no-pager --catalog --boot",
    "journalctl -k",
];
/// Files of a copied tree.
const FILES: [&str; 3] = ["/var/log/dmesg", "/var/log/kern.log", "/var/log/messages"];
/// **Source**: `SYSLOG_ACTION_READ_ALL` and `SYSLOG_ACTION_SIZE_BUFFER`, `include/linux/syslog.h`.
const READ_ALL: libc::c_int = 3;
const SIZE_BUFFER: libc::c_int = 10;

/// Link losses, hung queues, resets and PCIe errors of these interfaces, by interface and kind.
///
/// **Source**: the running kernel's log buffer (`syslog(2)`; `CAP_SYSLOG`, or
/// `kernel.dmesg_restrict=0`), or what an archive has of it.
pub fn read(root: &Root, nics: &[Nic]) -> Reading<Vec<NicLogEvent>> {
    let all = match root.ask(KEY, live) {
        Ok(all) => all,
        Err(ReadError::Absent { .. }) if !root.is_live() => match printed(root) {
            Some(all) => all,
            None => return Reading::absent("the archive has no kernel log"),
        },
        Err(e) => return crate::error::reading(Err(e)),
    };
    let of_nic = |e: &NicLogEvent| {
        nics.iter()
            .any(|n| n.name == e.subject || n.bus_address.known().is_some_and(|a| *a == e.subject))
    };
    match all {
        Some(all) => Reading::Known(all.into_iter().filter(of_nic).collect()),
        None => Reading::absent("the kernel's log is empty: it was cleared, or nothing is kept"),
    }
}

/// The events of a log; `None` where it is empty, which tells of nothing.
fn events(text: &[u8], source: &str) -> Option<Vec<NicLogEvent>> {
    (!text.trim_ascii().is_empty()).then(|| kernel_log::parse(text, source))
}

fn printed(root: &Root) -> Option<Option<Vec<NicLogEvent>>> {
    let command = PRINTED.iter().find_map(|c| Some((root.output(&[c], "")?, root.output_file(c)?)));
    let file = || FILES.iter().find_map(|f| Some((root.read(f).ok()?, (*f).to_owned())));
    let (text, source) = command.or_else(file)?;
    Some(events(&text, source.trim_start_matches('/')))
}

fn live() -> Result<Option<Vec<NicLogEvent>>, ReadError> {
    let failed = || {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        ReadError::from_errno("dmesg (syslog(2))", errno)
    };
    // SAFETY: this action takes no buffer.
    let size = unsafe { libc::klogctl(SIZE_BUFFER, std::ptr::null_mut(), 0) };
    let size = usize::try_from(size).map_err(|_| failed())?;
    let mut buffer = vec![0u8; size];
    let length = libc::c_int::try_from(size).unwrap_or(libc::c_int::MAX);
    // SAFETY: the buffer has this length.
    let read = unsafe { libc::klogctl(READ_ALL, buffer.as_mut_ptr().cast(), length) };
    let read = usize::try_from(read).map_err(|_| failed())?;
    buffer.truncate(read);
    Ok(events(&buffer, "dmesg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_found_under_each_name_that_archives_have() {
        let line = "[ 9.5] igb 0000:01:00.0 eth0: Reset adapter\n[ 9.6] igb 0000:01:00.0 eth9: Reset adapter\n";
        for file in [
            "sos_commands/kernel/dmesg",
            "sos_commands/logs/journalctl_--no-pager_--boot",
            "var/log/dmesg",
            "dmesg.txt",
        ] {
            let tree = tempfile::tempdir().unwrap();
            let put = |path: &str, text: &str| {
                let path = tree.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            };
            put("sys/class/net/eth0/ifindex", "2\n");
            put(file, line);
            let root = Root::open(tree.path()).unwrap();
            let all = read(&root, &crate::facts::nic::read(&root)).into_known().unwrap();
            assert_eq!(all.len(), 1, "{file}: another interface than those of the host");
            assert_eq!((all[0].subject.as_str(), all[0].source.as_str()), ("eth0", file));
        }
        let tree = tempfile::tempdir().unwrap();
        let none = read(&Root::open(tree.path()).unwrap(), &[]);
        assert_eq!(none.why_not(), Some("the archive has no kernel log"));
        std::fs::create_dir_all(tree.path().join("var/log")).unwrap();
        std::fs::write(tree.path().join("var/log/dmesg"), "\n").unwrap();
        let empty = read(&Root::open(tree.path()).unwrap(), &[]);
        assert!(empty.why_not().unwrap().contains("is empty"), "{empty:?}");
    }
}
