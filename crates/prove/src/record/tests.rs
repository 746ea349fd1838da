use std::collections::BTreeMap;

use super::*;

fn begun() -> RecordHead {
    RecordHead { started_unix_s: 1, name: "x".into(), spec: Spec::default(), seed: 9 }
}

fn a_run(block: usize) -> Run {
    Run {
        block,
        level: 0,
        took_s: 0.1,
        figures: BTreeMap::from([("m".into(), 1.25)]),
        others_cpus: None,
        steal_share: Some(0.0),
        host: model::prove::DuringRun::default(),
        counters: BTreeMap::new(),
        work: None,
        discarded: None,
    }
}

#[test]
fn what_was_written_is_read_and_a_cut_line_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    let mut record = Record::create(&path, &begun()).unwrap();
    assert!(matches!(Record::open(&path), Err(ProveError::Busy(_))));
    record.setting("undo a").unwrap();
    record.setting("undo b").unwrap();
    record.undone("undo a").unwrap();
    record.run(&a_run(0)).unwrap();
    record.run(&a_run(1)).unwrap();
    assert!(read(&path).unwrap().under_way);
    drop(record);
    // A child that another test starts has the file, too, until it becomes its program.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while read(&path).unwrap().under_way {
        assert!(std::time::Instant::now() < until, "the lock is still held");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let found = read(&path).unwrap();
    assert_eq!((found.begun, found.runs.len()), (begun(), 1));
    assert_eq!((found.pending, found.ended), (vec!["undo b".to_owned()], None));
    std::fs::write(&path, "hello\n").unwrap();
    assert!(read(&path).is_err());
}

/// A lost line in the middle may be the one that names a setting.
#[test]
fn a_damaged_line_is_reported_and_a_cut_one_does_not_spoil_what_is_written_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    let mut record = Record::create(&path, &begun()).unwrap();
    record.run(&a_run(0)).unwrap();
    record.setting("true").unwrap();
    drop(record);
    let whole = std::fs::read_to_string(&path).unwrap();
    let damaged = whole.replacen("{\"run\"", "{\"ruN\"", 1);
    assert_ne!(damaged, whole);
    std::fs::write(&path, damaged).unwrap();
    let clear = |own: &str| undo_killed(dir.path(), Path::new(own), &[]);
    for why in [read(&path).unwrap_err(), clear("x.jsonl").unwrap_err()] {
        assert!(why.to_string().contains("is damaged"), "{why}");
    }
    assert!(clear("own.jsonl").unwrap().left[0].contains("is damaged"));
    std::fs::write(&path, format!("{whole}{{\"run\":{{\"blo")).unwrap();
    assert_eq!(read(&path).unwrap().pending, ["true"]);
    drop(Record::resume(&path).unwrap());
    assert_eq!(clear("own.jsonl").unwrap().undone, ["true"]);
    let past = read(&path).unwrap();
    assert_eq!((past.runs.len(), past.pending), (1, vec![]));
}

/// Commands of a record are run: no other user may write them.
#[test]
fn commands_of_a_record_that_others_may_write_are_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (path, ran) = (dir.path().join("x.jsonl"), dir.path().join("ran"));
    let undo = format!("touch '{}'", ran.display());
    Record::create(&path, &begun()).unwrap().setting(&undo).unwrap();
    let clear = || undo_killed(dir.path(), Path::new("own.jsonl"), &[]).unwrap();
    for mode in [0o666, 0o644] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let cleared = clear();
        assert_eq!(ran.exists(), mode == 0o644, "{cleared:?}");
        assert!(mode == 0o644 || cleared.left[0].contains("others may write"), "{cleared:?}");
    }
}

#[test]
fn what_can_be_gone_on_with_is_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    let made = |ended: bool, seed| {
        let mut record = Record::create(&path, &RecordHead { seed, ..begun() }).unwrap();
        record.run(&a_run(0)).unwrap();
        if ended {
            record.ended("the budget is used up").unwrap();
        }
    };
    (1..4).for_each(|seed| made(false, seed));
    made(true, 4);
    let seed = |name: &str| read(&folder.path().join(name)).map(|past| past.begun.seed).ok();
    let kept = ["x.before.jsonl", "x.before-2.jsonl", "x.before-3.jsonl"].map(seed);
    assert_eq!(kept, [Some(1), Some(2), Some(3)]);
    // Of the records that have ended only the last is kept.
    std::fs::remove_file(folder.path().join("x.before.jsonl")).unwrap();
    (5..7).for_each(|seed| made(true, seed));
    assert_eq!((seed("x.before.jsonl"), seed("x.jsonl")), (Some(5), Some(6)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn what_is_no_record_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for mine in ["one\ntwo\n", "{", "{\"begun\":{}}\n", "\n"] {
        std::fs::write(at("x.txt"), mine).unwrap();
        let said = Record::create(&at("x.txt"), &begun()).unwrap_err().to_string();
        assert!(said.ends_with("x.txt: is no record of prove: name another file"), "{said}");
        assert_eq!(std::fs::read_to_string(at("x.txt")).unwrap(), mine);
    }
    assert!(room(folder.path()).is_err() && room(Path::new("/dev/null")).is_err());
    // Nor the name that a record moves aside to.
    std::fs::write(at("x.before.jsonl"), "mine").unwrap();
    // An empty file is used; a record moves aside, also one with an incomplete first line.
    std::fs::write(at("x.jsonl"), "").unwrap();
    drop(Record::create(&at("x.jsonl"), &begun()).unwrap());
    assert!(!at("x.before-2.jsonl").exists());
    let whole = std::fs::read_to_string(at("x.jsonl")).unwrap();
    for kept in [&whole, &whole[..HEAD.len() + 1]] {
        std::fs::write(at("x.jsonl"), kept).unwrap();
        drop(Record::create(&at("x.jsonl"), &begun()).unwrap());
        assert_eq!(std::fs::read_to_string(at("x.before-2.jsonl")).unwrap(), *kept);
    }
    assert_eq!(std::fs::read_to_string(at("x.before.jsonl")).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn what_was_broken_off_says_so_until_it_is_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    Record::create(&path, &begun()).unwrap().stopped("by hand").unwrap();
    assert_eq!(read(&path).unwrap().stopped.as_deref(), Some("by hand"));
    drop(Record::resume(&path).unwrap());
    let past = read(&path).unwrap();
    assert_eq!((past.stopped, past.ended), (None, None));
}

#[test]
fn a_record_from_before_a_boot_is_known_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    Record::create(&path, &begun()).unwrap().run(&a_run(0)).unwrap();
    let same = read(&path).unwrap();
    assert!(!same.rebooted() && same.boot_id.is_some());
    let now = same.boot_id.unwrap();
    let text = std::fs::read_to_string(&path).unwrap().replace(&now, "another boot");
    std::fs::write(&path, text).unwrap();
    let past = read(&path).unwrap();
    assert!(past.rebooted() && past.runs.len() == 1);
    drop(Record::resume(&path).unwrap());
    assert!(!read(&path).unwrap().rebooted());
}

#[test]
fn what_a_killed_experiment_left_is_undone_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    let left = dir.path().join("left");
    std::fs::write(&left, "").unwrap();
    let undo = format!("rm '{}'", left.display());
    let mut record = Record::create(&path, &begun()).unwrap();
    record.setting(&undo).unwrap();
    // While its process lives, nothing of it is undone.
    let none = ClearedSettings::default();
    let clear = |folder| undo_killed(folder, Path::new("own.jsonl"), &[]).unwrap();
    assert_eq!(clear(dir.path()), none);
    drop(record);
    assert_eq!(clear(dir.path()), ClearedSettings { undone: vec![undo], left: vec![] });
    assert!(!left.exists());
    assert_eq!(clear(dir.path()), none);
    assert_eq!(clear(Path::new("/none/there")), none);
}

#[test]
fn what_cannot_be_undone_is_in_the_way_of_whom_it_concerns_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    Record::create(&path, &begun()).unwrap().setting("echo stuck >&2; false").unwrap();
    let clear = |own: &str, unsets: &[String]| undo_killed(dir.path(), Path::new(own), unsets);
    let other = clear("other.jsonl", &["true".into()]).unwrap();
    assert!(other.undone.is_empty() && other.left.len() == 1, "{other:?}");
    assert!(other.left[0].contains("exit code 1: stuck; the experiment of"), "{other:?}");
    assert!(clear("x.jsonl", &[]).is_err(), "its own record");
    assert!(clear("other.jsonl", &["echo stuck >&2; false".into()]).is_err(), "the same setting");
    assert_eq!(read(&path).unwrap().pending.len(), 1);
}

#[test]
fn what_was_set_in_a_network_namespace_that_is_gone_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (path, wrong) = (dir.path().join("x.jsonl"), dir.path().join("wrong"));
    let undo = format!("touch '{}'", wrong.display());
    let mut record = Record::create(&path, &begun()).unwrap();
    assert_eq!(read(&path).unwrap().place, NamespaceId::here());
    record.write(&Entry::Namespace(NamespaceId { inode: 1, net_cookie: Some(1) })).unwrap();
    record.setting(&undo).unwrap();
    drop(record);
    let cleared = undo_killed(dir.path(), Path::new("own.jsonl"), &[]).unwrap();
    assert!(cleared.undone.is_empty() && !wrong.exists(), "it ran in another namespace");
    assert!(cleared.left[0].contains("network namespace is gone"), "{cleared:?}");
    let past = read(&path).unwrap();
    assert!(past.pending.is_empty() && past.is_elsewhere());
    let begun = past.begun;
    let here = dir.path().join("here.jsonl");
    drop(Record::create(&here, &begun).unwrap());
    assert!(!read(&here).unwrap().is_elsewhere());
}
