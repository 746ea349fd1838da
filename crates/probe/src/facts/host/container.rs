//! The container engine that this process runs in.

use model::Reading;

use super::super::excerpt::excerpt;
use crate::Root;

/// Inodes of the namespaces that the kernel itself starts in. **Source**:
/// `include/linux/proc_ns.h`, the same on every kernel since 3.8 (cgroup: 4.6).
const INITIAL_PID_NS: &str = "pid:[4026531836]";
const INITIAL_CGROUP_NS: &str = "cgroup:[4026531835]";

/// The engine's name, or `none`.
///
/// An engine marks a container by `container=` in the first process's environment, by
/// `/run/.containerenv` (podman) or `/.dockerenv`, or by the cgroup's path. A virtual machine
/// booted from a container image keeps the mark without the engine. So a process in the initial pid
/// and cgroup namespaces, without a container's cgroup, is in no container.
pub(super) fn read(root: &Root) -> Reading<String> {
    let own = |name| root.link(&format!("/proc/self/ns/{name}"));
    let in_cgroup = root
        .parsed("/proc/self/cgroup", parse::cgroup::parse)
        .map(|c| c.container().map(|c| c.runtime.to_owned()));
    if let Reading::Known(Some(engine)) = &in_cgroup {
        return Reading::Known(engine.clone());
    }
    // The rest of that environment may hold secrets: a recording keeps this one variable.
    let marked = excerpt(root, "container-variable", |root| {
        let environ = root.read("/proc/1/environ")?;
        Ok(parse::environ::value(&environ, "container"))
    });
    if let Some(engine) = marked.ok().flatten().filter(|e| !e.is_empty()) {
        return Reading::Known(engine);
    }
    let initial = own("pid").is_ok_and(|l| l == INITIAL_PID_NS)
        && own("cgroup").is_ok_and(|l| l == INITIAL_CGROUP_NS);
    if initial {
        return Reading::Known("none".into());
    }
    // systemd within a container notes for others what it found in its environment.
    if let Some(engine) = root.word("/run/systemd/container").into_known() {
        return Reading::Known(engine);
    }
    for (mark, engine) in [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")] {
        if root.exists(mark) {
            return Reading::Known(engine.into());
        }
    }
    if in_cgroup.is_known() {
        return Reading::Known("none".into());
    }
    in_cgroup.map(|_| String::new())
}
