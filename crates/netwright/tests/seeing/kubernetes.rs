//! `packaging/kubernetes`: every manifest against the schemas of Kubernetes' API, its arguments against
//! this program, and the exporter with the rights that its manifest has.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::{Map, Value};

use crate::support::{NETWRIGHT, output, run, schema::validate};

const FILES: [&str; 3] = ["exporter.yaml", "measure.yaml", "mesh.yaml"];
/// The oldest and the newest version of the API that `scripts/kubernetes` installs.
const VERSIONS: [&str; 2] = ["1.25.0", "1.37.0"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents of a manifest.
fn documents(yaml: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifest.yaml");
    fs::write(&file, yaml).unwrap();
    let code =
        "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let all: Value =
        serde_json::from_str(&run("/usr/bin/python3", &["-c", code, file.to_str().unwrap()]))
            .unwrap();
    all.as_array().unwrap().clone()
}

fn manifest(file: &str) -> String {
    fs::read_to_string(repository().join("packaging/kubernetes").join(file)).unwrap()
}

/// A schema without what only Kubernetes' own tools read.
fn plain(schema: Value) -> Value {
    match schema {
        Value::Object(all) => {
            let kept =
                all.into_iter().filter(|(k, _)| k != "$id" && !k.starts_with("x-kubernetes-"));
            kept.map(|(key, value)| (key, plain(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(all) => all.into_iter().map(plain).collect(),
        other => other,
    }
}

/// Why a document is none of this version's API.
fn refused(document: &Value, version: &str) -> Option<String> {
    let folder = repository().join("target/kubernetes/schemas").join(version);
    let read = |name: &str| {
        let file = folder.join(format!("{name}.json"));
        let text = fs::read_to_string(&file)
            .unwrap_or_else(|e| panic!("{}: {e}; scripts/kubernetes installs it", file.display()));
        plain(serde_json::from_str(&text.replace("/api/_definitions.json#", "#")).unwrap())
    };
    let text = |key: &str| document[key].as_str().unwrap();
    let kind = format!("{}-{}", text("kind").to_lowercase(), text("apiVersion").replace('/', "-"));
    let mut root = read(&kind);
    root["$defs"] = read("_definitions")["$defs"].take();
    let mut schema = root.clone();
    schema.as_object_mut().unwrap().remove("$defs");
    validate(&schema, &root, document, "").err()
}

#[test]
fn the_manifests_are_of_the_api_and_a_misspelt_field_is_refused() {
    for version in VERSIONS {
        for file in FILES {
            let all = documents(&manifest(file));
            assert!(!all.is_empty());
            for document in &all {
                assert_eq!(refused(document, version), None, "{file} and {version}");
            }
        }
        for (right, wrong) in [
            ("hostNetwork: true", "hostNetwrok: true"),
            ("runAsUser: 0", "runAsUser: root"),
            ("drop: [ALL]", "drop: ALL"),
            ("tcpSocket: {port: metrics}", "tcpSocket: {}"),
            ("kind: DaemonSet\n", "kind: DaemonSet\nspecs: {}\n"),
        ] {
            let whole = manifest("exporter.yaml");
            let broken = whole.replace(right, wrong);
            assert_ne!(whole, broken, "{right}");
            let said = documents(&broken).iter().find_map(|d| refused(d, version));
            assert!(said.is_some(), "{wrong} passed with {version}");
        }
    }
}

/// The containers of all manifests: the file's name, and the container.
fn containers() -> Vec<(&'static str, Value)> {
    let mut all = vec![];
    for file in FILES {
        for document in documents(&manifest(file)) {
            let spec = match document["kind"].as_str().unwrap() {
                "Pod" => &document["spec"],
                _ => &document["spec"]["template"]["spec"],
            };
            let found = spec["containers"].as_array().into_iter().flatten();
            all.extend(found.map(|c| (file, c.clone())));
        }
    }
    assert_eq!(all.len(), 5);
    all
}

#[test]
fn every_container_has_arguments_of_this_program_and_the_least_rights() {
    for (file, container) in containers() {
        let args = container["args"].as_array().unwrap();
        let args = args.iter().map(|a| a.as_str().unwrap().replace("$(POD_IP)", "10.0.0.5"));
        let args: Vec<String> = args.map(|a| a.replace("$(HOST_IP)", "10.0.0.5")).collect();
        assert!(args.iter().all(|a| !a.contains('$')), "{file}: {args:?}");
        let mut line: Vec<&str> = args.iter().map(String::as_str).collect();
        line.push("--help");
        let out = output(NETWRIGHT, &line);
        assert!(out.status.success(), "{file}: {}", String::from_utf8_lossy(&out.stderr));
        line.insert(1, "--no-such-flag");
        assert_eq!(output(NETWRIGHT, &line).status.code(), Some(2), "{line:?}");
        let rights = &container["securityContext"];
        assert_eq!(rights["allowPrivilegeEscalation"], false, "{file}");
        assert_eq!(rights["readOnlyRootFilesystem"], true, "{file}");
        assert_eq!(rights["capabilities"]["drop"][0], "ALL", "{file}");
        let added = rights["capabilities"]["add"].as_array();
        assert_eq!(added.is_some(), file == "exporter.yaml", "{file}: {added:?}");
    }
}

/// A reader that datagrams wait for, until dropped.
struct Waits(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Waits {
    fn begin() -> Self {
        let reader = UdpSocket::bind("127.0.0.1:0").unwrap();
        reader.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let (stop, to) = (Arc::new(AtomicBool::new(false)), reader.local_addr().unwrap());
        let [reads, sends] = [Arc::clone(&stop), Arc::clone(&stop)];
        let reading = thread::spawn(move || {
            while !reads.load(Ordering::Relaxed) {
                let _ = reader.recv(&mut [0; 8]);
            }
        });
        let sending = thread::spawn(move || {
            let from = UdpSocket::bind("127.0.0.1:0").unwrap();
            while !sends.load(Ordering::Relaxed) {
                let _ = from.send_to(b"x", to);
                thread::sleep(Duration::from_millis(2));
            }
        });
        Self(stop, vec![reading, sending])
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.drain(..).for_each(|t| drop(t.join()));
    }
}

#[test]
fn the_exporter_needs_the_capabilities_of_its_manifest_and_not_the_hosts_processes() {
    let (_, container) = containers().remove(0);
    let added = container["securityContext"]["capabilities"]["add"].as_array().unwrap();
    let caps: String =
        added.iter().map(|c| format!(",+{}", c.as_str().unwrap().to_lowercase())).collect();
    let page = |caps: &str| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc", "setpriv"]);
        command.arg(format!("--bounding-set=-all{caps}")).arg("--no-new-privs");
        command.args([NETWRIGHT, "export", "--once", "--interval", "500ms", "-q"]);
        // By default a busy CPU may have no time left to observe.
        command.args(["--softirq", "always", "--waits", "always", "--drops", "always"]);
        let out = command.env_remove("NETWRIGHT_SECRET").output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let _waits = Waits::begin();
    let measured = "netwright_softirq_seconds_total{cpu=\"0\",context=\"syscall\"}";
    let whole = page(&caps);
    for series in [
        measured,
        "netwright_observed_seconds_total{part=\"drops\"}",
        "netwright_observed_seconds_total{part=\"waits\"}",
        "netwright_wait_seconds_count{process=",
        "netwright_softnet_processed_packets_total{cpu=\"0\"}",
    ] {
        assert!(whole.contains(series), "no {series}: {whole}");
    }
    assert!(!page("").contains(measured), "the capabilities are needed");
}
