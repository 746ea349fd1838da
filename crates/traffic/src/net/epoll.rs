//! An epoll for many sockets of one thread: each is registered once; only a full socket is
//! modified.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

use model::{
    Warning,
    measure::{SPIN_NS, Wait},
};
use rustix::event::epoll::{self, CreateFlags};

use super::{now_ns, options::BUSY_POLL_US};

/// Most sockets returned by one call.
const EVENTS: usize = 512;

/// How `epoll_wait` polls the queue of its sockets. **Source**: `struct epoll_params`,
/// include/uapi/linux/eventpoll.h.
#[repr(C)]
struct BusyPoll {
    microseconds: u32,
    /// Packets of one poll; more than 64 need `CAP_NET_ADMIN`.
    budget: u16,
    /// Interrupts stay off between two polls, where the NAPI defers or suspends them.
    prefer: u8,
    padding: u8,
}

/// `EPIOCSPARAMS`: sets the busy polling of an epoll instance (Linux 6.9).
const SET_BUSY_POLL: libc::Ioctl = libc::_IOW::<BusyPoll>(0x8a, 1);

/// An epoll instance and its event buffer.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
    /// Whether the kernel has `epoll_pwait2` (5.11), for waits below a millisecond.
    fine: bool,
}

/// A socket with an event.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    /// The key it was registered with.
    pub key: usize,
    /// It has room to send (requested with [`Epoll::want`]).
    pub writable: bool,
    /// It has bytes, or has ended.
    pub readable: bool,
    /// It has failed, or has ended in both directions.
    pub broken: bool,
    /// The other end sends no more.
    pub ended: bool,
}

impl Epoll {
    /// A new instance.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Self> {
        let fd = epoll::create(CreateFlags::CLOEXEC)?;
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        Ok(Self { fd, events, ready: 0, fine: true })
    }

    /// For [`Wait::BusyPoll`] makes the waits poll the NIC's queue; without this call they do so
    /// only where `net.core.busy_poll` is set. Returns a warning if the kernel cannot. Since 6.9.
    pub fn busy_poll(&self, wait: Wait) -> Option<Warning> {
        if wait != Wait::BusyPoll {
            return None;
        }
        let how = BusyPoll { microseconds: BUSY_POLL_US as u32, budget: 64, prefer: 1, padding: 0 };
        // SAFETY: the kernel reads the structure during the call; the descriptor is open.
        if unsafe { libc::ioctl(self.fd.as_raw_fd(), SET_BUSY_POLL, &raw const how) } == 0 {
            return None;
        }
        let why = match io::Error::last_os_error() {
            e if e.raw_os_error() == Some(libc::ENOTTY) => {
                let set = probe::Root::live().read("/proc/sys/net/core/busy_poll");
                if set.is_ok_and(|text| text.trim_ascii() != b"0") {
                    return None;
                }
                "of many flows only since Linux 6.9, or with net.core.busy_poll".into()
            }
            e => format!("EPIOCSPARAMS: {e}"),
        };
        Some(Warning::NoBusyPoll { why })
    }

    fn control(&self, what: i32, fd: RawFd, key: usize, write: bool) -> io::Result<()> {
        let events = libc::EPOLLIN | libc::EPOLLRDHUP | if write { libc::EPOLLOUT } else { 0 };
        self.register(what, fd, key, events)
    }

    fn register(&self, what: i32, fd: RawFd, key: usize, events: i32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: key as u64 };
        // SAFETY: the event outlives the call.
        match unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), what, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Watches a socket for bytes, until removed.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn add(&self, fd: RawFd, key: usize) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, key, false)
    }

    /// Watches a socket edge-triggered: each change is reported once (connected, bytes, room, end).
    /// The caller must then read all bytes.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn add_once(&self, fd: RawFd, key: usize) -> io::Result<()> {
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        self.register(libc::EPOLL_CTL_ADD, fd, key, events)
    }

    /// Watches a listening socket that other threads watch too; each event wakes one of them.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn add_shared(&self, fd: RawFd, key: usize) -> io::Result<()> {
        self.register(libc::EPOLL_CTL_ADD, fd, key, libc::EPOLLIN | libc::EPOLLEXCLUSIVE)
    }

    /// Switches watching for send room on or off.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn want(&self, fd: RawFd, key: usize, write: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, key, write)
    }

    /// Stops watching a socket.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, false)
    }

    /// Waits in the given way until `until` (a time of [`now_ns`]; `u64::MAX` for no limit). If
    /// interrupted, or after spinning a while in vain, returns with no events.
    pub fn wait(&mut self, wait: Wait, until: u64) {
        self.ready = match wait {
            Wait::Block | Wait::BusyPoll => self.sleep(until),
            Wait::Spin => self.ask(),
            Wait::SpinThenBlock => {
                let begun = now_ns();
                let mut n = self.ask();
                while n == 0 {
                    let now = now_ns();
                    if now >= until {
                        break;
                    }
                    if now - begun >= SPIN_NS.0 {
                        n = self.sleep(until);
                        break;
                    }
                    n = self.ask();
                }
                n
            }
        };
    }

    #[inline]
    fn ask(&mut self) -> usize {
        self.epoll_wait(0)
    }

    fn epoll_wait(&mut self, ms: i32) -> usize {
        // SAFETY: the array outlives the call and its length is given.
        let n = unsafe {
            libc::epoll_wait(self.fd.as_raw_fd(), self.events.as_mut_ptr(), EVENTS as i32, ms)
        };
        usize::try_from(n).unwrap_or(0)
    }

    fn sleep(&mut self, until: u64) -> usize {
        if until == u64::MAX {
            return self.epoll_wait(-1);
        }
        let left = until.saturating_sub(now_ns());
        if left == 0 {
            return self.ask();
        }
        let most = libc::timespec {
            tv_sec: (left / 1_000_000_000) as libc::time_t,
            tv_nsec: (left % 1_000_000_000) as libc::c_long,
        };
        if self.fine {
            // SAFETY: array and time outlive the call; no signal mask is given.
            let n = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    self.fd.as_raw_fd(),
                    self.events.as_mut_ptr(),
                    EVENTS as i32,
                    &raw const most,
                    std::ptr::null::<libc::sigset_t>(),
                    0usize,
                )
            };
            if n >= 0 {
                return n as usize;
            }
            self.fine = io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS);
            if self.fine {
                return 0;
            }
        }
        // Older kernels: ppoll on the epoll descriptor has the same precision, for one more call.
        let mut fds = [libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        // SAFETY: array and time outlive the call; no signal mask is given.
        unsafe { libc::ppoll(fds.as_mut_ptr(), 1, &raw const most, std::ptr::null()) };
        self.ask()
    }

    /// Event `n` of the last wait.
    #[inline]
    pub fn nth(&self, n: usize) -> Option<Ready> {
        self.events.get(..self.ready)?.get(n).map(|e| {
            let events = e.events as i32;
            Ready {
                key: e.u64 as usize,
                writable: events & libc::EPOLLOUT != 0,
                readable: events & !libc::EPOLLOUT != 0,
                broken: events & (libc::EPOLLERR | libc::EPOLLHUP) != 0,
                ended: events & (libc::EPOLLRDHUP | libc::EPOLLERR | libc::EPOLLHUP) != 0,
            }
        })
    }
}
