//! Time and memory of `netwright inspect --json` on generated hosts of 2 to 1,024 CPUs with 4,096
//! interrupts, beside three others on the same trees: `lstopo-no-graphics`, a process that only
//! reads the files that `inspect` reads, and the same program once more. With `BEFORE=FILE` or
//! `--before FILE` an older netwright takes part too.
//!
//! All run in turn as whole processes. Wall time is from before `fork` to after `wait4`; memory is
//! the child's own `rusage`. `/bin/true`, measured the same way, shows the instrument's share. A
//! ratio is of two runs of one turn.
//!
//! Exit code 1: the 512-CPU tree takes 50 ms (median) or 50 MB, or time grows faster than the cells
//! of `/proc/interrupts`. The figures need an idle machine; the load average stands above them.
//!
//! `make bench` runs it. `inspect_tree --write DIR CPUS` only writes a tree, for profiling;
//! `--sizes 2,512` and `--runs N` select. With `--virtual-time` all of it runs in a guest with one
//! CPU and a clock that counts instructions, the kernel's own included: CPU times are then the same
//! each time, whatever else this machine does. Nothing is judged there.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

#[path = "../guest.rs"]
mod guest;
mod plain;
#[path = "../tree/mod.rs"]
mod tree;

use tree::{Tree, TreeShape};

const NETWRIGHT: &str = env!("CARGO_BIN_EXE_netwright");
const WRITE: &str = "--write";
/// Nothing is judged: the clock of a guest with virtual time is not this machine's.
const UNJUDGED: &str = "--unjudged";
const JUDGED_CPUS: usize = 512;
const MOST_TIME: Duration = Duration::from_millis(50);
const MOST_BYTES: u64 = 50_000_000;
/// The size of a tree of 1,024 CPUs in a memory file system, with some reserve.
const ROOM_BYTES: u64 = 3 << 30;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("inspect_tree: {e}");
            ExitCode::from(4)
        }
    }
}

struct Options {
    sizes: Vec<usize>,
    runs: usize,
    before: Option<OsString>,
    judged: bool,
}

fn run() -> io::Result<bool> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1));
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    let number = |text: &str| text.parse::<usize>().map_err(|_| bad(text));
    if let Some(i) = args.iter().position(|a| a == WRITE) {
        let (Some(dir), Some(cpus)) = (args.get(i + 1), args.get(i + 2)) else {
            return Err(bad("--write DIR CPUS"));
        };
        let (dir, shape) = (Path::new(dir), TreeShape::of(number(cpus)?));
        Tree::generate(dir, &shape)?;
        return check(dir, &shape).map(|()| true);
    }
    if let Some(list) = value(plain::READ) {
        return plain::read(Path::new(list)).map(|()| true);
    }
    if guest::instead(NETWRIGHT, &[UNJUDGED])?.is_some() {
        return Ok(true);
    }
    let before = value("--before").map(OsString::from).or_else(|| std::env::var_os("BEFORE"));
    let sizes = value("--sizes").map_or("2,64,512,1024", String::as_str);
    let judged = !args.iter().any(|a| a == UNJUDGED);
    let options = Options {
        sizes: sizes.split(',').map(number).collect::<Result<_, _>>()?,
        runs: value("--runs").map_or(Ok(15), |n| number(n))?.max(if judged { 10 } else { 2 }),
        judged,
        before: before.filter(|file| !file.is_empty()),
    };
    measure_all(&options)
}

fn measure_all(options: &Options) -> io::Result<bool> {
    let base = base_folder();
    sweep(&base);
    let floor = runs(options.runs, &mut [&mut Command::new("true")])?;
    println!("wall time min/median, CPU time and peak memory of {} runs each", options.runs);
    println!("instrument (`true`): {}", words(&Measured::of(&floor[0])));
    println!("load average: {}", fs::read_to_string("/proc/loadavg")?.trim());
    println!();
    println!("| CPUs | program | {COLUMNS} |\n|---|---|---|---|---|");
    let mut good = true;
    let mut growth: Vec<(usize, Duration)> = Vec::new();
    for &cpus in &options.sizes {
        let ours = one_size(&base, cpus, options)?;
        growth.push((TreeShape::of(cpus).irqs * cpus, ours.median));
        if cpus == JUDGED_CPUS {
            good = ours.median < MOST_TIME && ours.peak_bytes < MOST_BYTES;
        }
    }
    println!();
    for pair in growth.windows(2) {
        let [(cells, time), (more_cells, more_time)] = pair else { continue };
        let (cells, time) =
            (*more_cells as f64 / *cells as f64, more_time.as_secs_f64() / time.as_secs_f64());
        println!("{cells:.1} times the cells take {time:.2} times as long");
        good &= time <= cells;
    }
    let word = match (options.judged, good) {
        (false, _) => "not judged by the clock of a guest",
        (true, true) => "kept",
        (true, false) => "MISSED",
    };
    println!(
        "{JUDGED_CPUS} CPUs in under {} ms and {} MB, growth no faster than the cells: {word}",
        MOST_TIME.as_millis(),
        MOST_BYTES / 1_000_000
    );
    Ok(good || !options.judged)
}

const COLUMNS: &str =
    "it | netwright's wall time by its: min / quartile / **median** / quartile / max | CPU time";

/// Prints a host's rows. Returns netwright's own times.
fn one_size(base: &Path, cpus: usize, options: &Options) -> io::Result<Measured> {
    let folder = TempTree::new(base, cpus)?;
    write(&folder.0, cpus)?;
    let inspect = |program: &OsStr| {
        let mut command = Command::new(program);
        command.args(["inspect", "--json", "--root"]).arg(&folder.0);
        command
    };
    let (mut ours, mut again) = (inspect(NETWRIGHT.as_ref()), inspect(NETWRIGHT.as_ref()));
    let list = TempTree::new(base, 0)?;
    let names = list.0.join("files");
    let files = plain::list(&folder.0, &ours, &names)?;
    let mut reads = Command::new(std::env::current_exe()?);
    reads.arg(plain::READ).arg(&names);
    let mut lstopo = Command::new("lstopo-no-graphics");
    lstopo.env("HWLOC_FSROOT", &folder.0).args(["--of", "console"]);
    let mut before = options.before.as_deref().map(inspect);
    let mut commands = vec![&mut ours, &mut again, &mut reads, &mut lstopo];
    commands.extend(before.as_mut());
    let measured = runs(options.runs, &mut commands)?;
    let plainly = format!("reads the same {files} files");
    let names = ["netwright, again", plainly.as_str(), "lstopo", "netwright before"];
    let (ours, others) = measured.split_first().ok_or_else(|| io::Error::other("no run"))?;
    println!("| {cpus} | netwright | {} | | |", words(&Measured::of(ours)));
    for (name, runs) in names.iter().zip(others) {
        let ratio = |of: fn(&Once) -> Duration| {
            let each =
                ours.iter().zip(runs).map(|(o, r)| of(o).as_secs_f64() / of(r).as_secs_f64());
            let mut each: Vec<f64> = each.collect();
            each.sort_by(f64::total_cmp);
            move |q: f64| each[((each.len() - 1) as f64 * q).round() as usize]
        };
        let (wall, cpu) = (ratio(|r| r.wall), ratio(|r| r.cpu));
        println!(
            "| {cpus} | {name} | {} | {:.2} / {:.2} / **{:.2}** / {:.2} / {:.2} | {:.2} |",
            words(&Measured::of(runs)),
            wall(0.0),
            wall(0.25),
            wall(0.5),
            wall(0.75),
            wall(1.0),
            cpu(0.5)
        );
    }
    Ok(Measured::of(ours))
}

/// Writes a tree and checks it, in another process. The kernel counts the forking process's peak
/// memory to the child, so this process must stay small.
fn write(folder: &Path, cpus: usize) -> io::Result<()> {
    let this = std::env::current_exe()?;
    let status = Command::new(this).arg(WRITE).arg(folder).arg(cpus.to_string()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("no tree to measure on")) }
}

struct Measured {
    min: Duration,
    median: Duration,
    /// User and system time of all threads, median.
    cpu: Duration,
    peak_bytes: u64,
}

fn words(m: &Measured) -> String {
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let mb = m.peak_bytes as f64 / 1e6;
    format!("{:.1}/{:.1} ms, cpu {:.1}, {mb:.1} MB", ms(m.min), ms(m.median), ms(m.cpu))
}

impl Measured {
    fn of(runs: &[Once]) -> Self {
        let sorted = |of: fn(&Once) -> Duration| {
            let mut times: Vec<Duration> = runs.iter().map(of).collect();
            times.sort();
            times
        };
        let middle = |times: &[Duration]| times.get(times.len() / 2).copied().unwrap_or_default();
        let (wall, cpu) = (sorted(|r| r.wall), sorted(|r| r.cpu));
        Self {
            min: wall.first().copied().unwrap_or_default(),
            median: middle(&wall),
            cpu: middle(&cpu),
            peak_bytes: runs.iter().map(|r| r.peak_bytes).max().unwrap_or(0),
        }
    }
}

/// Runs the commands in turn, every second time in the opposite order, after one turn that is not
/// counted.
fn runs(count: usize, commands: &mut [&mut Command]) -> io::Result<Vec<Vec<Once>>> {
    let mut all: Vec<Vec<Once>> = commands.iter().map(|_| Vec::new()).collect();
    for turn in 0..=count {
        let mut order: Vec<usize> = (0..commands.len()).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for n in order {
            let one = once(commands[n])?;
            if turn > 0 {
                all[n].push(one);
            }
        }
    }
    Ok(all)
}

struct Once {
    wall: Duration,
    cpu: Duration,
    peak_bytes: u64,
}

/// One run to its end: wall time and the child's own times and peak of resident memory.
fn once(command: &mut Command) -> io::Result<Once> {
    let start = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // SAFETY: all-zero is a valid `rusage`, which the kernel fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    // SAFETY: the pid is our child's, which no other code waits for; both pointers are valid.
    let pid = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
    let took = start.elapsed();
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if status != 0 {
        return Err(io::Error::other(format!("{command:?} ended with status {status:#x}")));
    }
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Ok(Once {
        wall: took,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak_bytes: usage.ru_maxrss as u64 * 1024,
    })
}

/// Checks that the program reads the tree: a fast answer about another host would be worthless.
fn check(root: &Path, shape: &TreeShape) -> io::Result<()> {
    let out = Command::new(NETWRIGHT).args(["inspect", "--json", "--root"]).arg(root).output()?;
    let facts: serde_json::Value = serde_json::from_slice(&out.stdout)?;
    let length = |pointer: &str| facts.pointer(pointer).and_then(|v| v.as_array()).map(Vec::len);
    let queue_irqs = facts["irqs"].as_array().map_or(0, |irqs| {
        irqs.iter().filter(|i| i["queues"].as_array().is_some_and(|q| q.len() == 2)).count()
    });
    for (what, got, want) in [
        ("CPUs", length("/cpus"), shape.cpus),
        ("nodes", length("/numa_nodes"), shape.nodes),
        ("interrupts", length("/irqs"), shape.irqs),
        ("backlogs", length("/softnet"), shape.cpus),
        ("NICs and the loopback", length("/nics"), shape.nics + 1),
        ("queues of a NIC", length("/nics/0/queues"), shape.queues * 2),
        ("interrupts of a NIC", length("/nics/0/irqs"), shape.queues + 1),
        ("interrupts of queues", Some(queue_irqs), shape.nics * shape.queues),
    ] {
        if got != Some(want) {
            let text = format!("inspect gives {got:?} {what}, the tree has {want}");
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

/// The folder of a generated tree, removed when dropped.
struct TempTree(PathBuf);

const PREFIX: &str = "netwright-bench-";

impl TempTree {
    fn new(base: &Path, cpus: usize) -> io::Result<Self> {
        let path = base.join(format!("{PREFIX}{}-{cpus}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TempTree {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.0) {
            eprintln!("inspect_tree: {} is left behind: {e}", self.0.display());
        }
    }
}

/// A memory file system where there is room, else the temporary folder.
fn base_folder() -> PathBuf {
    let shm = Path::new("/dev/shm");
    // SAFETY: all-zero is a valid `statvfs`, which the kernel fills; the path ends with a zero.
    let room = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        match libc::statvfs(c"/dev/shm".as_ptr(), &raw mut stat) {
            0 => stat.f_bavail * stat.f_frsize,
            _ => 0,
        }
    };
    if room > ROOM_BYTES { shm.to_owned() } else { std::env::temp_dir() }
}

/// Removes the folders of killed runs.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(PREFIX)?.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
