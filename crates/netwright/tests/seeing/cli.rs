//! Tests of the command line: help, exit codes, refusals, pipes, terminals, signals, and use
//! without root.

#[path = "../../src/exit.rs"]
#[allow(dead_code, reason = "only the panic hook is tried here")]
mod exit;
mod terminal;

use std::{
    fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, needs_root, output, run};

fn netwright(args: &[&str]) -> Output {
    output(NETWRIGHT, args)
}

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Checks the exit code, one line on standard error with this text, and an empty standard output.
fn refuses(args: &[&str], code: i32, says: &str) {
    let out = netwright(args);
    let text = stderr(&out);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
    assert!(text.contains(says), "{args:?} said {text:?}, not {says:?}");
    assert!(out.stdout.is_empty(), "{args:?} printed an answer");
    if code > 2 {
        assert_eq!(text.lines().count(), 1, "{args:?} said more than one line: {text}");
    }
}

#[test]
fn help_has_examples_and_exit_codes_and_fits_80_columns_where_it_can() {
    for args in [
        &["--help"][..],
        &["inspect", "--help"],
        &["doctor", "--help"],
        &["snapshot", "--help"],
        &["schema", "--help"],
        &["watch", "--help"],
    ] {
        let text = run(NETWRIGHT, args);
        let examples = text.split("Examples:\n").nth(1).expect("there are examples");
        // The first example may have a comment above it.
        let first = examples.lines().find(|l| !l.starts_with("  # "));
        assert!(first.is_some_and(|l| l.starts_with("  netwright ")), "{args:?}: {first:?}");
        assert!(text.contains("Exit codes:\n  0  done"), "{args:?}");
    }
    assert_eq!(
        run(NETWRIGHT, &["--version"]),
        concat!("netwright ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn help_explains_topics_and_commands() {
    let units = run(NETWRIGHT, &["help", "units"]);
    assert!(units.starts_with("Units: "), "{units}");
    assert_eq!(run(NETWRIGHT, &["help"]), run(NETWRIGHT, &["--help"]));
    for words in [&["doctor"][..], &["tune", "plan"], &["help"]] {
        let asked = run(NETWRIGHT, &[&["help"], words].concat());
        assert_eq!(asked, run(NETWRIGHT, &[words, &["--help"]].concat()), "{words:?}");
    }
}

#[test]
fn wrong_usage_is_2_with_what_to_write_instead() {
    for args in [&["doctor", "--no-such"][..], &["tune", "plan", "a=b"], &["doctor", "--pid", "x"]]
    {
        let said = stderr(&netwright(args));
        assert!(said.starts_with("netwright: ") && !said.contains("error:"), "{args:?}: {said}");
    }
    refuses(&[], 2, "\nType next:\n");
    refuses(&["tune"], 2, "Usage: netwright tune <COMMAND>");
    refuses(&["help", "frob"], 2, "topics: units, exit-codes, missing-values, secrets, placement");
    refuses(&["help", "tune", "frob"], 2, "no command is named \"tune frob\"");
    refuses(&["frobnicate"], 2, "unrecognized subcommand");
    refuses(&["inspect", "--frob"], 2, "unexpected argument");
    refuses(&["inspect", "numo"], 2, "numa");
    refuses(&["doctor", "--window", "5 parsecs"], 2, "units are ns");
    refuses(&["doctor", "--window", "50ms"], 2, "out of range: 100ms to 10m");
    refuses(&["doctor", "--window", "11m"], 2, "out of range: 100ms to 10m");
    refuses(&["doctor", "--window", "1s", "--root", "/tmp"], 2, "Leave out one of");
    refuses(&["doctor", "--fail-on", "bad"], 2, "critical");
    refuses(&["doctor", "--for", "fun"], 2, "latency");
    refuses(&["inspect", "--pid", "0"], 2, "0 is not in 1");
    refuses(&["inspect", "--port", "70000"], 2, "70000 is not in 1..=65535");
    refuses(&["inspect", "--json", "cpus"], 2, "cannot be used with");
    refuses(&["inspect", "--quiet", "--verbose"], 2, "cannot be used with");
    refuses(&["inspect", "--json", "--picture", "-"], 2, "give one of them a file");
    refuses(&["inspect", "--root", "/"], 2, "leave --root out");
    refuses(&["snapshot", "-o", "-"], 2, "not to a pipe");
    refuses(&["snapshot", "-o", "/tmp/x.tar.zst", "--window", "3 s s"], 2, "units are ns");
}

#[test]
fn what_the_environment_refuses_is_4_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let empty = dir.path().display().to_string();
    refuses(&["inspect", "--root", &at("missing")], 4, "missing: no such file or folder");
    refuses(&["doctor", "--root", &empty], 4, "nothing of a host in it");
    fs::write(at("garbage"), b"this is no snapshot, but it is long enough to be mistaken for one")
        .unwrap();
    refuses(&["inspect", "--json", "--root", &at("garbage")], 4, "not a usable snapshot");
    let pipe = std::ffi::CString::new(at("pipe")).unwrap();
    // SAFETY: the path ends with NUL.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    refuses(&["inspect", "--root", &at("pipe")], 4, "neither a file nor a folder");
    fs::write(at("cut.tar.zst"), [0x28, 0xb5, 0x2f, 0xfd, 0x04]).unwrap();
    refuses(&["doctor", "--root", &at("cut.tar.zst")], 4, "not a usable snapshot");
    fs::write(at("nothing"), b"").unwrap();
    refuses(&["inspect", "--root", &at("nothing")], 4, "nothing");
    refuses(&["inspect", "--nic", "nic99"], 4, "no NIC \"nic99\" here; there are ");
    refuses(&["inspect", "--pid", "4194305"], 4, "no process has the id 4194305");
    refuses(&["doctor", "--name", "no-such-program"], 4, "no process is named no-such-program");
    refuses(&["inspect", "--output", &at("no/such/folder")], 4, "no such file or folder");
    refuses(&["doctor", "--output", &empty], 4, "is a folder");
    refuses(&["inspect", "--picture", &at("no/such.svg")], 4, "no such file or folder");
    refuses(&["snapshot", "-o", &at("garbage"), "--window", "100ms"], 4, "--force");
    refuses(&["snapshot", "-o", &at("no/such.tar.zst")], 4, "no such file or folder");
    refuses(&["snapshot", "-o", &at("new"), "--name", "no-such-program"], 4, "no process is named");
    assert!(!Path::new(&at("new")).exists(), "a refused snapshot leaves nothing behind");
    refuses(&["inspect", "--json", "--output", "/dev/full"], 4, "No space left");
}

#[test]
fn what_is_not_permitted_is_3() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    let path = secret.path().display().to_string();
    let out = as_nobody(&["inspect", "--root", &path]);
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(stderr(&out).contains("not permitted"));
    let out = as_nobody(&["inspect", "--output", "/etc/netwright-test"]);
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
}

#[test]
fn findings_at_or_above_fail_on_are_1() {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let file = dir.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    put("proc/sys/kernel/osrelease", "6.12.0\n");
    put("proc/sys/net/ipv4/tcp_sack", "0\n");
    put("proc/sys/net/ipv4/tcp_timestamps", "1\n");
    let root = dir.path().display().to_string();
    let out = netwright(&["doctor", "--json", "--root", &root]);
    assert_eq!(out.status.code(), Some(0), "without --fail-on a finding is no failure");
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(document["findings"][0]["rule"], "sack_timestamps_off", "{document:#}");
    assert_eq!(document["source"]["kind"], "tree");
    assert!(document["window_ns"]["absent"].is_string(), "a tree has no window");
    let severity = document["findings"][0]["severity"].as_str().unwrap().to_owned();
    for (fail_on, code) in [("info", 1), (severity.as_str(), 1), ("critical", 0)] {
        let out = netwright(&["doctor", "--root", &root, "--fail-on", fail_on]);
        assert_eq!(out.status.code(), Some(code), "--fail-on {fail_on} at {severity}");
        assert!(!out.stdout.is_empty(), "the report is printed all the same");
    }
    fs::write(dir.path().join("proc/sys/net/ipv4/tcp_sack"), "1\n").unwrap();
    let out = netwright(&["doctor", "--root", &root, "--fail-on", "warning"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for args in [
        &["inspect", "--json"][..],
        &["inspect"],
        &["doctor", "--window", "100ms"],
        &["schema", "inspect"],
        &["--help"],
    ] {
        let mut child = Command::new(NETWRIGHT)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{args:?}");
        assert!(out.stderr.is_empty(), "{args:?} said {}", stderr(&out));
    }
}

#[test]
fn answers_go_to_a_file_or_a_picture() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let out = netwright(&["inspect", "--json", "--output", &at("facts.json")]);
    assert!(out.status.success() && out.stdout.is_empty());
    let facts: serde_json::Value =
        serde_json::from_slice(&fs::read(at("facts.json")).unwrap()).unwrap();
    assert_eq!(facts["schema_version"], 1);
    let out = netwright(&["inspect", "--json", "--picture", &at("host.svg")]);
    assert!(serde_json::from_slice::<serde_json::Value>(&out.stdout).is_ok());
    let svg = fs::read_to_string(at("host.svg")).unwrap();
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    for cpu in facts["cpus"].as_array().unwrap() {
        let id = &cpu["id"];
        assert!(svg.contains(&format!("<title>CPU {id}")), "CPU {id} is not in the picture");
    }
    let out = netwright(&["inspect", "--picture", "-"]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), svg, "the same picture, to standard output");
}

#[test]
fn one_nic_and_sections_show_only_what_was_asked() {
    let facts: serde_json::Value =
        serde_json::from_str(&run(NETWRIGHT, &["inspect", "--json", "--nic", "lo"])).unwrap();
    assert_eq!(facts["nics"].as_array().unwrap().len(), 1);
    let sections = [
        ("cpus", "CPUS\n"),
        ("numa", "NUMA NODES\n"),
        ("irqs", "INTERRUPTS\n"),
        ("softnet", "SOFTNET"),
        ("sysctls", "KERNEL SETTINGS\n"),
        ("tuners", "ALSO TUNING"),
        ("processes", "PROCESSES\n"),
        ("listeners", "LISTENING"),
        ("storage", "STORAGE"),
        ("namespaces", "NETWORK NAMESPACES\n"),
        ("host", "HOST\n"),
    ];
    for (section, heading) in sections {
        let text = run(NETWRIGHT, &["inspect", section]);
        assert!(text.starts_with(heading), "{section}: {text}");
    }
    let text = run(NETWRIGHT, &["inspect", "--nic", "lo"]);
    assert!(text.starts_with("lo"), "{text}");
}

#[test]
fn without_root_it_works_and_names_what_root_would_add() {
    let out = as_nobody(&["inspect", "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let facts: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(facts["host"]["reader"]["euid"], 65534);
    assert!(!facts["cpus"].as_array().unwrap().is_empty());
    let no_access = facts["no_access"].to_string();
    assert!(no_access.contains("CAP_"), "no capability is named: {no_access}");
    let out = as_nobody(&["doctor", "--window", "200ms"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(text.contains("· user 65534 ·"), "{text}");
    assert!(text.contains("NOT CHECKED") && text.contains("CAP_"), "{text}");
}

#[test]
fn ctrl_c_ends_the_window_early_and_what_was_seen_is_judged() {
    let child = Command::new(NETWRIGHT)
        .args(["doctor", "--json", "--window", "60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_it_listens(&child);
    // The eBPF programs are attached before the window begins, which takes time.
    std::thread::sleep(Duration::from_millis(2000));
    let began = Instant::now();
    interrupt(&child);
    let out = child.wait_with_output().unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "took {:?}", began.elapsed());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stderr(&out).contains("interrupted"), "{}", stderr(&out));
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(document["window"]["interrupted"], true);
    let window = document["window_ns"].as_u64().unwrap();
    assert!((20_000_000..20_000_000_000).contains(&window), "{window} ns");
}

#[test]
fn a_snapshot_answers_as_the_live_host_did() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("host.tar.zst").display().to_string();
    let said = run(NETWRIGHT, &["snapshot", "-o", &file, "--window", "200ms"]);
    assert!(said.starts_with(&format!("wrote {file}: ")), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("2 readings of the counters"), "{said}");
    let json = |args: &[&str]| -> serde_json::Value {
        serde_json::from_str(&run(NETWRIGHT, args)).unwrap()
    };
    let (live, snap) =
        (json(&["inspect", "--json"]), json(&["inspect", "--json", "--root", &file]));
    for key in
        ["schema_version", "cpus", "caches", "idle_states", "numa_nodes", "tuners", "storage"]
    {
        // Free memory and current frequencies change while one looks.
        let still = |v: &serde_json::Value| {
            let mut v = v[key].clone();
            for item in v.as_array_mut().into_iter().flatten() {
                for moving in ["memory_free_bytes", "frequency"] {
                    item.as_object_mut().map(|o| o.remove(moving));
                }
            }
            v
        };
        assert_eq!(still(&live), still(&snap), "{key}");
    }
    for (a, b) in live["nics"].as_array().unwrap().iter().zip(snap["nics"].as_array().unwrap()) {
        for key in ["name", "driver", "channels", "rings", "features", "queues", "irqs", "rss"] {
            assert_eq!(a[key], b[key], "{}'s {key}", a["name"]);
        }
    }
    let document = json(&["doctor", "--json", "--root", &file]);
    assert_eq!(document["source"]["kind"], "snapshot");
    assert!(document["window_ns"].as_u64().unwrap() >= 200_000_000);
    let out = netwright(&["snapshot", "--force", "--redact", "-o", &file, "--window", "100ms"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains(", redacted"), "{}", stderr(&out));
    let redacted = json(&["doctor", "--json", "--root", &file]);
    assert_eq!(redacted["source"]["redacted"], true);
    let name = live["host"]["name"].as_str().unwrap();
    assert_ne!(redacted["host"]["name"], name);
    let missing = netwright(&["inspect", "--root", &file, "--pid", "4194305"]);
    assert_eq!(missing.status.code(), Some(4));
}

/// Waits until SIGINT (2) is in the set of caught signals: before that it ends the process.
fn wait_until_it_listens(child: &Child) {
    let path = format!("/proc/{}/status", child.id());
    let began = Instant::now();
    loop {
        let status = fs::read_to_string(&path).unwrap();
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:\t")).unwrap();
        if u64::from_str_radix(caught, 16).unwrap() >> 1 & 1 == 1 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "it never listens for Ctrl-C");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn interrupt(child: &Child) {
    // SAFETY: our own child, not yet waited for.
    unsafe {
        libc::kill(child.id() as libc::pid_t, libc::SIGINT);
    }
}

/// Runs a copy of the binary as user `nobody` without capabilities and groups.
fn as_nobody(args: &[&str]) -> Output {
    needs_root();
    let dir = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir_in("/tmp")
        .unwrap();
    let copy = dir.path().join("netwright");
    // Copied by another process: a child of another test could inherit a descriptor open for
    // writing, and the copy would be "busy".
    let copied = Command::new("cp").arg(NETWRIGHT).arg(&copy).status().unwrap();
    assert!(copied.success());
    let mut command = Command::new(&copy);
    // The standard library also drops the groups when root changes the user.
    command.args(args).uid(65534).gid(65534).current_dir(Path::new("/")).output().unwrap()
}

#[test]
fn a_panic_is_one_line_and_exit_code_5() {
    const INNER: &str = "NETWRIGHT_TEST_PANICS";
    if std::env::var_os(INNER).is_some() {
        exit::on_panic();
        panic!("of\ntwo lines");
    }
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cli::a_panic_is_one_line_and_exit_code_5", "--nocapture"])
        .env(INNER, "1")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(5));
    let text = stderr(&out);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("of two lines") && text.contains("This is an internal error"), "{text}");
}

#[test]
fn inspect_with_v_shows_every_section() {
    let (brief, full) = (run(NETWRIGHT, &["inspect"]), run(NETWRIGHT, &["inspect", "-v"]));
    for section in ["SOFTNET, SINCE BOOT", "LISTENING TCP SOCKETS", "STORAGE CONTROLLERS"] {
        assert!(full.contains(section) && !brief.contains(section), "{section}: {full}");
    }
}

/// A file that cannot be opened for lack of descriptors is not "missing".
#[test]
fn few_descriptors_are_no_host_without_nics() {
    for args in [&["inspect"][..], &["inspect", "--json"], &["doctor", "--window", "1s"]] {
        let mut command = Command::new(NETWRIGHT);
        command.args(args);
        // A descriptor that another test's thread has open just now would be one too few.
        // SAFETY: both calls are async-signal-safe, and hold for the child alone.
        unsafe {
            command.pre_exec(|| {
                libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
                let limit = libc::rlimit { rlim_cur: 4, rlim_max: 4 };
                match libc::setrlimit(libc::RLIMIT_NOFILE, &limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let out = command.output().unwrap();
        let text = stderr(&out);
        assert_eq!(out.status.code(), Some(4), "{args:?}: {text}");
        assert!(text.contains("EMFILE"), "{args:?}: {text}");
        assert!(out.stdout.is_empty(), "{args:?} printed an answer");
    }
}

/// A malicious tree does not take minutes.
#[test]
fn a_bomb_of_interfaces_is_refused_at_once() {
    let tree = tempfile::tempdir().unwrap();
    let net = tree.path().join("sys/class/net");
    fs::create_dir_all(&net).unwrap();
    for n in 0..=20_000 {
        std::os::unix::fs::symlink("nowhere", net.join(format!("eth{n}"))).unwrap();
    }
    let started = Instant::now();
    refuses(&["inspect", "--root", tree.path().to_str().unwrap()], 4, "more than 20000 interfaces");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}
