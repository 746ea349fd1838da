//! Commands of container engines that keep a container's processes on their CPUs. Pure.

use model::quote;

/// Explains why none of our files can place a process: names the engine that starts it, from its
/// control group, and the engine's command that keeps the value. `value` is `CPUS` or `CPUS mems
/// NODES`.
pub fn keeps_it(cgroup: &str, value: &str) -> String {
    let parts: Vec<&str> = cgroup.split('/').collect();
    let (cpus, mems) = value.split_once(" mems ").unwrap_or((value, ""));
    let update = |engine: &str, id: &str| {
        let mems = if mems.is_empty() { String::new() } else { format!(" --cpuset-mems {mems}") };
        let short: String = id.chars().take(12).collect();
        format!("`{engine} update --cpuset-cpus {cpus}{mems} {short}` keeps it")
    };
    for (i, part) in parts.iter().enumerate() {
        let scope = part.strip_suffix(".scope").unwrap_or(part);
        let id_of = |prefix: &str| scope.strip_prefix(prefix).filter(|id| is_id(id));
        if part.starts_with("kubepods") {
            return "the kubelet starts it: its static CPU manager policy places a pod of class Guaranteed"
                .into();
        }
        if let Some(id) = id_of("docker-") {
            return update("docker", id);
        }
        if let Some(id) = id_of("libpod-").or_else(|| id_of("libpod-payload-")) {
            return update("podman", id);
        }
        // Docker's cgroupfs driver.
        match (*part, parts.get(i + 1)) {
            ("docker", Some(id)) if is_id(id) => return update("docker", id),
            ("libpod_parent", Some(next)) => {
                if let Some(id) = next.strip_prefix("libpod-").filter(|id| is_id(id)) {
                    return update("podman", id);
                }
            }
            _ => {}
        }
    }
    let unit = parts.iter().rfind(|p| p.ends_with(".service"));
    match unit.filter(|u| cgroup.contains("/user@") && !u.starts_with("user@")) {
        Some(unit) => format!(
            "its user's manager starts it: `systemctl --user edit {}` with CPUAffinity={cpus} keeps it",
            quote::shell(unit)
        ),
        None => "the program that starts it must place it".into(),
    }
}

fn is_id(text: &str) -> bool {
    text.len() >= 12 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_has_its_line() {
        let id = "0123456789abcdef".repeat(4);
        for (cgroup, value, line) in [
            (
                format!("/system.slice/docker-{id}.scope"),
                "0-3",
                "`docker update --cpuset-cpus 0-3 0123456789ab` keeps it",
            ),
            (
                format!("/docker/{id}"),
                "0-3 mems 1",
                "`docker update --cpuset-cpus 0-3 --cpuset-mems 1 0123456789ab` keeps it",
            ),
            (
                format!("/machine.slice/libpod-{id}.scope/container"),
                "2",
                "`podman update --cpuset-cpus 2 0123456789ab` keeps it",
            ),
            (
                format!("/libpod_parent/libpod-{id}"),
                "2",
                "`podman update --cpuset-cpus 2 0123456789ab` keeps it",
            ),
            (
                format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
                "2",
                "the kubelet starts it: its static CPU manager policy places a pod of class Guaranteed",
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/db$(id).service".into(),
                "2",
                "its user's manager starts it: `systemctl --user edit 'db$(id).service'` with \
                 CPUAffinity=2 keeps it",
            ),
            (
                "/user.slice/user-1000.slice/session-1.scope".into(),
                "2",
                "the program that starts it must place it",
            ),
            ("/docker/notanid".into(), "2", "the program that starts it must place it"),
        ] {
            assert_eq!(keeps_it(&cgroup, value), line, "{cgroup}");
        }
    }
}
