//! A link in user space: two taps, and a process between them that delays and drops frames, for
//! kernels without netem. It measures and reports its own timing error.
//!
//! Each direction is a thread with a queue of frames and their due times. A sleep ends early and
//! the rest is spun, because waking a virtual CPU takes longer than typical delays. Spinning can be
//! turned off if the hosts need the CPUs: frames are then late by the wake-up latency.

use std::{
    collections::VecDeque,
    fs,
    io::Write,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use model::Nanos;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
};
use serde::{Deserialize, Serialize};

use crate::LabError;

/// Parameters of a link, for each direction.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct LinkSpec {
    pub namespaces: [String; 2],
    /// Name of the tap in both namespaces.
    pub link: String,
    /// Number of queues of each tap.
    pub queues: u32,
    /// Added delay in each direction.
    pub delay: Nanos,
    /// Share of frames dropped in each direction, 0 to 1.
    pub loss: f64,
    /// Seed for the drops, so that a run can be repeated.
    pub seed: u64,
    /// The thread spins instead of sleeping when a frame is due within this time.
    pub spin: Nanos,
    /// File of the statistics, written each second and at the end.
    pub stats: PathBuf,
}

/// Statistics of a link, over both directions.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct LinkStats {
    /// Frames carried, by direction (first to second namespace, and back).
    pub carried: [u64; 2],
    /// Frames dropped on purpose, by direction.
    pub lost: [u64; 2],
    /// Frames dropped because more than [`MAX_FRAMES`] were in transit, by direction.
    pub overflowed: [u64; 2],
    /// Frames that the receiving tap refused (link down), by direction.
    pub refused: [u64; 2],
    /// Lateness of sent frames: median, 99th percentile, maximum; upper bounds of buckets of 1/8 of
    /// a power of two.
    pub late_ns: Lateness,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Lateness {
    pub n: u64,
    /// Median in nanoseconds; `None` before the first frame.
    pub p50: Option<u64>,
    /// 99th percentile in nanoseconds; `None` below 100 frames.
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

/// Most frames in transit in one direction: 10 ms of minimum-size frames at 1 Gbit/s.
pub const MAX_FRAMES: usize = 16_384;

/// Default of [`LinkSpec::spin`], the time that the link spins before a frame is due.
pub const SPIN: Nanos = Nanos(120_000);

/// Largest frame in bytes: a tap's largest MTU and an Ethernet header with two VLAN tags.
const LARGEST_FRAME: usize = 65_535 + 22;

const BUCKETS: usize = 64 * 8;

struct Shared {
    stop: AtomicBool,
    carried: [AtomicU64; 2],
    lost: [AtomicU64; 2],
    overflowed: [AtomicU64; 2],
    refused: [AtomicU64; 2],
    late: Vec<AtomicU64>,
    late_max: AtomicU64,
}

/// Bucket of a value: 8 linear steps within each power of two.
fn bucket(ns: u64) -> usize {
    if ns < 8 {
        return ns as usize;
    }
    let log = 63 - ns.leading_zeros() as usize;
    let step = (ns >> (log - 3)) as usize & 7;
    ((log - 2) * 8 + step).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    let (log, step) = (bucket / 8 + 2, (bucket % 8) as u64);
    ((8 + step + 1) << (log - 3)) - 1
}

impl Shared {
    fn stats(&self) -> LinkStats {
        let both =
            |a: &[AtomicU64; 2]| [a[0].load(Ordering::Relaxed), a[1].load(Ordering::Relaxed)];
        let counts: Vec<u64> = self.late.iter().map(|c| c.load(Ordering::Relaxed)).collect();
        let n: u64 = counts.iter().sum();
        let quantile = |least: u64, part: f64| {
            if n < least {
                return None;
            }
            let target = (n as f64 * part).ceil() as u64;
            let mut seen = 0;
            counts
                .iter()
                .position(|c| {
                    seen += c;
                    seen >= target
                })
                .map(upper)
        };
        LinkStats {
            carried: both(&self.carried),
            lost: both(&self.lost),
            overflowed: both(&self.overflowed),
            refused: both(&self.refused),
            late_ns: Lateness {
                n,
                p50: quantile(1, 0.5),
                p99: quantile(100, 0.99),
                max: (n > 0).then(|| self.late_max.load(Ordering::Relaxed)),
            },
        }
    }
}

/// Runs a link until `stop`: creates the taps, writes `ready` to `ready`, forwards frames.
///
/// # Errors
/// A namespace or `/dev/net/tun` cannot be used.
pub fn run(
    spec: &LinkSpec,
    stop: &'static AtomicBool,
    ready: &mut dyn Write,
) -> Result<LinkStats, LabError> {
    let mut taps = Vec::new();
    for namespace in &spec.namespaces {
        taps.push(open_taps(namespace, &spec.link, spec.queues)?);
    }
    // By default the kernel delays timers by up to 50 µs.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let zero = || [AtomicU64::new(0), AtomicU64::new(0)];
    let shared = Arc::new(Shared {
        stop: AtomicBool::new(false),
        carried: zero(),
        lost: zero(),
        overflowed: zero(),
        refused: zero(),
        late: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        late_max: AtomicU64::new(0),
    });
    let _ = writeln!(ready, "ready").and_then(|()| ready.flush());
    let (Some(right), Some(left)) = (taps.pop(), taps.pop()) else {
        return Err(LabError::failed("opening taps", "fewer than two"));
    };
    let stopping = Arc::clone(&shared);
    std::thread::scope(|scope| {
        for (direction, (from, to)) in [(&left, &right), (&right, &left)].into_iter().enumerate() {
            let shared = Arc::clone(&shared);
            let work = move || carry(spec, direction, from, to, &shared);
            if let Err(e) = std::thread::Builder::new().spawn_scoped(scope, work) {
                stopping.stop.store(true, Ordering::Relaxed);
                return Err(LabError::failed("starting a thread", e));
            }
        }
        let mut written = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
            if written.elapsed() >= Duration::from_secs(1) {
                written = Instant::now();
                let _ = save(&spec.stats, &shared.stats());
            }
        }
        shared.stop.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    let stats = shared.stats();
    let _ = save(&spec.stats, &stats);
    Ok(stats)
}

fn save(path: &Path, stats: &LinkStats) -> std::io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, serde_json::to_vec(stats)?)?;
    fs::rename(new, path)
}

/// Forwards one direction: reads frames from all queues of `from`, and writes each to `to` when
/// due.
fn carry(spec: &LinkSpec, direction: usize, from: &[OwnedFd], to: &[OwnedFd], shared: &Shared) {
    let (delay, spin) = (Duration::from_nanos(spec.delay.0), Duration::from_nanos(spec.spin.0));
    let mut random = spec
        .seed
        .wrapping_mul(2)
        .wrapping_add(direction as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        | 1;
    let mut under_way: VecDeque<(Instant, usize, Vec<u8>)> = VecDeque::new();
    let mut buffer = vec![0u8; LARGEST_FRAME];
    let mut polls: Vec<PollFd> = from.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    while !shared.stop.load(Ordering::Relaxed) {
        let wait = under_way
            .front()
            .map_or(Duration::from_millis(50), |(due, ..)| {
                due.saturating_duration_since(Instant::now())
            })
            .min(Duration::from_millis(50));
        sleep_or_readable(&mut polls, wait.saturating_sub(spin));
        for (queue, fd) in from.iter().enumerate() {
            while let Some(frame) = read_frame(fd, &mut buffer) {
                if spec.loss > 0.0 && next(&mut random) < spec.loss {
                    add(&shared.lost, direction);
                } else if under_way.len() >= MAX_FRAMES {
                    add(&shared.overflowed, direction);
                } else {
                    let due = Instant::now() + delay;
                    under_way.push_back((due, queue % to.len().max(1), frame.to_vec()));
                }
            }
        }
        while under_way.front().is_some_and(|(due, ..)| *due <= Instant::now()) {
            let Some((due, queue, frame)) = under_way.pop_front() else { break };
            let written = to.get(queue).is_some_and(|fd| write_frame(fd, &frame));
            let late = due.elapsed().as_nanos() as u64;
            add(if written { &shared.carried } else { &shared.refused }, direction);
            if let Some(b) = shared.late.get(bucket(late)) {
                b.fetch_add(1, Ordering::Relaxed);
            }
            shared.late_max.fetch_max(late, Ordering::Relaxed);
        }
    }
}

fn add(counters: &[AtomicU64; 2], direction: usize) {
    if let Some(c) = counters.get(direction) {
        c.fetch_add(1, Ordering::Relaxed);
    }
}

/// Xorshift64* (Vigna 2016, "An experimental exploration of Marsaglia's xorshift generators"),
/// 0 to 1.
fn next(state: &mut u64) -> f64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
}

fn sleep_or_readable(polls: &mut [PollFd], wait: Duration) {
    let time = Timespec { tv_sec: wait.as_secs() as _, tv_nsec: wait.subsec_nanos().into() };
    let _ = poll(polls, Some(&time));
}

fn read_frame<'b>(tap: &OwnedFd, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let n = rustix::io::read(tap, &mut *buffer).ok()?;
    buffer.get(..n).filter(|frame| !frame.is_empty())
}

fn write_frame(tap: &OwnedFd, frame: &[u8]) -> bool {
    rustix::io::write(tap, frame) == Ok(frame.len())
}

/// Creates a tap in `namespace` and opens all its queues; it vanishes with this process.
fn open_taps(namespace: &str, link: &str, queues: u32) -> Result<Vec<OwnedFd>, LabError> {
    let path = format!("/run/netns/{namespace}");
    let space =
        fs::File::open(&path).map_err(|e| LabError::failed(format!("opening {path}"), e))?;
    let link = link.to_owned();
    // A separate thread enters the namespace and ends there.
    let opening = std::thread::Builder::new().spawn(move || {
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(space.as_fd(), kind)
            .map_err(|e| LabError::failed(format!("entering {path}"), e))?;
        (0..queues).map(|_| open_tap(&link, queues > 1)).collect()
    });
    let opening = opening.map_err(|e| LabError::failed("starting a thread", e))?;
    opening.join().unwrap_or_else(|_| Err(LabError::failed("opening taps", "the thread died")))
}

fn open_tap(link: &str, multi: bool) -> Result<OwnedFd, LabError> {
    const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
    let failed = |what: &str, e: std::io::Error| {
        if e.kind() == std::io::ErrorKind::NotFound {
            return LabError::failed(
                what,
                "no /dev/net/tun: this kernel needs the tun module (CONFIG_TUN)",
            );
        }
        LabError::failed(what, e)
    };
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
        .map_err(|e| failed("opening /dev/net/tun", e.into()))?;
    // SAFETY: an all-zero request is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(link.bytes()) {
        *to = from as libc::c_char;
    }
    let multi = if multi { libc::IFF_MULTI_QUEUE } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | multi) as i16;
    // SAFETY: the request lives through the call and is of the type TUNSETIFF takes.
    if unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETIFF as _, &raw mut request) } != 0 {
        return Err(failed(&format!("making tap {link}"), std::io::Error::last_os_error()));
    }
    Ok(fd)
}

/// The same until SIGTERM or SIGQUIT.
///
/// # Errors
/// As of [`run`].
pub fn run_until_signal(spec: &LinkSpec, ready: &mut dyn Write) -> Result<LinkStats, LabError> {
    static STOP: AtomicBool = AtomicBool::new(false);
    extern "C" fn stop(_: libc::c_int) {
        STOP.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler only stores to an atomic.
    unsafe {
        libc::signal(libc::SIGTERM, stop as *const () as usize);
        libc::signal(libc::SIGQUIT, stop as *const () as usize);
    }
    run(spec, &STOP, ready)
}

/// Statistics of the lab's user-space links, one line each.
pub fn lines(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut lines: Vec<String> = entries
        .filter_map(|e| {
            let path = e.ok()?.path();
            let name = path.file_name()?.to_str()?.strip_prefix("link-")?.strip_suffix(".json")?.to_owned();
            let stats: LinkStats = model::json::read(fs::read(&path).ok()?).ok()?;
            let time = |ns: Option<u64>| ns.map_or("-".into(), |n| Nanos(n).to_string());
            let both = |[there, back]: [u64; 2]| format!("{there} and {back}");
            Some(format!(
                "link {name}, left to right and back: carried {}, lost on purpose {}, overflowed {}; its own lateness p50 {} p99 {} max {} over {} frames",
                both(stats.carried), both(stats.lost), both(stats.overflowed),
                time(stats.late_ns.p50), time(stats.late_ns.p99), time(stats.late_ns.max), stats.late_ns.n
            ))
        })
        .collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_values_and_no_other() {
        for ns in (0..4096).chain([10_000, 123_456, 99_999_999, u64::MAX / 1024]) {
            let b = bucket(ns);
            assert!(ns <= upper(b), "{ns} above its bucket {b}");
            assert!(b == 0 || ns > upper(b - 1), "{ns} fits the bucket below {b}");
        }
    }

    #[test]
    fn losses_come_at_the_rate_asked_for() {
        let mut state = 42;
        let n = 100_000;
        let lost = (0..n).filter(|_| next(&mut state) < 0.01).count() as f64;
        // Binomial: mean 1,000, standard deviation 31.5; five of them either way.
        assert!((lost - 1000.0).abs() < 158.0, "{lost} of {n}");
    }
}
