//! Asking over a netlink socket: one socket per question, bounded in time and attempts.

use std::{cell::Cell, ops::ControlFlow, os::fd::OwnedFd, time::Duration};

use parse::netlink::{DONE, DUMP_INTERRUPTED, ERROR, Message, OVERRUN, Request, messages};
use rustix::{
    io::Errno,
    net::{
        AddressFamily, Protocol, RawProtocol, RecvFlags, SendFlags, SocketFlags, SocketType,
        socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
};
use serde::{Deserialize, Serialize};

use crate::ReadError;

/// All entries of a dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump<T> {
    /// In the kernel's order.
    pub entries: Vec<T>,
    /// The kernel's tables changed during each of the attempts (`NLM_F_DUMP_INTR`): these are
    /// the last attempt's entries, of which some may be missing or doubled.
    pub interrupted: bool,
}

/// How often a dump that was interrupted is asked again. A host that starts containers all
/// the time may interrupt every one.
const ATTEMPTS: u32 = 6;

/// The kernel fills at most 32 KiB unless a single entry needs more (a NIC with hundreds of
/// virtual functions).
const BUFFER: usize = 256 << 10;

thread_local! {
    /// The buffer of this thread's next question: to clear so much for each takes longer than most
    /// answers.
    static FREE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Longest wait for one datagram: the kernel answers at once, unless a lock is held.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Asks for all of something; `each` turns a message into an entry, or skips it. `what` names
/// the question in errors.
///
/// # Errors
/// As the kernel answered: absent for a protocol or family that it does not have.
pub fn dump<T>(
    protocol: i32,
    what: &str,
    request: &Request,
    each: impl Fn(&Message<'_>) -> Option<T>,
) -> Result<Dump<T>, ReadError> {
    let mut last = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut entries = Vec::new();
        let whole = exchange(protocol, what, request, &mut |m| {
            entries.extend(each(m));
            ControlFlow::Continue(())
        })?;
        if whole {
            return Ok(Dump { entries, interrupted: false });
        }
        last = entries;
    }
    Ok(Dump { entries: last, interrupted: true })
}

/// Asks for one thing.
///
/// # Errors
/// As the kernel answered; absent where it answered with something else.
pub fn one<T>(
    protocol: i32,
    what: &str,
    request: &Request,
    each: impl Fn(&Message<'_>) -> Option<T>,
) -> Result<T, ReadError> {
    let mut found = None;
    exchange(protocol, what, request, &mut |m| {
        found = found.take().or_else(|| each(m));
        ControlFlow::Continue(())
    })?;
    found.ok_or_else(|| ReadError::Absent { path: what.to_owned() })
}

/// Sends a request and hands over every answer until the kernel is done or `each` breaks off.
/// Gives whether the answer is whole: not interrupted and nothing lost.
///
/// # Errors
/// As the kernel answered.
pub fn exchange(
    protocol: i32,
    what: &str,
    request: &Request,
    each: &mut dyn FnMut(&Message<'_>) -> ControlFlow<()>,
) -> Result<bool, ReadError> {
    let failed = |errno| ReadError::from_errno(what, errno);
    let socket = open(protocol).map_err(failed)?;
    send(&socket, &request.bytes(SEQUENCE)).map_err(failed)?;
    let mut buffer = FREE.take();
    if buffer.is_empty() {
        buffer = vec![0; BUFFER];
    }
    let mut answer = Answer { whole: true, each };
    let end = loop {
        match receive(&socket, &mut buffer).and_then(|bytes| answer.take(bytes)) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => break Ok(answer.whole),
            // Answers were lost for want of memory.
            Err(libc::ENOBUFS) => break Ok(false),
            Err(errno) => break Err(failed(errno)),
        }
    };
    FREE.set(buffer);
    end
}

/// Every question has its own socket, and its answers this number.
const SEQUENCE: u32 = 1;

/// An answer as its datagrams come in.
struct Answer<'f> {
    whole: bool,
    each: &'f mut dyn FnMut(&Message<'_>) -> ControlFlow<()>,
}

impl Answer<'_> {
    /// Takes the next datagram; breaks at the end of the answer.
    fn take(&mut self, datagram: &[u8]) -> Result<ControlFlow<()>, i32> {
        for message in messages(datagram).filter(|m| m.sequence == SEQUENCE) {
            self.whole &= message.flags & DUMP_INTERRUPTED == 0;
            match (message.kind, message.errno()) {
                // An end without its number is an end; old kernels send it so.
                (ERROR | DONE, Some(0)) | (DONE, None) => return Ok(ControlFlow::Break(())),
                (ERROR | DONE, Some(errno)) => return Err(errno),
                (ERROR, None) => return Err(libc::EPROTO),
                (OVERRUN, _) => return Err(libc::ENOBUFS),
                _ if (self.each)(&message).is_break() => return Ok(ControlFlow::Break(())),
                _ => {}
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn open(protocol: i32) -> Result<OwnedFd, i32> {
    let protocol = u32::try_from(protocol).ok().and_then(RawProtocol::new).map(Protocol::from_raw);
    let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
        .map_err(|e| match e {
        // A kernel without this protocol, or without netlink.
        Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => libc::ENOENT,
        other => other.raw_os_error(),
    })?;
    set_socket_timeout(&fd, Timeout::Recv, Some(TIMEOUT)).map_err(|e| e.raw_os_error())?;
    Ok(fd)
}

fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<(), i32> {
    loop {
        match rustix::net::send(socket, bytes, SendFlags::empty()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(other) => return Err(other.raw_os_error()),
        }
    }
}

/// One datagram; one that does not fit is an error, not a part.
fn receive<'b>(socket: &OwnedFd, buffer: &'b mut [u8]) -> Result<&'b [u8], i32> {
    loop {
        match rustix::net::recv(socket, &mut *buffer, RecvFlags::TRUNC) {
            Ok((_, n)) => return buffer.get(..n).ok_or(libc::EMSGSIZE),
            Err(Errno::INTR) => {}
            Err(other) => return Err(other.raw_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of the answer, or of an earlier question's.
    fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Request::one(kind, payload).bytes(sequence);
        bytes.splice(6..8, flags.to_ne_bytes());
        bytes
    }

    fn taken(datagram: &[u8]) -> (Result<ControlFlow<()>, i32>, bool, usize) {
        let mut count = 0;
        let each = &mut |_: &Message<'_>| {
            count += 1;
            ControlFlow::Continue(())
        };
        let mut answer = Answer { whole: true, each };
        let result = answer.take(datagram);
        let whole = answer.whole;
        (result, whole, count)
    }

    #[test]
    fn an_interrupted_dump_is_not_whole_and_an_end_is_an_end() {
        let link = |flags| message(16, flags, 1, &[0; 16]);
        let done = |errno: i32| message(DONE, 2, 1, &(-errno).to_ne_bytes());
        let go = Ok(ControlFlow::Continue(()));
        let end = Ok(ControlFlow::Break(()));
        assert_eq!(taken(&[link(2), link(2)].concat()), (go, true, 2));
        assert_eq!(taken(&[link(2), link(2 | DUMP_INTERRUPTED)].concat()), (go, false, 2));
        assert_eq!(taken(&[link(2), done(0), link(2)].concat()), (end, true, 1));
        assert_eq!(taken(&message(DONE, 2 | DUMP_INTERRUPTED, 1, &[0; 4])), (end, false, 0));
        assert_eq!(taken(&message(DONE, 2, 1, &[])), (end, true, 0));
        assert_eq!(taken(&done(libc::EPERM)).0, Err(libc::EPERM));
        assert_eq!(
            taken(&message(ERROR, 0, 1, &(-libc::ENODEV).to_ne_bytes())).0,
            Err(libc::ENODEV)
        );
        assert_eq!(taken(&message(ERROR, 0, 1, &[])).0, Err(libc::EPROTO));
        assert_eq!(taken(&message(OVERRUN, 0, 1, &[])).0, Err(libc::ENOBUFS));
        assert_eq!(taken(&message(16, 2, 7, &[0; 16])), (go, true, 0), "not our question's");
    }

    #[test]
    fn the_kernel_dumps_loopback_and_refuses_nonsense() {
        let links = Request::dump(libc::RTM_GETLINK, &[0; 16]);
        let dump = dump(libc::NETLINK_ROUTE, "netlink/links", &links, |m| {
            (m.kind == libc::RTM_NEWLINK).then_some(m.payload.len())
        })
        .unwrap();
        assert!(!dump.entries.is_empty());

        let nonsense = Request::one(0x7ff0, &[0; 16]);
        let error =
            one(libc::NETLINK_ROUTE, "netlink/nonsense", &nonsense, |_| Some(())).unwrap_err();
        assert!(matches!(error, ReadError::Failed { errno: libc::EOPNOTSUPP, .. }), "{error}");

        let error = one(4000, "netlink/no-protocol", &links, |_| Some(())).unwrap_err();
        assert!(matches!(error, ReadError::Absent { .. }), "{error}");
    }
}
