//! irqbalance's socket: one question, `setup`, which changes nothing.

use std::{
    io::{Read, Write},
    os::{
        fd::AsRawFd,
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
    time::Duration,
};

use crate::{ReadError, Root};

/// It answers between two looks at the interrupts; this is long enough for a busy host and
/// short enough for a person.
const PATIENCE: Duration = Duration::from_millis(500);

/// Its answer is a few hundred bytes; a banned mask of 8,192 CPUs takes 2,304.
const LONGEST: u64 = 64 << 10;

/// Where it listens.
pub fn path(pid: u32) -> String {
    format!("/run/irqbalance/irqbalance{pid}.sock")
}

/// What it answers to `setup`. It answers root only, and would log that others asked.
///
/// # Errors
/// Denied to others than root; absent where nobody listens or the answer does not come.
pub fn setup(root: &Root, pid: u32) -> Result<String, ReadError> {
    root.ask(&format!("irqbalance/{pid}/setup"), || {
        // SAFETY: takes nothing, changes nothing.
        if unsafe { libc::geteuid() } != 0 {
            return Err(ReadError::Denied { path: path(pid) });
        }
        let failed = |e: std::io::Error| ReadError::from_io(&path(pid), &e);
        let mut stream = connect(pid).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.write_all(b"setup").map_err(failed)?;
        let mut answer = String::new();
        stream.take(LONGEST).read_to_string(&mut answer).map_err(failed)?;
        Ok(answer)
    })
}

/// By path, else by the abstract names: since 1.5 an empty one padded with zeros, before one
/// with its pid.
fn connect(pid: u32) -> std::io::Result<UnixStream> {
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
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the buffer is a `ucred` and its size is given; the descriptor is open.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut size,
        )
    };
    (done == 0).then(|| u32::try_from(credentials.pid).ok()).flatten()
}
