//! Tests of every command where the kernel refuses threads, memory, or room in a file. It works, or
//! names what was refused in one line with exit code 4; it never panics, aborts or dies by a
//! signal.

use std::{
    io::Read,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, serve::Serve};

/// A line for each command; `HERE` is a server of ours.
const COMMANDS: [&str; 18] = [
    "doctor --window 1s",
    "inspect --json",
    "snapshot --output FOLDER/s.tar.zst --force",
    "watch --plain --duration 300ms",
    "watch --json --duration 300ms --record FOLDER/r.rec --force",
    "tune plan sysctl.net.core.somaxconn=4096",
    "tune status",
    "tune profiles",
    "tune log",
    "schema doctor",
    "measure rtt HERE --duration 200ms",
    "measure stream HERE --duration 200ms --threads 2 --flows 2",
    "measure http http://127.0.0.1:9/ --duration 200ms",
    "explain rtt://HERE --duration 200ms",
    "prove --command 'echo 1' --metric x=/([0-9]+)/:higher --level a=1 --level b=2 --budget 5s",
    "fix --command 'echo 1' --metric x=/([0-9]+)/:higher --budget 20s --dry-run",
    "lab list",
    "--help",
];

/// How a command ended, and its error messages.
struct Ended {
    code: Option<i32>,
    signal: Option<i32>,
    said: String,
}

/// Runs a command after `starve` in the new process; the output goes to a file.
fn starved(line: &str, starve: impl Fn() -> std::io::Result<()> + Send + Sync + 'static) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let out = std::fs::File::create(folder.path().join("out")).unwrap();
    let line = line.replace("FOLDER", folder.path().to_str().unwrap());
    let mut command = Command::new("timeout");
    command
        .args(["60", "sh", "-c", &format!("exec {NETWRIGHT} {line}")])
        .env("NETWRIGHT_STATE", folder.path().join("state"))
        .env_remove("NETWRIGHT_SECRET")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::piped());
    // SAFETY: only system calls are made between fork and exec.
    unsafe { command.pre_exec(starve) };
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    Ended { code: status.code(), signal: status.signal(), said }
}

/// Whether it ended as it should.
fn well(ended: &Ended, line: &str, under: &str) {
    let Ended { code, signal, said } = ended;
    let at = format!("`{line}` {under}: {code:?} {signal:?}\n{said}");
    assert!(matches!(code, Some(0..=4)), "{at}");
    for word in ["panicked", "internal error", "aborted", "core dumped"] {
        assert!(!said.contains(word), "{at}");
    }
    if *code == Some(4) {
        assert!(said.contains("netwright: "), "{at}");
    }
}

fn limit(which: libc::__rlimit_resource_t, most: u64) -> std::io::Result<()> {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the limit outlives the call.
    match unsafe { libc::setrlimit(which, &raw const limit) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn commands(serve: &Serve) -> Vec<String> {
    COMMANDS.iter().map(|line| line.replace("HERE", serve.target())).collect()
}

#[test]
fn little_memory_is_reported() {
    let serve = Serve::start(&[]);
    // Each command waits more than it works: the four sizes run in parallel.
    std::thread::scope(|scope| {
        for mega in [100, 115, 130, 200] {
            let lines = commands(&serve);
            scope.spawn(move || {
                for line in lines {
                    let ended = starved(&line, move || limit(libc::RLIMIT_AS, mega << 20));
                    well(&ended, &line, &format!("with {mega} MiB of address space"));
                }
            });
        }
    });
}

#[test]
fn no_room_in_files_is_reported() {
    let serve = Serve::start(&[]);
    for line in commands(&serve) {
        let ended = starved(&line, || limit(libc::RLIMIT_FSIZE, 0));
        well(&ended, &line, "with files of no length");
        let writes = ["schema", "inspect", "--help", "tune profiles", "tune status"];
        if writes.iter().any(|w| line.starts_with(w)) {
            assert_eq!(ended.code, Some(4), "{line}: {}", ended.said);
            assert_eq!(ended.said.lines().count(), 1, "{line}: {}", ended.said);
        }
    }
}

/// Starts a starved server: it serves until it is stopped, or reports the reason in one line.
fn serves_or_tells(under: &str, starve: impl Fn() -> std::io::Result<()> + Send + Sync + 'static) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut command = Command::new(NETWRIGHT);
    command.args(["serve", "--json", "--port", "0"]).stdin(Stdio::null());
    command.stdout(std::fs::File::create(path("out")).unwrap());
    command.stderr(Stdio::piped());
    command.env("NETWRIGHT_STATE", path("state")).env_remove("NETWRIGHT_SECRET");
    // SAFETY: only system calls are made between fork and exec.
    unsafe { command.pre_exec(starve) };
    let mut child = command.spawn().unwrap();
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let address =
            serde_json::from_str::<serde_json::Value>(read("out").lines().next().unwrap_or(""));
        if let Ok(address) = address.map(|said| said["addresses"][0].as_str().unwrap().to_owned()) {
            let rtt = ["measure", "rtt", &address, "--duration", "200ms"];
            let client = Command::new(NETWRIGHT).args(rtt).output().unwrap();
            let said = String::from_utf8_lossy(&client.stderr).into_owned();
            assert!(matches!(client.status.code(), Some(0 | 4)), "{under}: {said}");
            // SAFETY: our own child, not waited for yet.
            assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
            break child.wait().unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{under}: neither");
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let served = read("out").contains("addresses");
    let ended = Ended { code: status.code(), signal: status.signal(), said };
    well(&ended, "serve", under);
    // A test takes memory: where the limit is reached just after the start, the server ends then.
    let ran_out = ended.code == Some(4) && ended.said.contains("no memory left");
    assert!(ran_out || ended.code == Some(if served { 0 } else { 4 }), "{under}: {}", ended.said);
    assert!((served && !ran_out) || ended.said.lines().count() == 1, "{under}: {}", ended.said);
}

#[test]
fn a_server_serves_or_tells_why_not() {
    for mega in [100, 115, 130, 200] {
        let starve = move || limit(libc::RLIMIT_AS, mega << 20);
        serves_or_tells(&format!("with {mega} MiB of address space"), starve);
    }
    serves_or_tells("with files of no length", || limit(libc::RLIMIT_FSIZE, 0));
    serves_or_tells("without threads", no_threads);
}

/// From here on the kernel refuses threads to this process and its children (EAGAIN, as beyond
/// `ulimit -u`, which does not limit root). Processes can still be created.
fn no_threads() -> std::io::Result<()> {
    const fn op(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt, jf, k }
    }
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const BITS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    const GIVE: u32 = libc::BPF_RET | libc::BPF_K;
    let clone3 = libc::SYS_clone3 as u32;
    let mut filter = [
        op(LOAD, 0, 0, 0),
        // clone3's flags are in memory; after ENOSYS the C library uses clone.
        op(EQUAL, 0, 1, clone3),
        op(GIVE, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        op(EQUAL, 0, 3, libc::SYS_clone as u32),
        // The lower half of the first argument.
        op(LOAD, 0, 0, 16),
        op(BITS, 0, 1, libc::CLONE_THREAD as u32),
        op(GIVE, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EAGAIN as u32),
        op(GIVE, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program outlives the calls.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER as libc::c_ulong,
                &raw const program,
            ) == 0
    };
    if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[test]
fn no_thread_is_reported() {
    let serve = Serve::start(&[]);
    let mut reported = 0;
    for line in commands(&serve) {
        let ended = starved(&line, no_threads);
        well(&ended, &line, "without threads");
        reported += usize::from(ended.said.contains("thread"));
    }
    assert!(reported >= 3, "the filter does what it is for: {reported}");
}
