//! The history under load and misuse: every record of concurrent writers is there, a killed or
//! refused writer loses nothing, and no store ever changes how a run ends.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::Value;

use crate::support::NETWRIGHT;

/// A captured host: its diagnosis needs no root and takes a fraction of a second.
fn host() -> String {
    format!("{}/tests/captured/bond.tar.zst", env!("CARGO_MANIFEST_DIR"))
}

/// `netwright doctor` of the captured host, recorded in this store.
fn doctor(store: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(NETWRIGHT);
    command.args(["doctor", "--json", "--root", &host(), "--store"]).arg(store).args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn history(store: &Path, args: &[&str]) -> Output {
    Command::new(NETWRIGHT).arg("history").args(args).arg("--store").arg(store).output().unwrap()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn ended(mut command: Command) -> Output {
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", said(&out));
    out
}

/// The runs of a store.
fn runs(store: &Path, args: &[&str]) -> Vec<Value> {
    let out = history(store, &[&["list", "--json"], args].concat());
    assert_eq!(out.status.code(), Some(0), "{}", said(&out));
    let listed: Value = serde_json::from_slice(&out.stdout).unwrap();
    listed["runs"].as_array().unwrap().clone()
}

/// Fails unless SQLite itself finds the file whole.
fn whole(store: &Path) {
    let file = Connection::open(store).unwrap();
    let check: String = file.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
    assert_eq!(check, "ok");
}

#[test]
fn what_was_kept_is_printed_again_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("new/folder/h.sqlite");
    let document = ended(doctor(&store, &["--tag", "first"])).stdout;
    let mut text = Command::new(NETWRIGHT);
    text.args(["doctor", "--root", &host(), "--no-store"]);
    let page = ended(text).stdout;
    assert_eq!(history(&store, &["show", "1", "--json"]).stdout, document);
    let shown = history(&store, &["show", "1"]).stdout;
    let shown = String::from_utf8(shown).unwrap();
    let (head, rest) = shown.split_once("\n\n").unwrap();
    assert!(head.starts_with("Run 1 · 20") && head.ends_with("· doctor · first"), "{head}");
    assert_eq!(rest.as_bytes(), page);
    let all = runs(&store, &[]);
    assert_eq!(all.len(), 1, "--no-store kept nothing: {all:?}");
    assert_eq!(all[0]["kind"], "doctor");
    let document: Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(all[0]["host"], document["host"]["name"]);
    assert_eq!(all[0]["kernel"], document["kernel"]);
    let words: Vec<&str> =
        all[0]["command"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(words[..3], ["doctor", "--json", "--root"]);
    // Nobody else may read it.
    use std::os::unix::fs::MetadataExt;
    assert_eq!(fs::metadata(&store).unwrap().mode() & 0o077, 0);
    assert_eq!(fs::metadata(store.parent().unwrap()).unwrap().mode() & 0o077, 0);
}

#[test]
fn filters_choose_by_host_kind_tag_and_date() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("h.sqlite");
    for tag in ["a", "b", "a"] {
        ended(doctor(&store, &["--tag", tag]));
    }
    let ids = |args: &[&str]| -> Vec<u64> {
        runs(&store, args).iter().map(|r| r["id"].as_u64().unwrap()).collect()
    };
    let name = runs(&store, &[])[0]["host"].as_str().unwrap().to_owned();
    assert_eq!(ids(&[]), [3, 2, 1]);
    assert_eq!(ids(&["--tag", "a"]), [3, 1]);
    assert_eq!(ids(&["--kind", "doctor", "--host", &name]), [3, 2, 1]);
    assert_eq!(ids(&["--kind", "doc"]), [0u64; 0]);
    assert_eq!(ids(&["--host", "%"]), [0u64; 0]);
    assert_eq!(ids(&["--since", "2020-01-01", "-n", "1"]), [3]);
    assert_eq!(ids(&["--until", "2020-01-01"]), [0u64; 0]);
    for wrong in [&["--since", "soon"][..], &["-n", "0"]] {
        assert_eq!(history(&store, &[&["list"], wrong].concat()).status.code(), Some(2));
    }
    assert_eq!(history(&store, &["show", "4"]).status.code(), Some(2));
}

#[test]
fn of_concurrent_writers_every_record_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("h.sqlite");
    // The first of them make the file and its tables together.
    let writers: Vec<_> =
        (0..24).map(|n| doctor(&store, &["--tag", &format!("w{n}")]).spawn().unwrap()).collect();
    for writer in writers {
        let out = writer.wait_with_output().unwrap();
        assert_eq!((out.status.code(), said(&out).as_str()), (Some(0), ""));
    }
    let mut tags: Vec<String> =
        runs(&store, &[]).iter().map(|r| r["tag"].as_str().unwrap().to_owned()).collect();
    tags.sort();
    let mut wanted: Vec<String> = (0..24).map(|n| format!("w{n}")).collect();
    wanted.sort();
    assert_eq!(tags, wanted);
    whole(&store);
}

#[test]
fn a_killed_writer_leaves_what_was_there_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("h.sqlite");
    let begun = Instant::now();
    ended(doctor(&store, &["--tag", "first"]));
    let mut usual = begun.elapsed();
    let (mut ended_runs, mut killed) = (1, 0);
    for n in 0..60 {
        let begun = Instant::now();
        let mut writer = doctor(&store, &[]).spawn().unwrap();
        // Over the whole run, and most of them near its end, where the record is written; in no
        // order of time, as other load changes.
        let n = n * 37 % 60;
        let share = if n < 20 { f64::from(n) / 20.0 } else { 0.7 + f64::from(n - 20) / 80.0 };
        while begun.elapsed() < usual.mul_f64(share) && writer.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        let lived = begun.elapsed();
        let _ = writer.kill();
        let out = writer.wait_with_output().unwrap();
        match out.status.code() {
            Some(0) => {
                ended_runs += 1;
                usual = lived;
            }
            None => {
                killed += 1;
                usual = usual.max(lived);
            }
            other => panic!("{other:?}: {}", said(&out)),
        }
        let there = runs(&store, &[]).len();
        assert!(there >= ended_runs, "{there} of {ended_runs} records");
        // A record may be on disk although its writer was killed right after.
        ended_runs = there;
    }
    assert!(killed >= 10, "only {killed} were killed");
    assert_eq!(runs(&store, &["--tag", "first"]).len(), 1);
    whole(&store);
}

/// A run with this store has the same output and exit code as one without, and says one line.
fn ends_as_usual(mut command: Command, says: &str) {
    let mut without = Command::new(NETWRIGHT);
    without.args(["doctor", "--json", "--root", &host(), "--no-store"]);
    let usual = ended(without);
    let begun = Instant::now();
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", said(&out));
    assert_eq!(out.stdout, usual.stdout);
    let line = said(&out);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.starts_with("netwright: this run is not in the history: "), "{line}");
    assert!(line.contains(says), "{line}");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_store_that_cannot_be_written_costs_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // Of another program, or of nobody.
    fs::write(
        path("garbage"),
        b"garbage, and enough of it for a header of SQLite \0\xff".repeat(99),
    )
    .unwrap();
    let other = Connection::open(path("other")).unwrap();
    other.execute_batch("CREATE TABLE run (id)").unwrap();
    drop(other);
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    for name in ["garbage", "other", "pipe"] {
        let before = (name != "pipe").then(|| fs::read(path(name)).unwrap());
        ends_as_usual(doctor(&path(name), &[]), "is no history of netwright");
        let out = history(&path(name), &["list"]);
        assert_eq!(out.status.code(), Some(4), "{}", said(&out));
        assert_eq!(before, (name != "pipe").then(|| fs::read(path(name)).unwrap()), "{name}");
    }
    ends_as_usual(doctor(folder.path(), &[]), "is no history of netwright");
    // No user may make a file in sysfs, as in a home that is mounted read-only.
    ends_as_usual(doctor(Path::new("/sys/kernel/history.sqlite"), &[]), "not permitted");
    ends_as_usual(doctor(&path("garbage").join("h.sqlite"), &[]), "h.sqlite: ");
    // Damage in the middle of a store.
    let store = path("damaged");
    ended(doctor(&store, &[]));
    let mut bytes = fs::read(&store).unwrap();
    let half = bytes.len() / 2;
    bytes[200..half].fill(0x5a);
    fs::write(&store, &bytes).unwrap();
    ends_as_usual(doctor(&store, &[]), "damaged");
    assert_eq!(history(&store, &["list"]).status.code(), Some(4));
}

#[test]
fn a_locked_store_is_waited_for_ten_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("h.sqlite");
    ended(doctor(&store, &[]));
    let holder = Connection::open(&store).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let begun = Instant::now();
    ends_as_usual(doctor(&store, &[]), "another process is using it");
    assert!(begun.elapsed() > Duration::from_secs(10), "{:?}", begun.elapsed());
    holder.execute_batch("COMMIT").unwrap();
    ended(doctor(&store, &[]));
    assert_eq!(runs(&store, &[]).len(), 2);
}

/// `ulimit -f` refuses as a full disk does, without a disk.
#[test]
fn without_room_the_records_before_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("h.sqlite");
    let limited = |store: &Path, blocks: u64| {
        let mut command = Command::new("bash");
        let line = format!("ulimit -f {blocks}; exec \"$@\"");
        let args = ["-c", &line, "bash", NETWRIGHT, "doctor", "--json", "--root"];
        command.args(args).arg(host()).arg("--store").arg(store);
        command
    };
    ended(doctor(&store, &["--tag", "before"]));
    let kilobytes = fs::metadata(&store).unwrap().len() / 1024;
    ends_as_usual(limited(&store, kilobytes), "h.sqlite: ");
    ends_as_usual(limited(&folder.path().join("new.sqlite"), 1), "new.sqlite: ");
    assert_eq!(runs(&store, &[]).len(), 1);
    ended(doctor(&store, &[]));
    assert_eq!(runs(&store, &["--tag", "before"]).len(), 1);
    whole(&store);
}

#[test]
fn a_newer_schema_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("h.sqlite");
    ended(doctor(&store, &[]));
    let newer = Connection::open(&store).unwrap();
    newer.pragma_update(None, "user_version", 9000).unwrap();
    drop(newer);
    let before = fs::read(&store).unwrap();
    ends_as_usual(doctor(&store, &[]), "its schema 9000 is newer than");
    let out = history(&store, &["list"]);
    assert_eq!((out.status.code(), said(&out).lines().count()), (Some(4), 1));
    assert_eq!(fs::read(&store).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no journal is left");
}

#[test]
fn the_environment_says_where_it_is_or_that_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let of = |variables: &[(&str, &Path)]| {
        let mut command = Command::new(NETWRIGHT);
        command.args(["doctor", "--json", "--root", &host()]);
        command.env_remove("NETWRIGHT_STORE").envs(variables.iter().copied());
        ended(command)
    };
    let state = folder.path().join("state");
    of(&[("NETWRIGHT_STATE", &state)]);
    assert_eq!(runs(&state.join("history.sqlite"), &[]).len(), 1);
    let named = folder.path().join("named");
    of(&[("NETWRIGHT_STATE", &state), ("NETWRIGHT_STORE", &named)]);
    assert_eq!(runs(&named, &[]).len(), 1);
    of(&[("NETWRIGHT_STATE", &state), ("NETWRIGHT_STORE", Path::new("off"))]);
    assert_eq!(runs(&state.join("history.sqlite"), &[]).len(), 1);
    let none = history(&folder.path().join("none"), &["list"]);
    assert_eq!(none.status.code(), Some(0), "{}", said(&none));
    assert!(!folder.path().join("none").exists(), "a look makes no file");
}

#[test]
fn no_secret_is_kept_and_hostile_words_are_shown_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("h.sqlite");
    // A name with terminal escapes, and a URL with a password: both stand in the command line.
    let tree = folder.path().join("\u{1b}[31mred\u{1b}]0;x\u{7} http://u:hunter2@w");
    let mut unpack = Command::new("tar");
    fs::create_dir_all(&tree).unwrap();
    unpack.arg("-xf").arg(host()).arg("-C").arg(&tree);
    ended(unpack);
    let mut command = Command::new(NETWRIGHT);
    let inner = fs::read_dir(&tree).unwrap().next().unwrap().unwrap().path();
    let root = if inner.join("proc").is_dir() { inner } else { tree };
    command.arg("doctor").arg("--root").arg(&root).arg("--store").arg(&store);
    ended(command);
    for args in [&["list", "-v"][..], &["show", "1", "-v"]] {
        let out = history(&store, args);
        let text = String::from_utf8(out.stdout.clone()).unwrap();
        assert_eq!(out.status.code(), Some(0), "{}", said(&out));
        assert!(!text.contains(['\u{1b}', '\u{7}']) && !text.contains("hunter2"), "{text:?}");
    }
    let document = String::from_utf8(history(&store, &["show", "1", "--json"]).stdout).unwrap();
    assert!(document.contains("http://u:***@w") && !document.contains("hunter2"), "{document}");
    let hostile = doctor(&store, &["--tag", "a\u{1b}b"]).output().unwrap();
    assert_eq!(hostile.status.code(), Some(2), "{}", said(&hostile));
}

/// The tables of version 1, as its netwright made them.
const VERSION_1: &str = "
CREATE TABLE run (id INTEGER PRIMARY KEY AUTOINCREMENT, ended_unix_ms INTEGER NOT NULL,
    host TEXT NOT NULL, host_fingerprint TEXT NOT NULL, kernel TEXT NOT NULL, netwright TEXT NOT NULL,
    command TEXT NOT NULL, kind TEXT NOT NULL, tag TEXT NOT NULL, exit_code INTEGER NOT NULL,
    headline TEXT NOT NULL, change INTEGER, document BLOB NOT NULL, facts BLOB NOT NULL) STRICT;
CREATE INDEX run_by_time ON run (ended_unix_ms);
CREATE INDEX run_by_tag ON run (tag) WHERE tag <> '';
PRAGMA application_id = 1314342985; PRAGMA user_version = 1;";

#[test]
fn an_older_schema_is_migrated_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("h.sqlite");
    let file = Connection::open(&store).unwrap();
    file.execute_batch(VERSION_1).unwrap();
    for n in 1..=3 {
        let document = zstd::encode_all(format!("{{\"n\": {n}.0}}").as_bytes(), 3).unwrap();
        let facts = zstd::encode_all(&b"{}"[..], 3).unwrap();
        let row = "INSERT INTO run VALUES (NULL, ?1, 'h', '', '6.1', '0.1.0', '[\"doctor\"]', \
                   'doctor', 'old', 0, '', NULL, ?2, ?3)";
        file.execute(row, rusqlite::params![1000 * n, document, facts]).unwrap();
    }
    drop(file);
    ended(doctor(&store, &[]));
    assert_eq!(runs(&store, &["--tag", "old"]).len(), 3);
    assert_eq!(history(&store, &["show", "2", "--json"]).stdout, b"{\"n\": 2.0}\n");
    let file = Connection::open(&store).unwrap();
    let number = |q: &str| file.query_row(q, [], |r| r.get::<_, i64>(0)).unwrap();
    assert_eq!(number("PRAGMA user_version"), 2);
    assert_eq!(number("SELECT count(DISTINCT content_id) FROM run"), 4);
    whole(&store);
}

#[test]
fn an_export_is_imported_once_and_prune_removes_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (store, other, file) = (path("h.sqlite"), path("o.sqlite"), path("runs.ndjson.gz"));
    for tag in ["a", "b", "a"] {
        ended(doctor(&store, &["--tag", tag]));
    }
    let name = file.to_str().unwrap();
    assert_eq!(history(&store, &["export", "-o", name]).status.code(), Some(0));
    for says in ["3 new of 3 runs\n", "0 new of 3 runs\n"] {
        assert_eq!(history(&other, &["import", name]).stdout, says.as_bytes());
    }
    let shown = |store: &Path, id: &str| history(store, &["show", id, "--json"]).stdout;
    assert_eq!(shown(&store, "2"), shown(&other, "2"));
    // A damaged export leaves the store as it is.
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let out = history(&other, &["import", name]);
    assert_eq!((out.status.code(), said(&out).lines().count()), (Some(4), 1), "{}", said(&out));
    let dry = history(&other, &["prune", "--tag", "a", "--keep", "1", "--dry-run"]);
    assert!(String::from_utf8(dry.stdout).unwrap().ends_with("1 run would be removed\n"));
    assert_eq!(runs(&other, &[]).len(), 3);
    let day = history(&other, &["prune", "--keep", "0", "--older-than", "1d"]);
    assert_eq!(day.stdout, b"0 runs removed\n");
    let pruned = history(&other, &["prune", "--tag", "a", "--keep", "1"]);
    assert_eq!(pruned.stdout, b"1 run removed\n", "{}", said(&pruned));
    let left: Vec<u64> = runs(&other, &[]).iter().map(|r| r["id"].as_u64().unwrap()).collect();
    assert_eq!(left, [3, 2], "the older run with the tag went");
    assert_eq!(history(&other, &["prune"]).status.code(), Some(2));
}

#[test]
fn a_difference_names_the_facts_that_changed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("h.sqlite");
    ended(doctor(&store, &[]));
    let mut second = Command::new(NETWRIGHT);
    second.args(["doctor", "--json", "--root", &host().replace("bond", "queues"), "--store"]);
    second.arg(&store);
    ended(second);
    let diff = |ids: [&str; 2]| -> Value {
        let out = history(&store, &["diff", ids[0], ids[1], "--json"]);
        assert_eq!(out.status.code(), Some(0), "{}", said(&out));
        serde_json::from_slice(&out.stdout).unwrap()
    };
    assert_eq!(diff(["1", "1"])["facts"], serde_json::json!([]));
    let facts = diff(["1", "2"])["facts"].as_array().unwrap().clone();
    let of = |name: &str| facts.iter().find(|f| f["fact"] == name);
    assert!(of("nics.bond0.kind").is_some_and(|f| f["after"].is_null()), "{facts:#?}");
    assert_eq!(history(&store, &["diff", "1", "tag:none"]).status.code(), Some(2));
}
