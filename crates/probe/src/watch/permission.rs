//! Whether eBPF programs may be attached, with the remedy.
//!
//! The kernel refuses each map and program with varying errors. So nothing is attempted that the
//! capabilities forbid, and further refusals share one reason.

use model::Reading;

use super::switch;
use crate::Root;

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

const GRANT: &str =
    "run as root, or with CAP_BPF and CAP_PERFMON (before Linux 5.8 with CAP_SYS_ADMIN)";

/// Where a kernel tells how its structures are laid out.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Known where programs may be tried; else why not: switched off, not permitted, or a kernel
/// without type information.
pub fn asked(root: &Root, wanted: bool) -> Reading<()> {
    let switched = switch::switched(root, wanted);
    if !switched.is_known() {
        return switched;
    }
    let types = types(root);
    if !types.is_known() {
        return types;
    }
    let path = "/proc/self/status";
    let status = root.read(path).unwrap_or_default();
    let held = parse::proc_status::value(&status, "CapEff");
    // On a kernel that does not report it, the attempt decides.
    held.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).map_or(Reading::Known(()), of)
}

/// Without type information a program would be loaded all the same, and read fields where another kernel
/// has them: it would count wrongly.
fn types(root: &Root) -> Reading<()> {
    match root.exists(TYPES) {
        true => Reading::Known(()),
        false => Reading::absent(format!(
            "eBPF needs the kernel's type information, which is not there ({TYPES}; Linux 5.5 with \
             CONFIG_DEBUG_INFO_BTF)"
        )),
    }
}

/// By the effective capabilities.
fn of(held: u64) -> Reading<()> {
    let has = |capability: u32| held >> capability & 1 == 1;
    let half = |has: &str, lacks: &str| {
        Reading::denied(format!(
            "eBPF is not permitted to this process, which has {has} but lacks {lacks}: {GRANT}"
        ))
    };
    match (has(CAP_SYS_ADMIN), has(CAP_BPF), has(CAP_PERFMON)) {
        (true, _, _) | (_, true, true) => Reading::Known(()),
        (_, true, false) => half("CAP_BPF", "CAP_PERFMON"),
        (_, false, true) => half("CAP_PERFMON", "CAP_BPF"),
        _ => Reading::denied(format!("eBPF is not permitted to this process: {GRANT}")),
    }
}

/// Why the kernel refused a whole set of programs: in one sentence where it was a permission, for
/// each set names another map.
pub fn refused(why: Reading<()>) -> Reading<()> {
    match why {
        Reading::Denied(_) => Reading::denied(
            "the kernel refuses eBPF in spite of the capabilities, as in a container's user \
             namespace or under lockdown (/sys/kernel/security/lockdown): run as root of the host",
        ),
        why => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capabilities_decide_and_half_of_them_is_said() {
        let bits = |caps: &[u32]| caps.iter().fold(0, |all, c| all | 1 << c);
        assert!(of(bits(&[CAP_SYS_ADMIN])).is_known());
        assert!(of(bits(&[CAP_BPF, CAP_PERFMON])).is_known());
        let none = of(bits(&[12, 13]));
        assert!(matches!(&none, Reading::Denied(why) if why.contains("CAP_BPF and CAP_PERFMON")));
        let half = of(bits(&[CAP_BPF]));
        assert!(matches!(&half, Reading::Denied(why) if why.contains("lacks CAP_PERFMON")));
    }

    #[test]
    fn a_kernel_without_type_information_runs_no_program() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(TYPES.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let root = || Root::open(folder.path()).unwrap();
        let why = format!("{:?}", types(&root()));
        assert!(why.contains("(/sys/kernel/btf/vmlinux; Linux 5.5"), "{why}");
        std::fs::write(&file, "x").unwrap();
        assert!(types(&root()).is_known());
    }

    #[test]
    fn refusals_of_any_map_are_one_reason() {
        let of = |map: &str| refused(Reading::denied(format!("failed to create map `{map}`")));
        assert_eq!(of("cpus"), of("interrupted tasks"));
        let absent = Reading::absent("this kernel has no such tracepoint");
        assert_eq!(refused(absent.clone()), absent);
    }
}
