//! Tests of `netwright watch` for its user: filters, recordings and their damage, use without root.
//! Other suites test its figures.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, needs_root, output, run};
use serde_json::Value;

fn netwright(args: &[&str]) -> Output {
    output(NETWRIGHT, args)
}

/// Checks the exit code and the error line; the caller checks standard output.
fn ends(args: &[&str], code: i32, says: &str) -> Output {
    let out = netwright(args);
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
    assert!(text.contains(says), "{args:?} said {text:?}, not {says:?}");
    if code > 2 {
        assert_eq!(text.lines().count(), 1, "{args:?} said more than one line: {text}");
    }
    out
}

fn intervals(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// Records three intervals; returns them as they were printed.
fn recorded(file: &str) -> Vec<Value> {
    let args = ["watch", "--json", "--interval", "150ms", "--duration", "450ms", "--record", file];
    intervals(run(NETWRIGHT, &args).as_bytes())
}

#[test]
fn a_replay_shows_what_was_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.zst").display().to_string();
    let live = recorded(&file);
    assert_eq!(live.len(), 3);
    let again = run(NETWRIGHT, &["watch", "--json", "--replay", &file]);
    assert_eq!(intervals(again.as_bytes()), live, "a recording is what was seen, all of it");
    let text = run(NETWRIGHT, &["watch", "--replay", &file]);
    assert_eq!(text.matches("watching costs").count(), 3, "{text}");
    ends(&["watch", "--record", &file, "--duration", "100ms"], 4, "--force overwrites it");
    let args = ["watch", "--json", "--record", &file, "--force", "--duration", "100ms", "--quiet"];
    assert!(netwright(&args).status.success());
    let json = run(NETWRIGHT, &["watch", "--json", "--replay", &file]);
    assert_eq!(json.lines().count(), 1, "the old one is gone");
    let args = ["watch", "--record", &file, "--force", "--duration", "100ms", "--quiet"];
    assert!(run(NETWRIGHT, &args).is_empty(), "--quiet records and shows nothing");
}

#[test]
fn a_recording_is_lines_for_everybodys_tools() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.zst").display().to_string();
    let live = recorded(&file);
    let lines = intervals(run("zstd", &["-dcq", &file]).as_bytes());
    assert_eq!(lines[0]["recording_version"], 1);
    let within: Vec<&Value> = lines.iter().skip(1).map(|l| &l["interval"]).collect();
    assert_eq!(within, live.iter().collect::<Vec<_>>());
}

#[test]
fn a_killed_recorder_loses_no_interval_that_was_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (file, shown) = (dir.path().join("r.zst"), dir.path().join("shown"));
    let name = file.display().to_string();
    let mut child = Command::new(NETWRIGHT)
        .args(["watch", "--json", "--interval", "100ms", "--record", &name])
        .stdout(fs::File::create(&shown).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    // More than one zstd frame of 16.
    while fs::read(&shown).unwrap().iter().filter(|b| **b == b'\n').count() < 18 {
        assert!(began.elapsed() < Duration::from_secs(60), "no intervals come");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = fs::read_to_string(&shown).unwrap();
    let whole = shown.lines().filter(|l| serde_json::from_str::<Value>(l).is_ok()).count();
    let out = netwright(&["watch", "--json", "--replay", &name]);
    let kept = intervals(&out.stdout);
    assert!(kept.len() >= whole, "{} of {whole} are in the recording", kept.len());
    let first: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert_eq!(kept[0], first);
}

#[test]
fn what_is_readable_of_a_damaged_recording_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    recorded(&at("good"));
    let good = fs::read(at("good")).unwrap();
    let mut counts = vec![];
    for cut in [good.len() - 1, good.len() * 3 / 4, good.len() / 2] {
        fs::write(at("cut"), &good[..cut]).unwrap();
        let out = netwright(&["watch", "--json", "--replay", &at("cut")]);
        assert_eq!(out.status.code(), Some(4), "cut at {cut}");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("cut off") || said.contains("ends within"), "{said}");
        counts.push(intervals(&out.stdout).len());
    }
    assert_eq!(counts[0], 3, "only the frame's end is missing");
    assert!(counts[1] < 3 || counts[2] < 3, "{counts:?}");
    let mut more = good.clone();
    more.extend(b"and then some text that is no frame");
    fs::write(at("more"), &more).unwrap();
    let out = ends(&["watch", "--json", "--replay", &at("more")], 4, "first 3 intervals were");
    assert_eq!(intervals(&out.stdout).len(), 3);
    // With any byte changed: an answer or one line, never a crash.
    for (i, at_byte) in (0..good.len()).step_by(good.len() / 40 + 1).enumerate() {
        let mut bad = good.clone();
        bad[at_byte] ^= 1 << (i % 8);
        fs::write(at("bad"), &bad).unwrap();
        let out = netwright(&["watch", "--json", "--replay", &at("bad")]);
        assert!(matches!(out.status.code(), Some(0 | 4)), "byte {at_byte}: {:?}", out.status);
    }
}

#[test]
fn what_is_no_recording_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let refuses = |file: &str, says: &str| {
        assert!(ends(&["watch", "--replay", file], 4, says).stdout.is_empty());
    };
    refuses(&at("missing"), "no such file or folder");
    fs::write(at("garbage"), "no recording at all, but long enough to be mistaken").unwrap();
    refuses(&at("garbage"), "not a recording");
    fs::write(at("empty"), "").unwrap();
    refuses(&at("empty"), "not a recording");
    refuses(&dir.path().display().to_string(), "it is a folder");
    let pipe = std::ffi::CString::new(at("pipe")).unwrap();
    // SAFETY: the path ends with NUL.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    refuses(&at("pipe"), "it is a pipe without a writer");
    fs::write(
        at("json"),
        "{\"recording_version\":99,\"name\":\"x\",\"kernel\":\"y\",\"cpus\":[],\"nics\":[]}\n",
    )
    .unwrap();
    run("zstd", &["-q", &at("json"), "-o", &at("later.zst")]);
    refuses(&at("later.zst"), "a later netwright");
    ends(&["watch", "--record", &at("no/such.zst"), "--duration", "100ms"], 4, "no such file");
    ends(
        &["watch", "--json", "--record", "/dev/full", "--force", "--duration", "200ms"],
        4,
        "No space",
    );
}

/// A small file that unpacks to gigabytes is refused: one endless line, or endless intervals.
#[test]
#[allow(clippy::zombie_processes, reason = "wait4 waits for it")]
fn a_bomb_is_read_in_little_memory() {
    const MOST_KIB: i64 = 256 << 10;
    let folder = tempfile::tempdir().unwrap();
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/softirq.zst");
    let text = zstd::decode_all(fs::File::open(recording).unwrap()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let (host, rest) = text.split_once('\n').unwrap();
    let interval = rest.lines().next().unwrap();
    let blanks = " ".repeat(1 << 20);
    for (name, times) in [("line", 1), ("intervals", 2_000)] {
        let path = folder.path().join(name);
        let mut z = zstd::Encoder::new(fs::File::create(&path).unwrap(), 3).unwrap();
        writeln!(z, "{host}").unwrap();
        for _ in 0..times {
            write!(z, "{interval}").unwrap();
            (0..2_000 / times).for_each(|_| z.write_all(blanks.as_bytes()).unwrap());
            writeln!(z).unwrap();
        }
        z.finish().unwrap();
        let packed = path.metadata().unwrap().len();
        assert!(packed < 1 << 20, "{packed} bytes unpack to 2 GB");
        let mut command = Command::new(NETWRIGHT);
        let replay = command.args(["watch", "--json", "--replay", path.to_str().unwrap()]);
        let child = replay.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
        // SAFETY: our own child, which no other code waits for; both outlive the call.
        let usage = unsafe {
            let pid = libc::pid_t::try_from(child.id()).unwrap();
            assert_eq!(libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()), pid);
            usage.assume_init()
        };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 4, "{name}: {status:#x}");
        assert!(usage.ru_maxrss < MOST_KIB, "{name}: {} KiB of memory", usage.ru_maxrss);
        eprintln!("{name}: {} KiB of memory, {packed} bytes", usage.ru_maxrss);
    }
}

#[test]
fn wrong_usage_is_2() {
    let file = "x.zst";
    for (args, says) in [
        (&["--replay", file, "--duration", "1s"][..], "cannot be used with"),
        (&["--replay", file, "--record", "y.zst"], "cannot be used with"),
        (&["--replay", file, "--no-bpf"], "cannot be used with"),
        (&["--replay", file, "--force"], "cannot be used with"),
        (&["--interval", "10ms"], "from 100 ms to"),
        (&["--duration", "0"], "leave --duration out to watch until Ctrl-C"),
        (&["--duration", "0s"], "leave --duration out to watch until Ctrl-C"),
        (&["--cpu", "0-"], "0-"),
        (&["--cpu", ""], "no CPU is named"),
        (&["--pid", "0"], "0 is not in"),
        (&["--plain", "--json"], "cannot be used with"),
        (&["--force"], "--record"),
    ] {
        ends(&[&["watch"], args].concat(), 2, says);
    }
}

#[test]
fn only_what_was_asked_for_is_shown_and_what_is_not_there_is_refused() {
    let one = |more: &[&str]| -> Value {
        let args = ["watch", "--json", "--no-bpf", "--interval", "100ms", "--duration", "100ms"];
        serde_json::from_str(&run(NETWRIGHT, &[&args[..], more].concat())).unwrap()
    };
    let all = one(&[]);
    assert!(!all["cpus"].as_array().unwrap().is_empty());
    let cpu0 = one(&["--cpu", "0", "--nic", "lo"]);
    let ids: Vec<_> = cpu0["cpus"].as_array().unwrap().iter().map(|c| c["id"].clone()).collect();
    assert_eq!(ids, [Value::from(0)]);
    let nics = cpu0["samples"]["nics"].as_array().unwrap();
    assert_eq!(nics.len(), 1, "{nics:?}");
    assert_eq!(nics[0]["name"], "lo");
    let number = std::process::id();
    let pid = number.to_string();
    let own = one(&["--pid", &pid]);
    let threads = own["samples"]["threads"].as_array().unwrap();
    assert!(!threads.is_empty() && threads.iter().all(|t| t["pid"] == number));
    let refused = |more: &[&str], says: &str| {
        let out = ends(&[&["watch", "--duration", "100ms"], more].concat(), 4, says);
        assert!(out.stdout.is_empty());
    };
    refused(&["--nic", "nic99"], "no NIC \"nic99\" here; there are ");
    refused(&["--cpu", "0,4097"], "no CPU 4097 is online here");
    refused(&["--pid", "4194305"], "no process has the id 4194305");
}

#[test]
fn a_full_recording_ends_and_watching_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.zst").display().to_string();
    let args = ["watch", "--json", "--no-bpf", "--interval", "100ms", "--duration", "500ms"];
    let out = netwright(&[&args[..], &["--record", &file, "--record-limit", "1"]].concat());
    assert!(out.status.success());
    assert_eq!(intervals(&out.stdout).len(), 5);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("the recording is full") && said.lines().count() == 1, "{said}");
    assert!(said.contains("not even one interval fits"), "{said}");
    let out =
        netwright(&[&args[..], &["--record", &file, "--force", "--record-limit", "8k"]].concat());
    assert!(out.status.success());
    let size = fs::metadata(&file).unwrap().len();
    assert!((1024..=8192).contains(&size), "{size} bytes, where 8192 are the limit");
    let kept = intervals(run(NETWRIGHT, &["watch", "--json", "--replay", &file]).as_bytes());
    assert_eq!(kept, intervals(&out.stdout)[..kept.len()], "what is in the file is whole");
}

#[test]
fn softirq_without_permission_names_the_option_and_the_way_on() {
    for args in [&["measure", "rtt", "127.0.0.1:9", "--softirq"][..], &["serve", "--softirq"]] {
        let out = as_nobody(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(3), "{said}");
        for part in ["--softirq: ", "CAP_BPF and CAP_PERFMON", "leave --softirq out"] {
            assert!(said.contains(part), "{part:?} is not in {said}");
        }
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_followed_process_that_ends_is_said_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.zst").display().to_string();
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id().to_string();
    let args = ["watch", "--json", "--no-bpf", "--interval", "100ms", "--record", &file];
    let mut watch = Command::new(NETWRIGHT)
        .args(args)
        .args(["--pid", &pid])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(|line| {
        let interval: Value = serde_json::from_str(&line.unwrap()).unwrap();
        interval["ended_processes"].as_array().unwrap().clone()
    });
    // The first interval is there: it is followed.
    assert!(lines.next().unwrap().is_empty());
    drop(child.stdin.take());
    child.wait().unwrap();
    let ended = lines.find(|ended| !ended.is_empty()).unwrap();
    let after: Vec<_> = lines.by_ref().take(3).flatten().collect();
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(watch.id() as libc::pid_t, libc::SIGINT) };
    let after = [after, lines.flatten().collect()].concat();
    let out = watch.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(after.is_empty(), "once is enough: {after:?}");
    let line = format!("process {pid} (cat) has ended");
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0]["pid"].to_string(), pid);
    assert_eq!((said.matches(&line).count(), said.lines().count()), (1, 1), "{said}");
    let text = run(NETWRIGHT, &["watch", "--replay", &file, "--pid", &pid]);
    assert_eq!(text.matches(&line).count(), 1, "{text}");
    ends_in(&["watch", "--replay", &file, "--pid", "4194305"]);
}

/// A replay without this process.
fn ends_in(args: &[&str]) {
    let out = ends(args, 4, "no process 4194305 in this recording");
    assert!(out.stdout.is_empty());
}

#[test]
fn the_help_of_json_is_that_of_this_command() {
    let help = run(NETWRIGHT, &["watch", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("one object a line for each interval"), "{help}");
    assert!(help.contains("netwright schema watch") && help.contains("is replaced"), "{help}");
}

#[test]
fn without_root_proc_is_shown_and_what_would_grant_the_rest() {
    let out = as_nobody(&["watch", "--interval", "200ms", "--duration", "200ms"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(text.contains("/PROC si") && text.contains("not seen"), "{text}");
    // One reason for all missing eBPF values: printed once, with what would grant it.
    assert_eq!(text.matches("CAP_BPF and CAP_PERFMON").count(), 1, "{text}");
    assert!(!text.contains("map error") && !text.contains("sched_migrate_task"), "{text}");
    let dir = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir_in("/tmp")
        .unwrap();
    let file = dir.path().join("r.zst").display().to_string();
    let live = recorded(&file);
    run("chmod", &["644", &file]);
    let out = as_nobody(&["watch", "--json", "--replay", &file]);
    assert_eq!(intervals(&out.stdout), live, "a replay needs no root");
}

/// Runs a copy of the binary as user `nobody` without capabilities and groups.
fn as_nobody(args: &[&str]) -> Output {
    use std::os::unix::process::CommandExt;
    needs_root();
    let dir = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir_in("/tmp")
        .unwrap();
    let copy = dir.path().join("netwright");
    assert!(Command::new("cp").arg(NETWRIGHT).arg(&copy).status().unwrap().success());
    let mut command = Command::new(&copy);
    command.args(args).uid(65534).gid(65534).current_dir(Path::new("/")).output().unwrap()
}

#[test]
fn the_committed_recording_is_replayed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recordings/softirq.zst")
        .display()
        .to_string();
    assert!(fs::metadata(&file).unwrap().len() < 100_000, "a recording in the repository is small");
    let all = intervals(run(NETWRIGHT, &["watch", "--json", "--replay", &file]).as_bytes());
    assert_eq!(all.len(), 10);
    let ns = |i: &Value, context: &str| -> u64 {
        let cpus = i["cpus"].as_array().unwrap();
        cpus.iter().map(|c| c["softirq_ns"][context]["net_rx"].as_u64().unwrap()).sum()
    };
    for i in &all {
        // On loopback the sender's system call does the receiver's work.
        let own = ns(i, "syscall");
        assert!(own > 10 * (ns(i, "idle") + ns(i, "ksoftirqd")), "{}", i["cpus"]);
    }
    let one = run(NETWRIGHT, &["watch", "--json", "--replay", &file, "--cpu", "1"]);
    for i in intervals(one.as_bytes()) {
        assert_eq!(i["cpus"].as_array().unwrap().len(), 1);
        assert_eq!(i["cpus"][0]["id"], 1);
    }
    ends(&["watch", "--replay", &file, "--nic", "eth9"], 4, "no NIC \"eth9\" in this recording");
    ends(&["watch", "--replay", &file, "--cpu", "5"], 4, "no CPU 5 is online in this recording");
    let text = run(NETWRIGHT, &["watch", "--replay", &file]);
    assert_eq!(text.matches("watching costs").count(), 10);
}
