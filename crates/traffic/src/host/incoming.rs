//! Where a socket's packets arrive, and the CPU of this thread.

use std::os::fd::{AsRawFd, BorrowedFd};

use model::CpuId;

use crate::net::sys;

/// `SO_INCOMING_NAPI_ID` of `include/uapi/asm-generic/socket.h`; the same on all supported
/// architectures.
const SO_INCOMING_NAPI_ID: libc::c_int = 56;

/// The CPU that this thread runs on now.
///
/// **Cost**, measured: 1 ns with glibc 2.35 or later, which reads it from the memory that it
/// shares with the kernel (rseq); otherwise the vDSO's `getcpu`, about 20 ns.
#[inline]
pub fn current_cpu() -> Option<CpuId> {
    u32::try_from(rustix::thread::sched_getcpu()).ok().map(CpuId)
}

/// The CPU that last handled a packet for this socket; `None` before the first packet and for other
/// socket families. A system call of 0.2 µs: for occasional sampling.
///
/// **Source**: `SO_INCOMING_CPU`, since 3.19.
pub fn cpu(socket: BorrowedFd<'_>) -> Option<CpuId> {
    // −1 before the first packet.
    u32::try_from(option(socket, libc::SO_INCOMING_CPU)?).ok().map(CpuId)
}

/// The NAPI instance (a NIC's receive queue) that last received a packet for this socket; 0 if
/// there was none, as on loopback. `None` if the kernel does not report it.
///
/// **Source**: `SO_INCOMING_NAPI_ID`, since 4.12, with `CONFIG_NET_RX_BUSY_POLL`.
pub fn napi_id(socket: BorrowedFd<'_>) -> Option<u32> {
    option(socket, SO_INCOMING_NAPI_ID).map(|id| id as u32)
}

fn option(socket: BorrowedFd<'_>, name: libc::c_int) -> Option<libc::c_int> {
    let mut value = 0i32;
    let length = sys::option(socket.as_raw_fd(), libc::SOL_SOCKET, name, &mut value).ok()?;
    (length == size_of::<i32>()).then_some(value)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
        os::{fd::AsFd, unix::net::UnixStream},
    };

    use super::*;
    use crate::host::pin::{Pinned, allowed};

    #[test]
    fn on_loopback_the_sender_s_cpu_receives() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut local = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        for sender in allowed().unwrap().iter() {
            let _pinned = Pinned::to(sender).unwrap();
            local.write_all(b"x").unwrap();
            peer.read_exact(&mut [0]).unwrap();
            let seen = cpu(peer.as_fd()).unwrap();
            // RPS may move the packet to another CPU; without RPS it is the sender's.
            let rps = std::fs::read_to_string("/sys/class/net/lo/queues/rx-0/rps_cpus");
            if rps.is_ok_and(|m| m.trim().bytes().all(|b| b == b'0' || b == b',')) {
                assert_eq!(seen, sender);
            }
        }
        assert!(napi_id(peer.as_fd()).is_none_or(|id| id == 0), "loopback has no NAPI of its own");
    }

    #[test]
    fn a_unix_socket_and_a_file_have_none() {
        let (a, _b) = UnixStream::pair().unwrap();
        assert_eq!(cpu(a.as_fd()), None);
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        assert_eq!((cpu(file.as_fd()), napi_id(file.as_fd())), (None, None));
    }
}
