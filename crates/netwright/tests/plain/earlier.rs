//! Tests that files which earlier versions wrote are still read, and that their changes can still be undone.
//! They are kept in `earlier/VERSION`; for a new version, `earlier/make PROGRAM earlier/VERSION` writes them.
//! docs/schemas.md promises this. Documents of earlier versions: `seeing::schema::old`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::support::{NETWRIGHT, output, run};

/// Each kind of record that a journal of 0.1.0 can have.
const KINDS: [&str; 17] = [
    "applied",
    "armed",
    "begin",
    "confirmed",
    "failed",
    "gone_with_boot",
    "left_as_found",
    "namespace_gone",
    "not_undone",
    "on_trial",
    "rolled_back",
    "undoing",
    "undone",
    "unfinished",
    "writing",
    "written",
    "coupled",
];

/// The kept folders, one for each version.
fn versions() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plain/earlier");
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let versions: Vec<PathBuf> = entries.filter(|p| p.is_dir()).collect();
    assert!(!versions.is_empty());
    versions
}

/// A copy of the kept folder for a test that changes it.
fn copy(version: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = format!("{}/.", version.display());
    run("cp", &["-r", &from, folder.path().to_str().unwrap()]);
    folder
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// `netwright tune ARGS` on the kept folder that is laid out like a host: exit code and output.
fn tune(kept: &Path, args: &[&str]) -> (Option<i32>, String) {
    let at = |name: &str| kept.join(name).display().to_string();
    let place = ["--root", &at("tree"), "--state-dir", &at("state")];
    let out = output(NETWRIGHT, &[&["tune"], args, &place].concat());
    let text = [out.stdout, out.stderr].concat();
    (out.status.code(), String::from_utf8(text).unwrap())
}

/// The state of each change of a `tune log --json`.
fn states(log: &Value) -> BTreeMap<u64, String> {
    assert_eq!(log["damaged"].as_array().map(Vec::len), Some(0), "{log}");
    let state = |set: &Value| set["state"].as_str().unwrap().to_owned();
    let sets = log["sets"].as_array().unwrap();
    sets.iter().map(|set| (set["id"].as_u64().unwrap(), state(set))).collect()
}

/// A setting of the kept host.
fn value(kept: &Path, name: &str) -> String {
    let file = kept.join("tree/proc/sys/net").join(name);
    fs::read_to_string(file).unwrap().trim().to_owned()
}

/// Whether the new document has all that the old one has.
fn has_all(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.iter().all(|(k, v)| new.get(k).is_some_and(|n| has_all(v, n)))
        }
        (Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(o, n)| has_all(o, n))
        }
        _ => old == new,
    }
}

#[test]
fn a_journal_is_read_and_each_change_is_put_back_or_explained() {
    for version in versions() {
        let kept = copy(&version);
        let kept = kept.path();
        let (code, log) = tune(kept, &["log", "--json"]);
        let wanted = [
            "gone_with_boot",
            "rolled_back",
            "in_force",
            "rolled_back",
            "rolled_back",
            "partly_rolled_back",
            "rolled_back",
            "in_force",
            "unfinished",
        ];
        let wanted = (1..).zip(wanted.map(str::to_owned)).collect();
        assert_eq!((code, states(&json(&log))), (Some(0), wanted));
        let (code, status) = tune(kept, &["status"]);
        assert!(code == Some(1) && status.contains("change 9  unfinished"), "{status}");
        assert!(status.contains("CAP_NET_ADMIN"), "why 6 was not put back: {status}");
        // A new change is refused until the unfinished one is put back.
        let new = ["apply", "sysctl.net.ipv4.tcp_syn_retries=5"];
        let (code, refused) = tune(kept, &new);
        assert!(code == Some(4) && refused.contains("change 9 was interrupted"), "{refused}");
        let governor = kept.join("tree/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        assert_eq!(fs::read_to_string(&governor).unwrap().trim(), "performance");
        let (code, said) = tune(kept, &["rollback", "--all"]);
        assert_eq!(code, Some(0), "{said}");
        for id in [9, 8, 6, 3] {
            assert!(said.contains(&format!("Change {id} is rolled back")), "{id}: {said}");
        }
        for (name, old) in [
            ("core/somaxconn", "4096"),
            ("ipv4/tcp_fin_timeout", "60"),
            ("ipv4/tcp_keepalive_probes", "9"),
            ("ipv4/tcp_keepalive_intvl", "75"),
            ("ipv4/tcp_keepalive_time", "7200"),
            // Set by another program: left alone.
            ("ipv4/tcp_syn_retries", "3"),
        ] {
            assert_eq!(value(kept, name), old, "{name}");
        }
        assert_eq!(fs::read_to_string(&governor).unwrap().trim(), "powersave");
        let (code, said) = tune(kept, &new);
        assert_eq!(code, Some(0), "a new change after them: {said}");
    }
}

#[test]
fn an_interrupted_change_is_completed() {
    for version in versions() {
        let kept = copy(&version);
        assert_eq!(value(kept.path(), "ipv4/tcp_keepalive_intvl"), "75");
        let (code, said) = tune(kept.path(), &["apply", "--finish", "9"]);
        assert_eq!(code, Some(0), "{said}");
        for (name, new) in
            [("fin_timeout", "15"), ("keepalive_probes", "5"), ("keepalive_intvl", "20")]
        {
            assert_eq!(value(kept.path(), &format!("ipv4/tcp_{name}")), new);
        }
    }
}

#[test]
fn the_files_of_persist_are_known_and_removed() {
    for version in versions() {
        let kept = copy(&version);
        let file = kept.path().join("tree/etc/sysctl.d/99-zz-netwright.conf");
        assert!(fs::read_to_string(&file).unwrap().contains("net.core.somaxconn = 8192"));
        let (code, said) = tune(kept.path(), &["persist", "--remove"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(!file.exists() && !file.parent().unwrap().exists(), "{said}");
    }
}

/// Changes in a network namespace that is gone, and of an experiment: their boot is over, so nothing is left.
#[test]
fn changes_of_another_boot_are_listed() {
    for version in versions() {
        let kept = copy(&version);
        let place = kept.path().join("live").display().to_string();
        let log = run(NETWRIGHT, &["tune", "log", "--json", "--state-dir", &place]);
        let states = states(&json(&log));
        assert!(states.len() >= 2, "{states:?}");
        assert!(states.values().all(|s| s == "rolled_back"), "{states:?}");
        let status = run(NETWRIGHT, &["tune", "status", "--state-dir", &place]);
        assert!(status.contains("No active changes"), "{status}");
    }
}

/// Every kind of record is in the kept journals.
#[test]
fn the_kept_journals_have_every_kind_of_record() {
    for version in versions() {
        let mut kinds = BTreeSet::new();
        for state in ["state", "live"] {
            for file in fs::read_dir(version.join(state).join("journal")).unwrap() {
                let text = fs::read_to_string(file.unwrap().path()).unwrap();
                // The last line may be torn.
                let records = text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
                for record in records {
                    let coupled =
                        record["coupled_settings"].as_array().is_some_and(|c| !c.is_empty());
                    kinds.extend(coupled.then(|| "coupled".to_owned()));
                    kinds.insert(record["event"].as_str().unwrap().to_owned());
                }
                kinds.extend((!text.ends_with('\n')).then(|| "unfinished".to_owned()));
            }
        }
        let kinds: Vec<&str> = KINDS.into_iter().filter(|k| !kinds.contains(*k)).collect();
        assert!(kinds.is_empty(), "{}: no {kinds:?}", version.display());
    }
}

#[test]
fn a_record_of_prove_is_read() {
    for version in versions() {
        let kept = copy(&version);
        let record = kept.path().join("prove.jsonl").display().to_string();
        let out = output(NETWRIGHT, &["prove", "--status", "--record", &record]);
        let status = String::from_utf8(out.stdout).unwrap();
        // 1: nothing is proven.
        assert_eq!(out.status.code(), Some(1), "{status}");
        let verdict = "prove: no significant difference (ruled out beyond 0.0%)";
        assert!(status.starts_with(verdict), "{status}");
        let rows: Vec<&str> = status.lines().filter(|l| l.ends_with("5.00    12")).collect();
        assert_eq!(rows.len(), 2, "the rates and runs of two levels: {status}");
    }
}

#[test]
fn a_recording_is_replayed_whole() {
    for version in versions() {
        let file = version.join("watch.zst");
        let bytes = zstd::decode_all(fs::File::open(&file).unwrap()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let old: Vec<Value> = text.lines().skip(1).map(|l| json(l)["interval"].clone()).collect();
        assert!(old.len() >= 2, "{} intervals", old.len());
        let replayed = run(NETWRIGHT, &["watch", "--json", "--replay", file.to_str().unwrap()]);
        let new: Vec<Value> = replayed.lines().map(json).collect();
        assert_eq!(old.len(), new.len());
        for (old, new) in old.iter().zip(&new) {
            assert!(has_all(old, new), "{old}\nbecame\n{new}");
        }
    }
}

#[test]
fn a_snapshot_is_judged() {
    for version in versions() {
        let file = version.join("snapshot.tar.zst").display().to_string();
        let facts = json(&run(NETWRIGHT, &["inspect", "--json", "--root", &file]));
        assert_eq!(facts["host"]["name"], "kept", "{}", facts["host"]);
        assert_eq!(facts["host"]["cpus_online"], "0-1");
        let nics = facts["nics"].as_array().unwrap();
        let eth0 = nics.iter().find(|n| n["name"] == "eth0").unwrap();
        assert_eq!(eth0["driver"], "virtio_net", "{eth0}");
        let doctor = json(&run(NETWRIGHT, &["doctor", "--json", "--no-store", "--root", &file]));
        let passed = doctor["passed"].as_array().unwrap().len();
        assert!(passed >= 20, "only {passed} rules passed");
        assert!(doctor["window_ns"].as_u64().unwrap() > 400_000_000, "{}", doctor["window_ns"]);
    }
}

#[test]
fn a_history_is_read_and_its_export_taken_in() {
    for version in versions() {
        let kept = copy(&version);
        let at = |name: &str| kept.path().join(name).display().to_string();
        let (old, new) = (at("history.sqlite"), at("new.sqlite"));
        let show = |store: &str| {
            let all = json(&run(NETWRIGHT, &["history", "list", "--json", "--store", store]));
            let runs = all["runs"].as_array().unwrap();
            assert_eq!((runs.len(), &runs[0]["tag"]), (1, &"kept".into()), "{all}");
            run(NETWRIGHT, &["history", "show", "1", "--json", "--store", store])
        };
        let taken =
            run(NETWRIGHT, &["history", "import", &at("history.ndjson.gz"), "--store", &new]);
        assert_eq!(taken, "1 new of 1 runs\n");
        let document = show(&old);
        assert_eq!(document, show(&new));
        assert_eq!(json(&document)["host"]["name"], "kept");
        // A run of today stands beside it.
        let root = at("snapshot.tar.zst");
        run(NETWRIGHT, &["doctor", "--root", &root, "--store", &old, "-o", "/dev/null"]);
        let list = json(&run(NETWRIGHT, &["history", "list", "--json", "--store", &old]));
        assert_eq!(list["runs"].as_array().map(Vec::len), Some(2), "{list}");
    }
}
