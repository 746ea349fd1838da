//! Names of containers, which only their engines know.
//!
//! **Source**: Docker's `/var/lib/docker/containers/ID/config.v2.json` and Podman's
//! `/var/lib/containers/storage/overlay-containers/containers.json`. Both contain far more (the
//! first one the container's environment): only id and name are kept.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::excerpt::excerpt;
use crate::{ReadError, Root};

const DOCKER: &str = "/var/lib/docker/containers";
const PODMAN: &str = "/var/lib/containers/storage/overlay-containers/containers.json";

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(rename = "Name")]
    name: String,
}

#[derive(Deserialize)]
struct PodmanContainer {
    id: String,
    #[serde(default)]
    names: Vec<String>,
}

/// Ids by name. What cannot be read or understood has no names.
pub fn ids_by_name(root: &Root) -> BTreeMap<String, String> {
    excerpt(root, "container-names", |root| Ok::<_, ReadError>(read(root))).unwrap_or_default()
}

fn read(root: &Root) -> BTreeMap<String, String> {
    let mut ids = BTreeMap::new();
    for id in root.entries(DOCKER).unwrap_or_default() {
        let Ok(bytes) = root.read(&format!("{DOCKER}/{id}/config.v2.json")) else { continue };
        if let Ok(config) = serde_json::from_slice::<DockerConfig>(&bytes) {
            ids.insert(config.name.trim_start_matches('/').to_owned(), id);
        }
    }
    let podman = root.read(PODMAN).unwrap_or_default();
    for c in serde_json::from_slice::<Vec<PodmanContainer>>(&podman).unwrap_or_default() {
        ids.extend(c.names.into_iter().map(|name| (name, c.id.clone())));
    }
    ids
}
