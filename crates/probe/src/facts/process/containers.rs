//! Names of containers, which only their engines know.
//!
//! **Source**: Docker's `/var/lib/docker/containers/ID/config.v2.json`. The command line of `conmon`,
//! which Podman and CRI-O start beside each container (`-c ID -n NAME`). The annotations in
//! containerd's `/run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json`, of
//! Kubernetes and nerdctl. The files contain far more, secrets too: only ids and names are kept.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{super::excerpt::excerpt, pids};
use crate::{ReadError, Root};

const DOCKER: &str = "/var/lib/docker/containers";
const CONTAINERD: &str = "/run/containerd/io.containerd.runtime.v2.task";

/// Annotations with the name of a container.
const ANNOTATIONS: [&str; 2] = ["io.kubernetes.cri.container-name", "nerdctl/name"];

/// Ids by name; in Kubernetes several pods have a container of one name.
pub type Ids = BTreeMap<String, Vec<String>>;

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(rename = "Name")]
    name: String,
}

/// `config.json` of the OCI runtime.
#[derive(Deserialize)]
struct OciConfig {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Ids by name. What cannot be read or understood has no names.
pub fn ids_by_name(root: &Root) -> Ids {
    excerpt(root, "containers-by-name", |root| Ok::<_, ReadError>(read(root))).unwrap_or_default()
}

fn read(root: &Root) -> Ids {
    let mut ids = Ids::new();
    for (name, id) in docker(root).into_iter().chain(conmon(root)).chain(containerd(root)) {
        ids.entry(name).or_default().push(id);
    }
    ids
}

fn docker(root: &Root) -> Vec<(String, String)> {
    let ids = root.entries(DOCKER).unwrap_or_default();
    let named = ids.into_iter().filter_map(|id| {
        let bytes = root.read(&format!("{DOCKER}/{id}/config.v2.json")).ok()?;
        let config: DockerConfig = model::json::read(&bytes).ok()?;
        Some((config.name.trim_start_matches('/').to_owned(), id))
    });
    named.collect()
}

fn conmon(root: &Root) -> Vec<(String, String)> {
    let of = |pid: u32| {
        let bytes = root.read(&format!("/proc/{pid}/cmdline")).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let words: Vec<&str> = text.split('\0').collect();
        if words.first()?.rsplit('/').next() != Some("conmon") {
            return None;
        }
        let after = |short: &str, long: &str| {
            let at = words.iter().position(|w| *w == short || *w == long)?;
            words.get(at + 1).map(|w| (*w).to_owned())
        };
        let (id, name) = (after("-c", "--cid")?, after("-n", "--name")?);
        // CRI-O: `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT`.
        let pod = name.strip_prefix("k8s_").and_then(|rest| rest.split('_').next());
        Some((pod.map_or_else(|| name.clone(), str::to_owned), id))
    };
    pids(root).into_iter().filter_map(of).collect()
}

fn containerd(root: &Root) -> Vec<(String, String)> {
    let mut named = vec![];
    for namespace in root.entries(CONTAINERD).unwrap_or_default() {
        let folder = format!("{CONTAINERD}/{namespace}");
        for id in root.entries(&folder).unwrap_or_default() {
            let config = root.read(&format!("{folder}/{id}/config.json"));
            let config = config.ok().and_then(|b| model::json::read::<OciConfig>(&b).ok());
            let mut config = config.map_or_else(BTreeMap::new, |c| c.annotations);
            named.extend(ANNOTATIONS.iter().find_map(|a| config.remove(*a)).map(|name| (name, id)));
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn each_engine_s_names_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("var/lib/docker/containers/aa/config.v2.json", r#"{"Name": "/db", "Config": {}}"#);
        put("proc/7/cmdline", "/usr/bin/conmon\0--api-version\x001\0-c\0bb\0-n\0web1\0");
        put("proc/8/cmdline", "conmon\0--cid\0cc\0-n\0k8s_app_pod-1_ns_uid_0\0");
        put("proc/9/cmdline", "vi\0-c\0x\0-n\0conmon\0");
        let task = "run/containerd/io.containerd.runtime.v2.task/k8s.io";
        let config = r#"{"annotations": {"io.kubernetes.cri.container-name": "app"}}"#;
        put(&format!("{task}/dd/config.json"), config);
        put(&format!("{task}/ee/config.json"), "no json");
        let ids = ids_by_name(&Root::open(dir.path()).unwrap());
        let ids: Vec<(&str, Vec<&str>)> = ids
            .iter()
            .map(|(name, ids)| (name.as_str(), ids.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(ids, [("app", vec!["cc", "dd"]), ("db", vec!["aa"]), ("web1", vec!["bb"])]);
    }
}
