//! Child processes that end with this one, however it ends. They are pinned, with output in files,
//! and their CPU time is measured.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::room::{Room, go_on, named, sleep};

/// A running process; dropped, it is killed and awaited.
pub struct Process {
    child: Child,
    name: String,
    out: PathBuf,
    err: PathBuf,
    clock: libc::clockid_t,
}

impl Process {
    /// Starts it, pinned to one CPU.
    pub fn start(room: &Room, mut command: Command, cpu: usize) -> io::Result<Self> {
        go_on()?;
        let name = command.get_program().to_string_lossy().into_owned();
        let (out, err) = (room.file("out"), room.file("err"));
        command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
        let parent = std::process::id();
        // SAFETY: only system calls that are allowed between fork and exec.
        unsafe { command.pre_exec(move || prepare(cpu, parent)) };
        let child = command.spawn().map_err(|e| named(&name, &e))?;
        let mut clock = 0;
        // SAFETY: the clock's id is written to a variable of ours.
        let known = unsafe { libc::clock_getcpuclockid(child.id() as libc::pid_t, &raw mut clock) };
        let process = Self { child, name, out, err, clock };
        if known == 0 { Ok(process) } else { Err(io::Error::from_raw_os_error(known)) }
    }

    /// Waits until it listens on a port.
    pub fn listening(mut self, room: &Room, udp: bool, port: u16) -> io::Result<Self> {
        let until = Instant::now() + Duration::from_secs(5);
        while !room.listens(udp, port) {
            if let Some(status) = self.child.try_wait()? {
                return Err(self.said(&status.to_string()));
            }
            if Instant::now() > until {
                return Err(self.said(&format!("does not listen on port {port}")));
            }
            sleep(Duration::from_millis(2))?;
        }
        Ok(self)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of all its threads so far, nanoseconds.
    pub fn cpu_ns(&self) -> io::Result<u64> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the time is written to a variable of ours.
        match unsafe { libc::clock_gettime(self.clock, &raw mut time) } {
            0 => Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
            _ => Err(named(&self.name, &io::Error::last_os_error())),
        }
    }

    pub fn threads(&self) -> io::Result<Vec<i32>> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id()))?;
        Ok(tasks.flatten().filter_map(|t| t.file_name().to_str()?.parse().ok()).collect())
    }

    /// The resident memory of the process, bytes.
    pub fn resident(&self) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
        kib.map(|k| k * 1024).ok_or_else(|| io::Error::other("no VmRSS"))
    }

    /// Waits for its end, up to a time limit; returns its output.
    pub fn finish(mut self, most: Duration) -> io::Result<String> {
        let handle = self.handle()?;
        let until = Instant::now() + most;
        loop {
            go_on()?;
            if let Some(status) = self.child.try_wait()? {
                let printed = fs::read_to_string(&self.out)?;
                return if status.success() {
                    Ok(printed)
                } else {
                    Err(self.said(&status.to_string()))
                };
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.said(&format!("still running after {most:?}")));
            }
            let mut fds =
                [libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
            // SAFETY: the array outlives the call.
            unsafe { libc::poll(fds.as_mut_ptr(), 1, left.as_millis() as i32 + 1) };
        }
    }

    /// A descriptor that becomes readable when it ends, so that waiting takes no CPU time.
    fn handle(&self) -> io::Result<OwnedFd> {
        // SAFETY: a plain call.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.child.id(), 0) };
        if fd < 0 {
            return Err(named("pidfd_open", &io::Error::last_os_error()));
        }
        // SAFETY: the kernel just gave us this descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }

    fn said(&self, what: &str) -> io::Error {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let said = read(&self.err) + &read(&self.out);
        let last: Vec<&str> = said.lines().rev().filter(|l| !l.trim().is_empty()).take(3).collect();
        io::Error::other(format!("{}: {what}: {}", self.name, last.join(" / ")))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.out);
        let _ = fs::remove_file(&self.err);
    }
}

/// CPU time of all ended children, nanoseconds.
pub fn children_cpu_ns() -> io::Result<u64> {
    // SAFETY: all-zero is a valid value, which the kernel replaces.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the variable outlives the call.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut used) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    Ok(ns(used.ru_utime) + ns(used.ru_stime))
}

/// Pins the calling thread, and what it starts, to one CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: all-zero is an empty set; the calls write to it and read it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        match libc::sched_setaffinity(0, size_of_val(&set), &raw const set) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// In the child: pins it, and makes it end with its parent.
fn prepare(cpu: usize, parent: u32) -> io::Result<()> {
    pin(cpu)?;
    // SAFETY: plain system calls.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have died before the line above.
        if libc::getppid() as u32 != parent {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
    Ok(())
}
