//! The environment of the benchmark: a network namespace where allowed, a folder for compiled loops
//! and outputs, and unused ports.

use std::{
    cell::Cell,
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::options::Options;

/// Set by Ctrl-C and SIGTERM.
static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

pub struct Room {
    /// Compiled loops and outputs.
    pub folder: PathBuf,
    /// CPU of the client.
    pub local: usize,
    /// CPU of the server; the client's where there is only one.
    pub peer: usize,
    /// Whether the network is a namespace of this benchmark.
    pub own_network: bool,
    next_port: Cell<u16>,
    next_file: Cell<u32>,
}

/// The congestion control of new sockets.
pub const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

const PREFIX: &str = "netwright-bench-traffic-";

impl Room {
    /// Enters the environment. Must be called while there is only one thread.
    pub fn enter(options: &Options) -> io::Result<Self> {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: the handler only stores into an atomic.
            unsafe { libc::signal(signal, on_signal as *const () as libc::sighandler_t) };
        }
        let (local, peer) = two_cpus()?;
        let own_network = own_network()?;
        // SAFETY: a plain call; a child inherits it.
        if options.nice && unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } != 0 {
            return Err(named("--nice", &io::Error::last_os_error()));
        }
        sweep();
        let folder = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder)?;
        let (next_port, next_file) = (Cell::new(20_000), Cell::new(0));
        Ok(Self { folder, local, peer, own_network, next_port, next_file })
    }

    /// A port that was not used in this run; the next ten are free too.
    pub fn port(&self) -> u16 {
        let port = self.next_port.get();
        self.next_port.set(if port > 31_000 { 20_000 } else { port + 10 });
        port
    }

    /// A path for a new file.
    pub fn file(&self, what: &str) -> PathBuf {
        let n = self.next_file.get();
        self.next_file.set(n + 1);
        self.folder.join(format!("{n}-{what}"))
    }

    /// Whether a program listens on a TCP port, or has bound a UDP port.
    pub fn listens(&self, udp: bool, port: u16) -> bool {
        let (table, state) = if udp { ("udp", "07") } else { ("tcp", "0A") };
        let end = format!(":{port:04X}");
        ["", "6"].iter().any(|family| {
            let text = fs::read_to_string(format!("/proc/net/{table}{family}")).unwrap_or_default();
            text.lines().any(|line| {
                let mut words = line.split_whitespace().skip(1);
                words.next().is_some_and(|local| local.ends_with(&end))
                    && words.nth(1) == Some(state)
            })
        })
    }

    /// Waits until the loopback has carried this many more bytes.
    pub fn wait_traffic(&self, bytes: u64) -> io::Result<()> {
        let (begun, until) = (self.loopback_bytes()?, Instant::now() + Duration::from_secs(10));
        while self.loopback_bytes()? < begun + bytes {
            if Instant::now() > until {
                return Err(io::Error::other("no traffic within 10 s"));
            }
            sleep(Duration::from_millis(5))?;
        }
        Ok(())
    }

    /// Bytes that the loopback has received so far.
    pub fn loopback_bytes(&self) -> io::Result<u64> {
        let text = fs::read_to_string("/proc/net/dev")?;
        let line = text.lines().find_map(|l| l.trim_start().strip_prefix("lo:"));
        let bytes = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
        bytes.ok_or_else(|| io::Error::other("/proc/net/dev has no lo"))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Fails when Ctrl-C was pressed.
pub fn go_on() -> io::Result<()> {
    match STOP.load(Ordering::Relaxed) {
        true => Err(io::Error::new(io::ErrorKind::Interrupted, "ended by a signal")),
        false => Ok(()),
    }
}

/// Sleeps, and fails when Ctrl-C was pressed meanwhile.
pub fn sleep(time: Duration) -> io::Result<()> {
    let until = Instant::now() + time;
    loop {
        go_on()?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        // `thread::sleep` would sleep on after a signal.
        let ms = left.as_millis().clamp(1, 1000) as i32;
        // SAFETY: no descriptors; the call only sleeps.
        unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
    }
}

/// An error with what it is about.
pub fn named(what: &str, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{what}: {e}"))
}

/// The first two CPUs that this process may use.
fn two_cpus() -> io::Result<(usize, usize)> {
    // SAFETY: all-zero is an empty set, which the kernel fills.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set outlives the call and its size is given.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: only reads within the set.
    let mut allowed =
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) });
    match (allowed.next(), allowed.next()) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(io::Error::other("two CPUs are needed")),
    }
}

/// A namespace without other traffic, and with a congestion control that does not pace, as root;
/// else the host's loopback.
fn own_network() -> io::Result<bool> {
    let root = rustix::process::geteuid().is_root();
    // SAFETY: no pointer; the whole benchmark is meant to be in the new namespace.
    if !root || unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Ok(false);
    }
    up("lo")?;
    // A pacing congestion control, like BBR, would measure its timers. A namespace may only use one
    // that the host allows to everybody; Reno always is.
    let chosen = ["cubic", "reno"].into_iter().any(|name| fs::write(CONGESTION, name).is_ok());
    if chosen { Ok(true) } else { Err(io::Error::other(format!("{CONGESTION} takes no reno"))) }
}

/// Brings an interface up.
fn up(name: &str) -> io::Result<()> {
    // SAFETY: all-zero is a valid request; the name fits; the descriptor is closed.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let done = libc::ioctl(fd, libc::SIOCSIFFLAGS as _, &raw const request);
        let why = io::Error::last_os_error();
        libc::close(fd);
        if done == 0 { Ok(()) } else { Err(named("bringing lo up", &why)) }
    }
}

/// Removes the folders of killed runs.
fn sweep() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(PREFIX));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
