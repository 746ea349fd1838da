//! The per-CPU receive backlog.

use model::{CpuSet, Reading, napi::SoftnetRow};
use parse::softnet_stat;

use crate::Root;

const PATH: &str = "/proc/net/softnet_stat";

/// Reads the backlog counters, ascending by CPU. `online` names the CPUs of kernels before
/// 5.10; when a CPU comes or goes between the two, the counters of such a kernel are absent.
///
/// **Source**: `/proc/net/softnet_stat`.
pub fn read(root: &Root, online: &Reading<CpuSet>) -> Reading<Vec<SoftnetRow>> {
    root.parsed(PATH, |bytes| softnet_stat::parse(bytes, online.known()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_needs_the_online_cpus() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/net")).unwrap();
        let row = "00000001 00000002 00000003".to_owned() + &" 00000000".repeat(8) + "\n";
        std::fs::write(tree.path().join("proc/net/softnet_stat"), row.repeat(2)).unwrap();
        let root = Root::open(tree.path()).unwrap();
        let rows = read(&root, &Reading::Known("1,3".parse().unwrap())).into_known().unwrap();
        assert_eq!(rows.iter().map(|r| r.cpu.0).collect::<Vec<_>>(), [1, 3]);
        let none = read(&root, &Reading::absent("nobody knows"));
        assert!(none.why_not().unwrap().starts_with("/proc/net/softnet_stat: line"), "{none:?}");
    }
}
