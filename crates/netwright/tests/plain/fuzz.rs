//! Tests that every parser of outside bytes is in the list of fuzz entries and has seeds. The test
//! feeds it the seeds whole, cut and changed, the same on every run. Then it feeds random changes
//! for `NETWRIGHT_FUZZ_SECONDS` (30); `NETWRIGHT_FUZZ_SEED` selects others.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::support::{
    dice::{Dice, NUMBERS},
    parsers,
};

/// The entries that feed a source file with parsers, or why there are none.
enum Fed {
    /// These entries of the list.
    By(&'static str),
    Not(&'static str),
}
use Fed::{By, Not};

const TYPED: &str = "what the operator types, tested by examples and by properties";
const KERNEL: &str = "structures of the running kernel, of fixed size, beside it a test of each";
const WORDS: &str = "names of /proc and /sys and single numbers there, by `str::parse` alone";
const OWN: &str = "serde's reading of a document of ours: nothing is taken apart by hand";

/// All source files with parsers, or folders of them. A new one must be added here.
const READERS: &[(&str, Fed)] = &[
    ("explain/src/request.rs", Not(TYPED)),
    ("explain/src/responder.rs", Not("what this program prints in its own child")),
    ("netwright/src/commands/export/probe.rs", Not(TYPED)),
    ("netwright/src/commands/history/", Not(TYPED)),
    ("netwright/src/recorder.rs", Not("the document that this process has just made")),
    ("report/src/history/", Not("what this program kept, by the types of its documents")),
    (
        "history/src/",
        Not("what this program kept; damaged, cut, changed and foreign files are its suite's"),
    ),
    ("interop/src/iperf3/client/", By("iperf3_client")),
    ("interop/src/iperf3/flow/udp.rs", By("iperf3_datagram")),
    ("interop/src/iperf3/wire.rs", By("iperf3_client iperf3_server")),
    (
        "interop/src/qperf/local.rs",
        Not("a port of four bytes; sessions of it are mutated by their own suite"),
    ),
    ("interop/src/qperf/serve.rs", By("qperf_server")),
    ("interop/src/qperf/wire.rs", By("qperf_client qperf_server")),
    ("lab/src/agent.rs", Not("the host's orders to its own guest")),
    ("lab/src/channel.rs", By("guest_frame")),
    ("lab/src/frame.rs", By("guest_frame")),
    ("lab/src/link.rs", Not("what this program writes of its own links")),
    ("lab/src/state.rs", Not(OWN)),
    ("model/src/cpuset.rs", By("list hexmask")),
    ("model/src/json.rs", Not("serde_json reads the text; those who call it are in this list")),
    ("model/src/knob.rs", By("knob_value")),
    ("model/src/units.rs", Not(TYPED)),
    ("netwright/src/commands/lab/", Not("what this program prints in its own guest")),
    ("netwright/src/commands/measure/counts.rs", Not(TYPED)),
    ("netwright/src/commands/measure/mod.rs", Not(OWN)),
    ("netwright/src/commands/remote.rs", Not("serde's reading of lines of who may log in as root")),
    ("netwright/src/commands/schema.rs", Not("what its own build packed")),
    ("netwright/src/commands/serve/args.rs", Not(TYPED)),
    ("netwright/src/commands/watch/args.rs", Not(TYPED)),
    (
        "view/src/web/head.rs",
        Not("httparse, which is fuzzed, takes a request apart; its own tests change every byte"),
    ),
    ("probe/src/ask/echo.rs", Not("the answer to our own ICMP echo: two numbers")),
    ("probe/src/ask/ethtool/reply.rs", Not(KERNEL)),
    ("probe/src/facts/host/build.rs", By("host_file")),
    ("probe/src/perf", Not(KERNEL)),
    ("probe/src/root/archive.rs", By("archive")),
    ("probe/src/root/mod.rs", By("archive")),
    ("probe/src/root/record.rs", By("archive")),
    ("probe/src/watch/recording.rs", By("recording")),
    ("prove/src/evidence.rs", By("workload_output")),
    ("prove/src/figure.rs", By("workload_output")),
    ("prove/src/record.rs", By("experiment_record")),
    ("prove/src/spec.rs", By("experiment")),
    ("remote/src/", Not("serde's reading of lines of who may log in as root")),
    ("traffic/src/client/mod.rs", Not(TYPED)),
    ("traffic/src/control/frame.rs", By("control")),
    ("traffic/src/net/target.rs", By("target")),
    (
        "traffic/src/offload/",
        Not("pieces whose whole content is known and compared; sizes that the kernel gives"),
    ),
    ("traffic/src/rtt/exchange.rs", By("datagram")),
    ("traffic/src/serve/endpoint.rs", By("greeting")),
    ("traffic/src/stream/datagram.rs", By("datagram")),
    ("traffic/src/stream/side.rs", Not(KERNEL)),
    ("traffic/src/stream/tcp_info.rs", Not(KERNEL)),
    ("tune/src/host/", Not(KERNEL)),
    ("tune/src/journal/line.rs", By("journal")),
    ("tune/src/knobs/", By("knob_value")),
    ("tune/src/persist/record.rs", By("persisted")),
    ("tune/src/profile.rs", By("profile")),
    ("tune/src/change_request.rs", By("changes")),
    ("view/src/row_filter.rs", Not(TYPED)),
    ("workloads/src/http/request.rs", Not(TYPED)),
    ("workloads/src/http/response.rs", By("http_response")),
    ("workloads/src/http/url.rs", By("url")),
    ("workloads/src/pg/address.rs", By("pg_address")),
    ("workloads/src/pg/login.rs", By("pg_login")),
    ("workloads/src/pg/measure.rs", Not(TYPED)),
    ("workloads/src/pg/pgbench/find.rs", By("pgbench")),
    ("workloads/src/pg/pgbench/log.rs", By("pgbench")),
    ("workloads/src/pg/pgbench/reported.rs", By("pgbench")),
    ("workloads/src/pg/script/", By("pg_script")),
    ("workloads/src/pg/strings.rs", By("pg_address")),
    ("workloads/src/pg/wire.rs", By("pg_messages")),
    ("workloads/src/redis/reply.rs", By("redis_reply")),
    ("workloads/src/redis/url.rs", By("url")),
    ("probe/src/ask/owners.rs", Not(WORDS)),
    ("probe/src/facts/host/mod.rs", By("process_file")),
    ("probe/src/facts/netns.rs", Not(WORDS)),
    ("probe/src/facts/nic/queues.rs", Not(WORDS)),
    ("probe/src/facts/process/", By("process_file host_file")),
    ("probe/src/facts/sysctl/formula.rs", Not(WORDS)),
    ("probe/src/facts/tuner/irqbalance.rs", By("host_file")),
    (
        "probe/src/irqbalance.rs",
        Not("the first word of /proc/PID/syscall; its answers are parsed in `parse`"),
    ),
    ("probe/src/root/archive/", By("archive")),
    ("probe/src/samples/brief.rs", Not("the key of a table that this program has made")),
    ("probe/src/samples/threads.rs", By("process_file")),
    ("probe/src/serving.rs", By("process_file")),
    ("probe/src/serving/", By("process_file")),
    ("probe/src/snapshot/redact/", By("redacted")),
    ("probe/src/watch/exchanges/who.rs", Not(WORDS)),
    ("probe/src/watch/ipc.rs", Not(WORDS)),
    ("probe/src/watch/permission.rs", Not(WORDS)),
    ("prove/src/conclude.rs", Not("levels of an experiment that `spec.rs` has read")),
    ("prove/src/placement.rs", Not("names of CPUs that this file has made of a CPU list")),
    ("lab/src/state/removal.rs", Not("PIDs of a pid file or of a cgroup of ours")),
    ("lab/src/thread_migration.rs", Not(WORDS)),
    ("traffic/src/control/secret.rs", By("proof")),
    ("tune/src/change_request/setpci.rs", By("changes")),
    ("tune/src/change_request/several_knobs.rs", By("changes")),
    ("tune/src/cpu_attribute.rs", Not(WORDS)),
    ("tune/src/host.rs", By("kernel_file")),
    ("tune/src/journal.rs", Not("the number in the name of a journal of ours")),
    ("tune/src/knob/", By("knob_value")),
    ("tune/src/lock.rs", By("kernel_file")),
    ("tune/src/mtu_path.rs", By("kernel_file")),
    ("tune/src/persist/irq.rs", Not("a CPU list of a plan that was checked")),
    ("tune/src/persist/render.rs", Not(WORDS)),
    ("tune/src/plan.rs", By("changes")),
    ("tune/src/planner.rs", Not("the process in the name of a knob that was checked")),
    ("tune/src/privilege.rs", Not(WORDS)),
    (
        "tune/src/profile/expand.rs",
        Not("words of a sysctl and of a profile that `profile` has read"),
    ),
    ("tune/src/session.rs", By("kernel_file")),
    ("tune/src/settle.rs", By("kernel_file")),
    ("tune/src/stacked.rs", Not("values of a plan that was checked")),
    ("tune/src/target.rs", Not(TYPED)),
    ("tune/src/watchdog.rs", Not("what this program prints in its own child")),
    ("tune/src/watchdog/", Not("what this program writes to its own watchdog")),
];

/// Signs of a parser: the file makes numbers or documents of bytes, or defines such a function. In
/// crates that read from outside, any number that is read from text.
const SIGNS: [&str; 14] = [
    "serde_json::from_slice",
    "serde_json::from_str",
    "serde_json::from_reader",
    "json::read",
    "model::json::value",
    "toml::from_",
    "::from_be_bytes",
    "::from_le_bytes",
    "::from_ne_bytes",
    "Decoder::",
    "fn from_str(",
    "fn parse",
    "fn decode",
    "postgres_protocol::message::backend",
];
const SIGNS_OF_NUMBERS: [&str; 3] = [".parse()", ".parse::<", "from_str_radix"];

/// The crates that read sockets, files, the kernel or what other programs print.
const FROM_OUTSIDE: [&str; 7] =
    ["interop/", "lab/", "probe/", "prove/", "traffic/", "tune/", "workloads/"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut all: Vec<PathBuf> = read.map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

fn takes_bytes_apart(name: &str, text: &str) -> bool {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = || code.lines().filter(|l| !l.trim_start().starts_with("//"));
    let has = |signs: &[&str]| lines().any(|l| signs.iter().any(|s| l.contains(s)));
    has(&SIGNS) || FROM_OUTSIDE.iter().any(|c| name.starts_with(c)) && has(&SIGNS_OF_NUMBERS)
}

fn names() -> BTreeSet<&'static str> {
    parsers::CRATES.iter().flat_map(|(_, all)| all.iter().map(|(name, _)| *name)).collect()
}

#[test]
fn every_file_that_takes_outside_bytes_apart_is_fed_or_says_why_not() {
    let (names, mut used) = (names(), BTreeSet::new());
    assert_eq!(
        names.len(),
        parsers::CRATES.iter().map(|(_, all)| all.len()).sum::<usize>(),
        "two parsers of one name"
    );
    let mut wrong = vec![];
    for krate in entries(&crates()).iter().filter(|p| p.join("src").is_dir()) {
        // Each file of the folder is a parser; another test compares it with its list.
        if krate.ends_with("parse") {
            continue;
        }
        let mut files = vec![];
        sources(&krate.join("src"), &mut files);
        for file in files {
            let name = file.strip_prefix(crates()).unwrap().display().to_string();
            let own = ["/tests.rs", "_tests.rs", "/testing.rs", "/fuzzed.rs"];
            let own = own.iter().any(|o| name.ends_with(o)) || name.contains("/testing/");
            if own || !takes_bytes_apart(&name, &fs::read_to_string(&file).unwrap()) {
                continue;
            }
            match READERS.iter().find(|(prefix, _)| name.starts_with(prefix)) {
                Some((prefix, _)) => drop(used.insert(*prefix)),
                None => wrong.push(format!("{name}: takes bytes apart; list it in READERS")),
            }
        }
    }
    for (prefix, fed) in READERS {
        match fed {
            _ if !used.contains(prefix) => wrong.push(format!("{prefix}: no such file is left")),
            By(by) => wrong.extend(
                by.split(' ')
                    .filter(|b| !names.contains(b))
                    .map(|b| format!("{prefix}: there is no parser {b}")),
            ),
            Not(why) => assert!(!why.is_empty()),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The seeds of every parser. Fails where one has none, or where a folder belongs to no parser.
fn seeds() -> BTreeMap<&'static str, Vec<(PathBuf, Vec<u8>)>> {
    let mut all = BTreeMap::new();
    for (krate, list) in parsers::CRATES {
        let folder = crates().join(krate).join("tests/seeds");
        let there: BTreeSet<String> = entries(&folder)
            .iter()
            .map(|p| p.file_name().unwrap().to_str().unwrap().into())
            .collect();
        let named: BTreeSet<String> = list.iter().map(|(n, _)| (*n).to_owned()).collect();
        assert_eq!(there, named, "folders of {} against the list", folder.display());
        for (name, _) in *list {
            let of: Vec<_> = entries(&folder.join(name))
                .into_iter()
                .map(|p| (p.clone(), fs::read(p).unwrap()))
                .collect();
            assert!(!of.is_empty(), "{krate}/{name} has no seed");
            all.insert(*name, of);
        }
    }
    all
}

/// Parsers that take a millisecond or more per input: fewer changes of each seed.
const SLOW: [&str; 8] = [
    "archive",
    "changes",
    "host_file",
    "kernel_file",
    "knob_value",
    "process_file",
    "recording",
    "redacted",
];

/// The time limit of an input, also on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

fn feed(name: &str, parser: fn(&[u8]), bytes: &[u8], from: &Path) {
    let begun = Instant::now();
    let survived = catch_unwind(AssertUnwindSafe(|| parser(bytes))).is_ok();
    assert!(
        survived && begun.elapsed() < LONGEST,
        "{name}: {} by {} bytes, of the seed {}; as a new seed: printf '{}' > FILE",
        if survived { "took too long" } else { "panicked" },
        bytes.len(),
        from.display(),
        bytes.iter().map(|b| format!("\\x{b:02x}")).collect::<String>()
    );
}

/// Positions to change: all of a short seed, this many of a long one.
fn positions(name: &str, len: usize) -> impl Iterator<Item = usize> {
    let most = if SLOW.contains(&name) { 30 } else { 300 };
    (0..len).step_by(len.div_ceil(most).max(1))
}

/// Runs a function on every parser, with as many threads as there are CPUs.
fn each(work: impl Fn(&'static str, fn(&[u8]), &[(PathBuf, Vec<u8>)]) + Sync) {
    let all: Vec<parsers::Parser> =
        parsers::CRATES.iter().flat_map(|(_, l)| l.iter().copied()).collect();
    let (seeds, next) = (seeds(), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for _ in 0..threads_at_once() {
            threads.spawn(|| {
                while let Some((name, parser)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(name, *parser, &seeds[name]);
                }
            });
        }
    });
}

fn threads_at_once() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn no_seed_breaks_its_parser_whole_cut_or_changed() {
    each(|name, parser, seeds| {
        for (path, seed) in seeds {
            let mut bytes = seed.clone();
            feed(name, parser, &bytes, path);
            for end in positions(name, bytes.len()) {
                feed(name, parser, &bytes[..end], path);
            }
            for i in positions(name, bytes.len()) {
                for new in [0x00, 0xff, b'9', b' ', b'\n', b':', b'-'] {
                    let old = std::mem::replace(&mut bytes[i], new);
                    feed(name, parser, &bytes, path);
                    bytes[i] = old;
                }
            }
        }
    });
}

/// One change of a seed.
fn change(bytes: &mut Vec<u8>, seeds: &[(PathBuf, Vec<u8>)], dice: &mut Dice) {
    let at = dice.roll(bytes.len() + 1);
    match dice.roll(9) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.roll(8);
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = *dice
                    .of(&[0, 1, 0x7f, 0x80, 0xff, b'\n', b' ', b'"', b'\'', b'\\', b'=', b'-']);
            }
        }
        3 => bytes.truncate(at),
        4 => {
            let end = (at + dice.roll(40)).min(bytes.len());
            bytes.drain(at..end);
        }
        5 => {
            let end = (at + dice.roll(200)).min(bytes.len());
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        6 => {
            let other = &dice.of(seeds).1;
            let from = dice.roll(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        // A number of its text, or four bytes of it.
        7 => {
            let starts: Vec<usize> = (0..bytes.len())
                .filter(|i| {
                    bytes[*i].is_ascii_digit() && (*i == 0 || !bytes[i - 1].is_ascii_digit())
                })
                .collect();
            if starts.is_empty() {
                return;
            }
            let at = *dice.of(&starts);
            let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
            bytes.splice(at..at + digits, dice.of(&NUMBERS).bytes());
        }
        _ => {
            let n = *dice.of(&[0u32, 1, 4, 255, 65_536, 1 << 31, u32::MAX]);
            let n = if dice.roll(2) == 0 { n.to_be_bytes() } else { n.to_le_bytes() };
            if let Some(field) = bytes.get_mut(at..at + 4) {
                field.copy_from_slice(&n);
            }
        }
    }
    bytes.truncate(1 << 16);
}

#[test]
fn no_change_of_a_seed_breaks_its_parser() {
    let number = |name| std::env::var(name).ok().map(|n| n.parse::<u64>().expect("a number"));
    let seed = number("NETWRIGHT_FUZZ_SEED").unwrap_or(1);
    let seconds = number("NETWRIGHT_FUZZ_SECONDS").unwrap_or(30);
    let count = names().len() as u64;
    let each_ms = seconds * 1000 * threads_at_once() as u64 / count;
    println!("NETWRIGHT_FUZZ_SEED={seed}, {each_ms} ms for each of {count} parsers");
    each(|name, parser, seeds| {
        let (begun, mut inputs) = (Instant::now(), 0u64);
        while inputs == 0 || begun.elapsed() < Duration::from_millis(each_ms) {
            let mut dice = Dice(seed.wrapping_add(inputs).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let (path, from) = dice.of(seeds);
            let mut bytes = from.clone();
            for _ in 0..=dice.roll(5) {
                change(&mut bytes, seeds, &mut dice);
            }
            feed(name, parser, &bytes, path);
            inputs += 1;
        }
        println!("{name}: {inputs} inputs");
    });
}

#[test]
fn archives_among_the_seeds_are_read() {
    let valid = seeds()["archive"]
        .iter()
        .filter(|(_, b)| {
            probe::Root::read_archive(&b[1..], &probe::root::Limits::default()).is_ok()
        })
        .count();
    assert!(valid >= 3, "{valid} of them");
}
