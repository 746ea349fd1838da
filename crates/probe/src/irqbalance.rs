//! The socket of a running irqbalance, asked only while it listens.
//!
//! irqbalance is one thread: while it sleeps within a new look at the whole host (for its whole
//! interval, once after each change of what is banned) or is stopped, nobody answers. Whoever then
//! gives up and goes leaves a question behind whose answer ends irqbalance: up to 1.9.5 at the
//! least it sends without `MSG_NOSIGNAL`, and nothing but systemd has it ignore SIGPIPE. So the
//! kernel is asked first what it waits for.

use std::{
    fs,
    io::{Error, ErrorKind, Read, Result, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
    time::{Duration, Instant},
};

/// One that listens answers at once. Should it begin a new look in that very moment, going away
/// early would end it: longer than its usual interval.
const ANSWER: Duration = Duration::from_secs(12);

/// Its answer is a few hundred bytes; a banned mask of 8,192 CPUs takes 2,304.
const LONGEST: u64 = 64 << 10;

pub fn path(pid: u32) -> String {
    format!("/run/irqbalance/irqbalance{pid}.sock")
}

/// What it says to `text`, once it listens; `patience` is how long it may not.
///
/// # Errors
/// `WouldBlock` when it did not listen all the time, and nothing was sent; else as the kernel
/// answered.
pub fn ask(pid: u32, text: &str, patience: Duration) -> Result<String> {
    let begin = Instant::now();
    while !listens(pid)? {
        if begin.elapsed() >= patience {
            return Err(Error::new(ErrorKind::WouldBlock, "it does not listen now"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut stream = connect(pid)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    stream.write_all(text.as_bytes())?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer)?;
    Ok(answer)
}

/// Whether it waits for somebody to come: in `poll`, and not stopped.
fn listens(pid: u32) -> Result<bool> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let sleeps = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
    Ok(sleeps
        && match fs::read_to_string(format!("/proc/{pid}/syscall")) {
            Ok(call) => is_poll(&call),
            // A kernel without it tells at least the function.
            Err(_) => fs::read_to_string(format!("/proc/{pid}/wchan"))?.contains("poll"),
        })
}

/// Whether a line of `/proc/PID/syscall` is one of `poll` or `ppoll`: `7 0x55… 0x2 …`.
fn is_poll(call: &str) -> bool {
    let number = call.split(' ').next().and_then(|n| n.trim().parse().ok());
    #[cfg(target_arch = "x86_64")]
    let poll = [libc::SYS_poll, libc::SYS_ppoll];
    #[cfg(not(target_arch = "x86_64"))]
    let poll = [libc::SYS_ppoll];
    number.is_some_and(|n: libc::c_long| poll.contains(&n))
}

/// By path, else by the abstract names: since 1.5 an empty one padded with zeros, before one
/// with its pid.
fn connect(pid: u32) -> Result<UnixStream> {
    let by_path = UnixStream::connect(path(pid));
    let Err(first) = by_path else { return by_path };
    let mut named = format!("irqbalance{pid}.sock").into_bytes();
    named.resize(107, 0);
    for name in [named, vec![0; 107]] {
        let stream = SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixStream::connect_addr(&address));
        // Anyone could take such a name.
        if let Ok(stream) = stream
            && peer(&stream) == Some(pid)
        {
            return Ok(stream);
        }
    }
    Err(first)
}

/// Who is at the other end.
fn peer(stream: &UnixStream) -> Option<u32> {
    let pid = rustix::net::sockopt::socket_peercred(stream).ok()?.pid;
    u32::try_from(pid.as_raw_nonzero().get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_that_waits_in_poll_listens() {
        let poll =
            format!("{} 0x562bf8d95090 0x2 0xd63 0x0 0x0 0x0 0x7ffe 0x7fc8\n", libc::SYS_ppoll);
        assert!(is_poll(&poll));
        let sleep =
            format!("{} 0x0 0x0 0x7ffe 0x0 0x0 0x0 0x7ffe 0x7fc8\n", libc::SYS_clock_nanosleep);
        for none in [sleep.as_str(), "running\n", "-1 0x7ffe 0x7fc8\n", ""] {
            assert!(!is_poll(none), "{none:?}");
        }
    }

    #[test]
    fn one_that_does_not_listen_is_told_nothing() {
        // This process waits for no socket.
        let asked = ask(std::process::id(), "setup", Duration::ZERO);
        assert_eq!(asked.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
