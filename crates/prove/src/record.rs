//! What was done, a line each, on disk before it counts: runs, and what is still to be undone.
//!
//! A setting is written and synced before its command runs, so that an experiment which was
//! killed is undone by the next `prove`, whatever that one is about.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{ErrorKind, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use model::prove::{FrozenHost, Run};
use serde::{Deserialize, Serialize};

use tune::{
    TuneError,
    netns::{self, NamespaceSearch},
    private,
};

use crate::{ProveError, spec::Spec};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    Begun(Box<RecordHead>),
    /// The boot of the host under which the lines after it were written.
    Boot(String),
    /// The network namespace in which commands after it ran.
    Namespace(NamespaceId),
    /// About to be set; `undo` undoes it.
    Setting {
        undo: String,
    },
    Undone {
        undo: String,
    },
    /// What is held still, or was, the last one telling.
    Held(FrozenHost),
    Run(Box<Run>),
    /// Broken off, for this reason: it may be gone on with.
    Stopped(String),
    Ended(String),
}

/// A network namespace, as [`model::tune::HostId`] names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceId {
    inode: u64,
    net_cookie: Option<u64>,
}

impl NamespaceId {
    /// That of this process.
    fn here() -> Option<Self> {
        let id = tune::Host::live().id();
        Some(Self { inode: id.net_namespace.get()?, net_cookie: id.net_cookie.get() })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordHead {
    /// Seconds since 1970.
    pub started_unix_s: u64,
    /// What it is called.
    pub name: String,
    pub spec: Spec,
    /// What the order of runs is drawn from.
    pub seed: u64,
}

/// A record as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    pub begun: RecordHead,
    pub runs: Vec<Run>,
    /// Commands that undo what is still set, the last set first.
    pub pending: Vec<String>,
    /// Why it ended, if it did.
    pub ended: Option<String>,
    /// Why it was broken off, if it said so and was not gone on with.
    pub stopped: Option<String>,
    /// Whether somebody writes it now.
    pub under_way: bool,
    /// What was held still.
    pub held: Option<FrozenHost>,
    /// The boot of the host under which it was last written.
    pub boot_id: Option<String>,
    /// The network namespace in which its commands ran last.
    pub place: Option<NamespaceId>,
}

impl Past {
    /// Whether the host was booted since.
    pub fn rebooted(&self) -> bool {
        self.boot_id.as_ref().zip(boot_id()).is_some_and(|(then, now)| *then != now)
    }

    /// Whether it was last written in another network namespace of this boot.
    pub fn is_elsewhere(&self) -> bool {
        let differs = |(then, here): (&NamespaceId, NamespaceId)| {
            let cookies = then.net_cookie.zip(here.net_cookie);
            then.inode != here.inode || cookies.is_some_and(|(a, b)| a != b)
        };
        !self.rebooted() && self.place.as_ref().zip(NamespaceId::here()).is_some_and(differs)
    }
}

/// **Source**: `/proc/sys/kernel/random/boot_id`.
fn boot_id() -> Option<String> {
    probe::Root::live().word("/proc/sys/kernel/random/boot_id").into_known()
}

/// A record that is being written, locked against a second writer.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    /// A new one; one that is there is kept beside it ([`aside`]), an empty file is taken.
    ///
    /// **Errors**: what is there is no record, somebody writes it, or the folder says no.
    pub fn create(path: &Path, begun: &RecordHead) -> Result<Self, ProveError> {
        let e = |e| ProveError::file(path, e);
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
            made.map_err(|e| ProveError::file(folder, e))?;
        }
        let mut record = match at(path)? {
            At::Empty => Self::open(path)?,
            found => {
                if found == At::Record {
                    drop(Self::open(path)?);
                    std::fs::rename(path, aside(path)).map_err(e)?;
                }
                // Its commands are run again: nobody else is to write them.
                let mut new = OpenOptions::new();
                let file = new.create_new(true).append(true).mode(0o644).open(path);
                let record = Self { path: path.to_owned(), file: file.map_err(e)? };
                record.lock()?;
                record
            }
        };
        record.write(&Entry::Begun(Box::new(begun.clone())))?;
        record.booted()?;
        // The name too outlives a loss of power, or nobody would know what is to be undone.
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            File::open(folder)
                .and_then(|f| f.sync_all())
                .map_err(|e| ProveError::file(folder, e))?;
        }
        Ok(record)
    }

    /// One that is there, to go on with.
    ///
    /// **Errors**: there is none, or somebody writes it.
    pub fn open(path: &Path) -> Result<Self, ProveError> {
        let file = OpenOptions::new().append(true).read(true).open(path);
        let file = file.map_err(|e| ProveError::file(path, e))?;
        let record = Self { path: path.to_owned(), file };
        record.lock()?;
        Ok(record)
    }

    /// One that was broken off, to go on with.
    ///
    /// **Errors**: as of [`Self::open`].
    pub fn resume(path: &Path) -> Result<Self, ProveError> {
        let mut record = Self::open(path)?;
        record.past()?;
        record.booted()?;
        Ok(record)
    }

    /// One of ours, whose commands can be run.
    ///
    /// **Errors**: it is another user's, or others may write it; somebody writes it.
    fn ours(path: &Path) -> Result<Self, ProveError> {
        let file = private::open(path, OpenOptions::new().append(true).read(true))?;
        let record = Self { path: path.to_owned(), file };
        record.lock()?;
        Ok(record)
    }

    /// What is in it. A last line that was cut off goes away, so that the next one stands alone.
    fn past(&mut self) -> Result<Past, ProveError> {
        let e = |e| ProveError::file(&self.path, e);
        let mut bytes = Vec::new();
        self.file.rewind().and_then(|()| self.file.read_to_end(&mut bytes)).map_err(e)?;
        let past = parsed(&self.path, &bytes, true)?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            self.file.set_len(whole as u64).and_then(|()| self.file.sync_data()).map_err(e)?;
        }
        Ok(past)
    }

    fn booted(&mut self) -> Result<(), ProveError> {
        boot_id().map_or(Ok(()), |id| self.write(&Entry::Boot(id)))?;
        NamespaceId::here().map_or(Ok(()), |place| self.write(&Entry::Namespace(place)))
    }

    fn lock(&self) -> Result<(), ProveError> {
        let taken = || self.file.try_lock().is_ok();
        // Who only looks has it for a moment.
        let again = || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            taken()
        };
        match taken() || (0..5).any(|_| again()) {
            true => Ok(()),
            false => Err(ProveError::Busy(format!(
                "{path}: another experiment writes it; --record FILE keeps this one's elsewhere, and \
                 `netwright prove --peek --record {path}` looks at that one",
                path = self.path.display()
            ))),
        }
    }

    fn write(&mut self, entry: &Entry) -> Result<(), ProveError> {
        let e = |e| ProveError::file(&self.path, e);
        let mut line = serde_json::to_vec(entry).map_err(|j| e(j.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).and_then(|()| self.file.sync_data()).map_err(e)
    }

    /// A setting is about to be made.
    pub(crate) fn setting(&mut self, undo: &str) -> Result<(), ProveError> {
        self.write(&Entry::Setting { undo: undo.to_owned() })
    }

    pub(crate) fn undone(&mut self, undo: &str) -> Result<(), ProveError> {
        self.write(&Entry::Undone { undo: undo.to_owned() })
    }

    pub(crate) fn run(&mut self, run: &Run) -> Result<(), ProveError> {
        self.write(&Entry::Run(Box::new(run.clone())))
    }

    /// What is held still, or was until the end.
    ///
    /// **Errors**: the file cannot be written.
    pub fn held(&mut self, held: &FrozenHost) -> Result<(), ProveError> {
        self.write(&Entry::Held(held.clone()))
    }

    /// It was broken off, and may be gone on with.
    pub(crate) fn stopped(&mut self, why: &str) -> Result<(), ProveError> {
        self.write(&Entry::Stopped(why.to_owned()))
    }

    pub(crate) fn ended(&mut self, why: &str) -> Result<(), ProveError> {
        self.write(&Entry::Ended(why.to_owned()))
    }
}

/// Whether a new record can be at this path: nothing is there, an empty file, or a record, which makes room.
///
/// **Errors**: what is there is something else, or cannot be read.
pub fn room(path: &Path) -> Result<(), ProveError> {
    at(path).map(|_| ())
}

/// What is where a record goes.
#[derive(Debug, PartialEq, Eq)]
enum At {
    Nothing,
    Empty,
    Record,
}

/// How every record begins, one too whose first line was cut off.
const HEAD: &[u8] = br#"{"begun":{"started_unix_s":"#;

fn at(path: &Path) -> Result<At, ProveError> {
    let e = |e| ProveError::file(path, e);
    let foreign = || {
        let path = path.display();
        ProveError::Spec(format!("{path}: is no record of prove: name another file"))
    };
    let found = match std::fs::metadata(path) {
        Err(none) if none.kind() == ErrorKind::NotFound => return Ok(At::Nothing),
        found => found.map_err(e)?,
    };
    // A device or a pipe is not even opened.
    if !found.is_file() {
        return Err(foreign());
    }
    let mut head = Vec::new();
    File::open(path).and_then(|f| f.take(HEAD.len() as u64).read_to_end(&mut head)).map_err(e)?;
    match head.as_slice() {
        [] => Ok(At::Empty),
        HEAD => Ok(At::Record),
        _ => Err(foreign()),
    }
}

/// The largest record that is read.
const MOST_BYTES: u64 = 1 << 30;

/// Reads a record, also one that is being written. A last line that was cut off is left out.
///
/// **Errors**: there is none, it is no record, or a line of it is damaged.
pub fn read(path: &Path) -> Result<Past, ProveError> {
    // Opening a pipe does not wait for who writes into it.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|e| ProveError::file(path, e))?;
    // Before it is read: who ends between the two is under way in the text as well.
    let under_way = is_locked(&file);
    let bytes = probe::given::read(path, MOST_BYTES).map_err(|e| ProveError::file(path, e))?;
    parsed(path, &bytes, under_way)
}

pub(crate) fn parsed(path: &Path, bytes: &[u8], under_way: bool) -> Result<Past, ProveError> {
    let no_record = || ProveError::Spec(format!("{}: is no record of prove", path.display()));
    let mut lines = bytes.split_inclusive(|b| *b == b'\n').enumerate();
    let first = lines.next().map(|(_, line)| serde_json::from_slice::<Entry>(line));
    let Some(Ok(Entry::Begun(begun))) = first else { return Err(no_record()) };
    let mut past = Past {
        begun: *begun,
        runs: vec![],
        pending: vec![],
        ended: None,
        stopped: None,
        under_way,
        held: None,
        boot_id: None,
        place: None,
    };
    for (n, line) in lines {
        let entry = match serde_json::from_slice::<Entry>(line) {
            Ok(entry) => entry,
            // Cut off, the last.
            Err(_) if !line.ends_with(b"\n") => break,
            Err(_) => {
                return Err(ProveError::Damaged(format!(
                    "{}: line {} is damaged: what that experiment left set cannot be told; its lines \
                     name the commands (\"undo\"): put right by hand what is left, then move the file away",
                    path.display(),
                    n + 1
                )));
            }
        };
        match entry {
            Entry::Begun(_) => return Err(no_record()),
            // The first line of whoever goes on with it.
            Entry::Boot(id) => (past.boot_id, past.stopped) = (Some(id), None),
            Entry::Namespace(place) => past.place = Some(place),
            Entry::Setting { undo } => past.pending.insert(0, undo),
            Entry::Undone { undo } => {
                if let Some(at) = past.pending.iter().position(|p| *p == undo) {
                    past.pending.remove(at);
                }
            }
            Entry::Held(held) => past.held = Some(held),
            Entry::Run(run) => past.runs.push(*run),
            Entry::Stopped(why) => past.stopped = Some(why),
            Entry::Ended(why) => past.ended = Some(why),
        }
    }
    Ok(past)
}

/// Where a record goes that makes room for a new one: `….before.jsonl`, or, where one there can still be
/// gone on with or is no record, `….before-2.jsonl` and so on. By its ending it stays one of those whose settings are undone.
pub fn aside(path: &Path) -> PathBuf {
    let named = |n: String| path.with_extension(format!("before{n}.jsonl"));
    let mut more = (2..).map(|n| named(format!("-{n}")));
    let first = named(String::new());
    let stays = |path: &Path| may_go_on(path) || room(path).is_err();
    match stays(&first) {
        true => more.find(|p| !stays(p)).unwrap_or(first),
        false => first,
    }
}

/// Whether a record can be gone on with: it has runs, and its experiment has not ended.
pub fn may_go_on(path: &Path) -> bool {
    read(path).is_ok_and(|past| past.ended.is_none() && !past.runs.is_empty())
}

/// Whether a record has a writer. A look takes the lock for a moment, shared with other looks.
fn is_locked(file: &File) -> bool {
    let taken = file.try_lock_shared().is_ok();
    if taken {
        let _ = file.unlock();
    }
    !taken
}

/// What became of what killed experiments left set.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Commands that were run.
    pub undone: Vec<String>,
    /// What was not undone and is nobody's who goes on, each with the reason.
    pub left: Vec<String>,
}

/// Undoes what killed experiments left set: every record of the folder that nobody writes. `own` is
/// the record of who asks, and `unsets` are the commands that undo its own settings.
///
/// **Errors**: one of these failed; it stays pending. Where another's failed, that is told and stays
/// pending as well, and is in nobody's way.
pub fn undo_killed(folder: &Path, own: &Path, unsets: &[String]) -> Result<Cleared, ProveError> {
    let failed = |e| ProveError::file(folder, e);
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Cleared::default()),
        entries => entries.map_err(failed)?,
    };
    let mut cleared = Cleared::default();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|e| e != "jsonl") || !path.is_file() {
            continue;
        }
        let is_own = path.file_name() == own.file_name();
        let past = match pending(&path) {
            Ok(Some((record, past))) => (record, past),
            Ok(None) => continue,
            Err(e @ (ProveError::Damaged(_) | ProveError::Tune(_))) if !is_own => {
                cleared.left.push(e.to_string());
                continue;
            }
            Err(e) => return Err(e),
        };
        let (mut record, past) = past;
        let place = past.place.clone().filter(|_| !past.rebooted());
        for undo in past.pending {
            match undo_at(place.as_ref(), &undo) {
                Ok(Some(gone)) => cleared.left.push(format!("`{undo}` was not run: {gone}")),
                Ok(None) => cleared.undone.push(undo.clone()),
                Err(why) => {
                    let why = format!(
                        "{why}; the experiment of {} left that set: once it is put right by hand, \
                         or there is nothing to put right, delete that file",
                        path.display()
                    );
                    if is_own || unsets.contains(&undo) {
                        return Err(ProveError::Setting(why));
                    }
                    cleared.left.push(why);
                    continue;
                }
            }
            record.undone(&undo)?;
        }
    }
    Ok(cleared)
}

/// A record that nobody writes and that has something to undo.
///
/// **Errors**: it cannot be read, is damaged, or is not ours.
fn pending(path: &Path) -> Result<Option<(Record, Past)>, ProveError> {
    let gone =
        |e: &std::io::Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
    match read(path) {
        Ok(past) if past.pending.is_empty() => return Ok(None),
        Ok(_) => {}
        // No record, or not for us to read.
        Err(ProveError::Spec(_)) => return Ok(None),
        Err(ProveError::File { source, .. }) if gone(&source) => return Ok(None),
        Err(e) => return Err(e),
    }
    let mut record = match Record::ours(path) {
        Err(ProveError::Busy(_) | ProveError::Tune(TuneError::Denied(_))) => return Ok(None),
        record => record?,
    };
    let past = record.past()?;
    Ok(Some((record, past)))
}

/// Runs a command that undoes something, in the network namespace where it was set: elsewhere the same
/// name is another device's. Why it was not run, where that namespace is gone.
fn undo_at(place: Option<&NamespaceId>, undo: &str) -> Result<Option<&'static str>, String> {
    let run = || crate::child::set(undo, crate::settings::PATIENCE);
    let elsewhere = place.filter(|place| NamespaceId::here().is_some_and(|here| here != **place));
    let Some(NamespaceId { inode, net_cookie }) = elsewhere else { return run().map(|()| None) };
    match netns::again(*inode, *net_cookie) {
        NamespaceSearch::There(namespace) => {
            netns::within(&namespace, run).map_err(|e| e.to_string())?.map(|()| None)
        }
        NamespaceSearch::Gone => Ok(Some(
            "its network namespace is gone, and what was set there with it; anything else that it \
             undoes is to be put right by hand",
        )),
        NamespaceSearch::Unknown => Err(format!(
            "`{undo}` belongs to network namespace {inode}, which is not seen from here"
        )),
    }
}

#[cfg(test)]
mod tests {
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
        assert!(!read(&path).unwrap().under_way);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let found = read(&path).unwrap();
        assert_eq!((found.begun, found.runs.len()), (begun(), 1));
        assert_eq!((found.pending, found.ended), (vec!["undo b".to_owned()], None));
        std::fs::write(&path, "hello\n").unwrap();
        assert!(read(&path).is_err());
    }

    /// A line that is lost in the middle may be the one that says what is set.
    #[test]
    fn a_damaged_line_is_told_and_a_cut_one_does_not_spoil_what_is_written_after_it() {
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

    /// What stands in a record is run: nobody else is to say it.
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
        // Of those that have ended only the last is kept.
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
        // Nor where a record goes that makes room, of which nobody was told.
        std::fs::write(at("x.before.jsonl"), "mine").unwrap();
        // An empty file is taken; a record makes room, also one whose first line was cut off.
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
        // While it is alive nothing of it is undone.
        let none = Cleared::default();
        let clear = |folder| undo_killed(folder, Path::new("own.jsonl"), &[]).unwrap();
        assert_eq!(clear(dir.path()), none);
        drop(record);
        assert_eq!(clear(dir.path()), Cleared { undone: vec![undo], left: vec![] });
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
        assert!(
            clear("other.jsonl", &["echo stuck >&2; false".into()]).is_err(),
            "the same setting"
        );
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
}
