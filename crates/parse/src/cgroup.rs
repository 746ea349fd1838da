//! `/proc/PID/cgroup`: the cgroups of a process, and the unit and container in their paths.
//!
//! **Shape**: one line per hierarchy, `ID:CONTROLLERS:PATH`; the unified (v2) hierarchy is
//! `0::PATH`. A path may contain colons, and ends in ` (deleted)` when the cgroup is gone.
//! **Source**: `cgroups(7)`.

use crate::ParseError;

/// All of a process's cgroups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cgroups {
    /// In the kernel's order.
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Number of the hierarchy; 0 is version 2.
    pub hierarchy: u32,
    /// v1 controllers (`cpu`, `cpuacct`, `name=systemd`); none for v2.
    pub controllers: Vec<String>,
    /// From the root of the reader's cgroup namespace.
    pub path: String,
}

/// The container that a cgroup path belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// `docker`, `podman`, `containerd`, `crio`, `lxc`, `nspawn`, `libvirt-lxc`; `unknown`
    /// where only a bare 64-digit id was found.
    pub runtime: &'static str,
    /// Id or name, whole.
    pub id: String,
    /// UID of the Kubernetes pod.
    pub pod: Option<String>,
}

/// Parses the file; an empty one (a kernel without cgroups, a zombie) is no lines.
///
/// # Errors
/// At the first line that is not `ID:CONTROLLERS:/PATH`.
pub fn parse(bytes: &[u8]) -> Result<Cgroups, ParseError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let bad = || ParseError::new(i + 1, "ID:CONTROLLERS:/PATH", line.as_bytes());
        let mut parts = line.splitn(3, ':');
        let (Some(id), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(bad());
        };
        if !path.starts_with('/') {
            return Err(bad());
        }
        lines.push(Line {
            hierarchy: id.parse().map_err(|_| bad())?,
            controllers: controllers
                .split(',')
                .filter(|c| !c.is_empty())
                .map(str::to_owned)
                .collect(),
            path: path.strip_suffix(" (deleted)").unwrap_or(path).to_owned(),
        });
    }
    Ok(Cgroups { lines })
}

impl Cgroups {
    /// Path in hierarchy 0; `None` on a host with version 1 alone.
    pub fn unified(&self) -> Option<&str> {
        self.lines.iter().find(|l| l.hierarchy == 0).map(|l| l.path.as_str())
    }

    /// The path under a v1 controller.
    pub fn controller(&self, name: &str) -> Option<&str> {
        self.lines.iter().find(|l| l.controllers.iter().any(|c| c == name)).map(|l| l.path.as_str())
    }

    /// The path that decides on CPUs: the v1 cpuset controller's where there is one (a hybrid
    /// host has it beside v2), else v2's, else systemd's.
    pub fn path(&self) -> Option<&str> {
        self.controller("cpuset")
            .or_else(|| self.unified())
            .or_else(|| self.controller("name=systemd"))
            .or_else(|| self.lines.first().map(|l| l.path.as_str()))
    }

    /// The systemd units on the path, outermost first, slices left out: a service of a user's
    /// manager is the second one.
    pub fn units(&self) -> Vec<String> {
        let reported = |path: &&str| path.len() > 1;
        let path = self
            .unified()
            .filter(reported)
            .or_else(|| self.controller("name=systemd").filter(reported))
            .unwrap_or_default();
        path.split('/')
            .filter(|s| s.ends_with(".service") || s.ends_with(".scope"))
            .map(unescape)
            .collect()
    }

    /// The systemd unit as the system's manager sees it: the outermost.
    pub fn unit(&self) -> Option<String> {
        self.units().into_iter().next()
    }

    /// The innermost container, in whichever hierarchy has one.
    pub fn container(&self) -> Option<Container> {
        let first = self.path().and_then(container);
        first.or_else(|| self.lines.iter().find_map(|l| container(&l.path)))
    }
}

/// The innermost container that a cgroup path names.
pub fn container(path: &str) -> Option<Container> {
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    let found = (0..segments.len()).rev().find_map(|i| {
        let above = |n: usize| i.checked_sub(n).and_then(|j| segments.get(j)).copied();
        let here = segments.get(i)?;
        let below = segments.get(i + 1).copied();
        named(here, above(1), below).map(|(runtime, id)| (i, runtime, id))
    });
    let (i, runtime, id) = found?;
    let pod = segments.iter().take(i + 1).rev().find_map(|s| pod_uid(s));
    Some(Container { runtime, id, pod })
}

/// Runtime and id by one path segment, the one above and the one below.
fn named(
    segment: &str,
    above: Option<&str>,
    below: Option<&str>,
) -> Option<(&'static str, String)> {
    // containerd and CRI-O by the cgroupfs driver under systemd: `POD.slice:cri-containerd:ID`.
    if let Some((_, rest)) = segment.split_once(".slice:")
        && let Some((prefix, id)) = rest.split_once(':')
    {
        return runtime(prefix).map(|r| (r, id.to_owned()));
    }
    if let Some(scope) = segment.strip_suffix(".scope") {
        if let Some(machine) = scope.strip_prefix("machine-") {
            return machine_name(&unescape(machine), below);
        }
        let (prefix, id) = scope.rsplit_once('-')?;
        return is_id(id).then(|| runtime(prefix).map(|r| (r, id.to_owned()))).flatten();
    }
    if let Some(name) = segment.strip_prefix("lxc.payload.") {
        return Some(("lxc", name.to_owned()));
    }
    if matches!(above, Some("lxc" | "lxc.payload")) {
        return Some(("lxc", segment.to_owned()));
    }
    if let Some(service) = segment.strip_suffix(".service") {
        let name = service.strip_prefix("systemd-nspawn@")?;
        return (below != Some("supervisor")).then(|| ("nspawn", unescape(name)));
    }
    if let Some(id) = segment.strip_prefix("libpod-").filter(|id| is_id(id)) {
        return Some(("podman", id.to_owned()));
    }
    is_id(segment).then(|| {
        let by = above.filter(|a| *a == "docker").map_or("unknown", |_| "docker");
        (by, segment.to_owned())
    })
}

/// A machine registered with systemd-machined; a virtual machine is no container.
fn machine_name(name: &str, below: Option<&str>) -> Option<(&'static str, String)> {
    if name.starts_with("qemu-") || below == Some("supervisor") {
        return None;
    }
    // libvirt names them `lxc-1234-NAME`.
    if let Some((_, name)) = name.strip_prefix("lxc-").and_then(|r| r.split_once('-')) {
        return Some(("libvirt-lxc", name.to_owned()));
    }
    Some(("nspawn", name.to_owned()))
}

/// The runtime by the prefix it gives a scope; its monitors (`crio-conmon`) are not inside.
fn runtime(prefix: &str) -> Option<&'static str> {
    match prefix {
        "docker" => Some("docker"),
        "libpod" | "podman" => Some("podman"),
        "cri-containerd" | "containerd" | "nerdctl" => Some("containerd"),
        "crio" => Some("crio"),
        _ => None,
    }
}

/// A container's id is 64 hex digits with every engine that numbers them.
fn is_id(s: &str) -> bool {
    s.len() == 64 && s.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `podUID` of the cgroupfs driver or `kubepods-CLASS-podUID.slice` of systemd's, where `-`
/// within the UID is written `_`.
fn pod_uid(segment: &str) -> Option<String> {
    let slice = segment.split_once(".slice").map_or(segment, |(s, _)| s);
    let uid = match slice.rsplit_once("-pod") {
        Some((before, uid)) if before.contains("kubepods") => uid,
        _ => slice.strip_prefix("pod")?,
    };
    let uid = uid.replace('_', "-");
    let hex = |c: char| c.is_ascii_hexdigit() || c == '-';
    (uid.len() >= 32 && uid.chars().all(hex)).then_some(uid)
}

/// systemd writes a byte that may not stand in a unit's name as `\xNN`.
fn unescape(s: &str) -> String {
    let mut out = Vec::with_capacity(s.len());
    let mut rest = s.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = s
            .get(s.len() - tail.len()..)
            .filter(|_| first == b'\\')
            .and_then(|t| t.strip_prefix('x'))
            .and_then(|t| t.get(..2))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match escaped {
            Some(byte) => {
                out.push(byte);
                rest = tail.get(3..).unwrap_or(&[]);
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "6ef0b1b4bbdd2b63a0b0c7bd5d3ffd9cd0cd10a5e1a4d2a91c3a7b3c1d5f0e92";
    const POD: &str = "0f6fc6f1-4cd8-4c1e-8a4a-8a1ad2cb9fd3";

    fn of(path: &str) -> Option<(&'static str, String)> {
        let path = path.replace("ID", ID);
        container(&path).map(|c| (c.runtime, c.id))
    }

    #[test]
    fn knows_every_engines_paths() {
        let id = |r: &'static str| Some((r, ID.to_owned()));
        assert_eq!(of("/docker/ID"), id("docker"), "cgroupfs driver, v1");
        assert_eq!(of("/system.slice/docker-ID.scope"), id("docker"), "systemd driver");
        assert_eq!(of("/machine.slice/libpod-ID.scope/container"), id("podman"));
        assert_eq!(
            of("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope"),
            id("podman"),
            "rootless"
        );
        assert_eq!(of("/libpod_parent/libpod-ID"), id("podman"), "cgroupfs driver");
        assert_eq!(of("/system.slice/nerdctl-ID.scope"), id("containerd"));
        assert_eq!(of("/default/ID"), id("unknown"), "containerd's own namespace");
        assert_eq!(of("/ecs/0f1e2d3c4b5a69788796a5b4c3d2e1f0/ID"), id("unknown"));
        let name = |r: &'static str, n: &str| Some((r, n.to_owned()));
        assert_eq!(of("/lxc.payload.web1/init.scope"), name("lxc", "web1"));
        assert_eq!(of("/lxc.payload/web1/system.slice/nginx.service"), name("lxc", "web1"));
        assert_eq!(of("/lxc/web1"), name("lxc", "web1"));
        assert_eq!(
            of(r"/machine.slice/systemd-nspawn@my\x2dbox.service/payload/system.slice/a.service"),
            name("nspawn", "my-box")
        );
        assert_eq!(of("/machine.slice/machine-deb.scope/payload"), name("nspawn", "deb"));
        assert_eq!(
            of(r"/machine.slice/machine-lxc\x2d1234\x2dct1.scope"),
            name("libvirt-lxc", "ct1")
        );
    }

    #[test]
    fn monitors_virtual_machines_and_services_are_no_containers() {
        for path in [
            "/",
            "/init.scope",
            "/system.slice/docker.service",
            "/system.slice/containerd.service",
            "/machine.slice/libpod-conmon-ID.scope",
            "/kubepods.slice/crio-conmon-ID.scope",
            "/lxc.monitor.web1",
            "/machine.slice/systemd-nspawn@box.service/supervisor",
            r"/machine.slice/machine-qemu\x2d1\x2dvm.scope",
            "/user.slice/user-1000.slice/session-3.scope",
            "/docker/buildx",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn kubernetes_paths_name_the_pod_too() {
        let masked = POD.replace('-', "_");
        for (path, runtime) in [
            (
                format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{masked}.slice/cri-containerd-{ID}.scope"
                ),
                "containerd",
            ),
            (format!("/kubepods.slice/kubepods-pod{masked}.slice/crio-{ID}.scope"), "crio"),
            (format!("/kubepods/besteffort/pod{POD}/{ID}"), "unknown"),
            (
                format!(
                    "/system.slice/containerd.service/kubepods-burstable-pod{masked}.slice:cri-containerd:{ID}"
                ),
                "containerd",
            ),
            (
                format!(
                    "/docker/{}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{masked}.slice/cri-containerd-{ID}.scope",
                    "a".repeat(64)
                ),
                "containerd",
            ),
        ] {
            let c = container(&path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(
                (c.runtime, c.id.as_str(), c.pod.as_deref()),
                (runtime, ID, Some(POD)),
                "{path}"
            );
        }
    }

    #[test]
    fn v1_v2_and_hybrid_hosts() {
        let v1 = format!(
            "12:cpuset:/docker/{ID}\n11:perf_event:/docker/{ID}\n4:cpu,cpuacct:/docker/{ID}\n1:name=systemd:/system.slice/docker.service\n"
        );
        let c = parse(v1.as_bytes()).unwrap();
        assert_eq!(c.path(), Some(format!("/docker/{ID}").as_str()));
        assert_eq!(c.container().unwrap().runtime, "docker");
        assert_eq!(c.unit().as_deref(), Some("docker.service"));
        assert_eq!(c.controller("cpuacct"), c.controller("cpu"));
        assert_eq!(c.unified(), None);

        let v2 = parse(b"0::/system.slice/postgresql@15-main.service\n").unwrap();
        assert_eq!(v2.unit().as_deref(), Some("postgresql@15-main.service"));
        assert_eq!(v2.container(), None);

        let hybrid = parse(b"3:cpuset:/\n1:name=systemd:/user.slice/session-1.scope\n0::/user.slice/session-1.scope (deleted)\n").unwrap();
        assert_eq!(hybrid.path(), Some("/"));
        assert_eq!(hybrid.unified(), Some("/user.slice/session-1.scope"));
        assert_eq!(hybrid.unit().as_deref(), Some("session-1.scope"));

        let user =
            parse(b"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-foo.service\n")
                .unwrap();
        assert_eq!(user.units(), ["user@1000.service", "app-foo.service"]);

        assert_eq!(parse(b"").unwrap().path(), None);
        assert!(parse(b"no colons\n").is_err());
        assert!(parse(b"x::/\n").is_err());
        assert!(parse(b"0::relative\n").is_err());
    }

    proptest! {
        #[test]
        fn any_path_is_judged_without_panic(path in "(/[a-z0-9.@:_\\\\-]{0,24}){0,6}") {
            let _ = container(&path);
            let _ = parse(format!("0::/{path}\n").as_bytes()).map(|c| (c.unit(), c.container()));
        }

        #[test]
        fn unescape_undoes_escape(name in "[a-zA-Z0-9_.é\\\\-]{0,20}") {
            let escaped: String = name.bytes().map(|b| match b {
                b'-' | b'\\' | 0x80.. => format!("\\x{b:02x}"),
                b => char::from(b).to_string(),
            }).collect();
            prop_assert_eq!(unescape(&escaped), name);
        }
    }
}
