//! The socket of a running irqbalance, queried only while it listens.
//!
//! irqbalance is one thread. It does not answer while it is stopped, or while it sleeps inside of a
//! new scan of the whole host (for its whole interval, once after each change of the bans). A
//! client that gives up then leaves a question, and the answer to it ends irqbalance. Up to at
//! least 1.9.5 it sends without `MSG_NOSIGNAL`, and only systemd makes it ignore SIGPIPE. So
//! netwright first asks the kernel what it waits for.

use std::{
    fs,
    io::{Error, ErrorKind, Read, Result, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
    time::{Duration, Instant},
};

/// The time limit for an answer, longer than irqbalance's usual interval. A listening irqbalance
/// answers at once; if it begins a scan at that very moment, an early disconnect would end it.
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

/// Whether it waits for a client: in `poll`, and not stopped.
fn listens(pid: u32) -> Result<bool> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let sleeps = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
    Ok(sleeps
        && match fs::read_to_string(format!("/proc/{pid}/syscall")) {
            Ok(call) => is_poll(&call),
            // A kernel without it still reports the function.
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

/// The peer of the connection.
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
    fn an_irqbalance_without_a_socket_is_sent_nothing() {
        // This process waits for no socket.
        let asked = ask(std::process::id(), "setup", Duration::ZERO);
        assert_eq!(asked.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
