use super::*;
use std::{fs, os::unix::fs::PermissionsExt};

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

fn options() -> Options {
    let request = Request { processes: vec![facts::Selector::Pid(std::process::id())] };
    Options { request, window: Some(Duration::from_millis(30)), readings: 3, ..Options::default() }
}

/// Writes what was recorded and gives the file.
fn written(taken: &CapturedRun, folder: &Path) -> PathBuf {
    let out = folder.join("host.tar.zst");
    let pending = write::Pending::create(&out, false).unwrap();
    let summary = pending.write(&taken.recording, &taken.manifest).unwrap();
    assert_eq!(summary.samples, taken.manifest.samples.len());
    out
}

fn reread(root: &Root, taken: &CapturedRun, options: &Options) -> (Facts, Option<Samples>) {
    let facts = facts::collect(root, &options.request);
    let asked = samples::Options {
        pids: facts.processes.iter().map(|p| p.pid).collect(),
        sockets: samples::Sockets::All,
        ..samples::Options::default()
    };
    let samples = samples::take(root, &asked, &never(), &mut |_| {}).ok();
    assert_eq!(samples.is_some(), taken.samples.is_some());
    (facts, samples)
}

/// Says which key differs, not only that two large values do.
fn same<T: serde::Serialize + PartialEq>(what: &str, a: &T, b: &T) {
    fn differences(at: &str, a: &serde_json::Value, b: &serde_json::Value, out: &mut Vec<String>) {
        use serde_json::Value::{Array, Object};
        match (a, b) {
            (Object(x), Object(y)) => {
                let keys: std::collections::BTreeSet<&String> = x.keys().chain(y.keys()).collect();
                for k in keys {
                    let null = serde_json::Value::Null;
                    let (x, y) = (x.get(k).unwrap_or(&null), y.get(k).unwrap_or(&null));
                    differences(&format!("{at}.{k}"), x, y, out);
                }
            }
            (Array(x), Array(y)) if x.len() == y.len() => {
                for (i, (x, y)) in x.iter().zip(y).enumerate() {
                    differences(&format!("{at}[{i}]"), x, y, out);
                }
            }
            _ if a != b => out.push(format!("{at}: {a} is not {b}")),
            _ => {}
        }
    }
    let mut out = Vec::new();
    let json = |v: &T| serde_json::to_value(v).unwrap();
    differences(what, &json(a), &json(b), &mut out);
    assert!(out.is_empty(), "{}", out.join("\n"));
    assert!(a == b, "{what} differs only outside its serialised form");
}

/// The contract of every reader: a recording, packed or unpacked, returns exactly what was read
/// while recording. A reader that bypasses the root, or depends on the time or on the order of a
/// listing, fails here.
#[test]
fn a_snapshot_says_exactly_what_the_live_host_said() {
    let folder = tempfile::tempdir().unwrap();
    let options = options();
    let taken = record(&options, &never(), &mut |_| {});
    assert_eq!(taken.manifest.samples.len(), 3);
    let out = written(&taken, folder.path());

    let archive = Root::open(&out).unwrap();
    let (facts, samples) = reread(&archive, &taken, &options);
    same("facts from the archive", &facts, &taken.facts);
    same("samples from the archive", &samples, &taken.samples);

    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let bytes = zstd::decode_all(fs::File::open(&out).unwrap()).unwrap();
    tar::Archive::new(&bytes[..]).unpack(&tree).unwrap();
    let (facts, samples) = reread(&Root::open(&tree).unwrap(), &taken, &options);
    same("facts from the tree", &facts, &taken.facts);
    same("samples from the tree", &samples, &taken.samples);
}

#[test]
fn only_its_owner_may_read_it_and_it_is_not_replaced_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("host.tar.zst");
    let mut options = Options { readings: 2, ..Options::default() };
    let summary = take(&options, &out, &never(), &mut |_| {}).unwrap();
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(summary.archive_bytes, fs::metadata(&out).unwrap().len());
    assert!(summary.files > 50 && summary.samples == 0, "{summary:?}");
    let before = fs::read(&out).unwrap();
    let e = take(&options, &out, &never(), &mut |_| {}).unwrap_err().to_string();
    assert!(e.contains("exists"), "{e}");
    assert_eq!(fs::read(&out).unwrap(), before);
    options.overwrite = true;
    take(&options, &out, &never(), &mut |_| {}).unwrap();
    assert_ne!(fs::read(&out).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
}

#[test]
fn what_cannot_be_written_is_said_before_the_window() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { window: Some(Duration::from_secs(3600)), readings: 2, ..Options::default() };
    for out in ["none/x.tar.zst", "..", ""] {
        let out = folder.path().join(out);
        let e = take(&options, &out, &never(), &mut |_| {}).unwrap_err().to_string();
        assert!(!e.contains('\n'), "{e}");
    }
    let options = Options { overwrite: true, ..options };
    let e = take(&options, Path::new("/dev/null"), &never(), &mut |_| {}).unwrap_err();
    assert!(e.to_string().contains("is no file"), "{e}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_same_recording_makes_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let taken = record(&Options::default(), &never(), &mut |_| {});
    let a = fs::read(written(&taken, folder.path())).unwrap();
    fs::remove_file(folder.path().join("host.tar.zst")).unwrap();
    assert!(a == fs::read(written(&taken, folder.path())).unwrap());
}

#[test]
fn an_environment_is_not_recorded() {
    let mut recording = Recording::default();
    let secret = b"PATH=/bin\0container=podman\0DB_PASSWORD=hunter2\0IRQBALANCE_ARGS=-o\0".to_vec();
    recording.files.insert("/proc/1/environ".into(), secret);
    only_known_variables(&mut recording);
    let kept = &recording.files["/proc/1/environ"];
    assert_eq!(kept, b"container=podman\0IRQBALANCE_ARGS=-o");
    assert_eq!(parse::environ::value(kept, "container").as_deref(), Some("podman"));
}

/// What a diagnosis rests on is the same after redaction, and every source can still be read.
#[test]
fn a_redacted_snapshot_says_the_same_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let options = options();
    let mut taken = record(&options, &never(), &mut |_| {});
    redact::recording(&mut taken, &redact::Key::random().unwrap());
    let root = Root::open(&written(&taken, folder.path())).unwrap();
    let (facts, samples) = reread(&root, &taken, &options);
    let before = &taken.facts;
    same("cpus", &facts.cpus, &before.cpus);
    same("caches", &facts.caches, &before.caches);
    same("numa_nodes", &facts.numa_nodes, &before.numa_nodes);
    same("irqs", &facts.irqs, &before.irqs);
    same("softnet", &facts.softnet, &before.softnet);
    same("storage", &facts.storage, &before.storage);
    same("sysctls", &facts.sysctls, &before.sysctls);
    same("unread", &facts.no_access, &before.no_access);
    same("samples", &samples, &taken.samples);
    assert_eq!(facts.nics.len(), before.nics.len());
    assert!(root.manifest().unwrap().redacted);
    for (new, old) in facts.nics.iter().zip(&before.nics) {
        let mut new = new.clone();
        if old.mac != model::Reading::Known("00:00:00:00:00:00".into()) && old.mac.is_known() {
            assert_ne!(new.mac, old.mac, "{}", old.name);
        }
        new.mac = old.mac.clone();
        new.addresses = old.addresses.clone();
        same(&old.name, &new, old);
    }
    let process = &facts.processes[0];
    assert_eq!(process.threads.len(), before.processes[0].threads.len());
    let program = |p: &model::process::Process| p.arguments.known().unwrap()[0].clone();
    assert!(program(&before.processes[0]).ends_with(&program(process)));
    assert_ne!(process.arguments, before.processes[0].arguments);
}

#[test]
fn what_no_reader_would_take_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut taken = record(&Options::default(), &never(), &mut |_| {});
    assert!(affordable(&Recorder::default()) > 100);
    let half = vec![0; (Limits::default().total_bytes / 2) as usize];
    taken.recording.files.insert("/proc/a".into(), half.clone());
    taken.recording.files.insert("/proc/b".into(), half);
    let pending = write::Pending::create(&folder.path().join("x"), false).unwrap();
    let e = pending.write(&taken.recording, &taken.manifest).unwrap_err().to_string();
    assert!(e.contains("take fewer samples"), "{e}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
