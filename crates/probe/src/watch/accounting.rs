//! The running kernel's accounting of softirq time.

use model::{Reading, watch::SoftirqAccounting};

use crate::{Root, facts::host::build};

/// By its build options; absent where they cannot be read.
pub fn of_softirqs(root: &Root) -> Reading<SoftirqAccounting> {
    let release = root.word("/proc/sys/kernel/osrelease");
    let config = build::config(root, release.known().map(String::as_str));
    config.as_ref().map(|c| match c.yes("IRQ_TIME_ACCOUNTING") {
        true => SoftirqAccounting::IrqTime,
        false => SoftirqAccounting::Ticks,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    #![allow(clippy::disallowed_methods, reason = "a test writes its files")]

    use super::*;

    #[test]
    fn a_kernel_that_says_nothing_of_its_options_leaves_it_unknown() {
        let dir = std::env::temp_dir().join(format!("nw-accounting-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("proc/sys/kernel")).unwrap();
        std::fs::create_dir_all(dir.join("boot")).unwrap();
        std::fs::write(dir.join("proc/sys/kernel/osrelease"), "6.1.0-18-amd64\n").unwrap();
        let root = Root::open(&dir).unwrap();
        assert!(!of_softirqs(&root).is_known());
        for (says, is) in [
            ("CONFIG_IRQ_TIME_ACCOUNTING=y\n", SoftirqAccounting::IrqTime),
            ("CONFIG_HZ=250\n", SoftirqAccounting::Ticks),
        ] {
            std::fs::write(dir.join("boot/config-6.1.0-18-amd64"), says).unwrap();
            assert_eq!(of_softirqs(&root), Reading::Known(is));
        }
        std::fs::remove_dir_all(dir).unwrap();
    }
}
