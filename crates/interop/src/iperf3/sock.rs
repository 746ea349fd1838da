//! Data sockets: creation, options, and the kernel's TCP state.

use std::{
    fs::File,
    io::{self, Write},
    net::SocketAddr,
    os::fd::AsRawFd,
};

use model::Warning;
use rustix::fs::MemfdFlags;
use socket2::{Domain, Protocol, Socket, Type};
use traffic::{
    net::options::{is_loaded, set},
    stream::tcp_info,
};

use super::params::{Code, Params, Refused};

/// A bound, non-blocking socket.
///
/// # Errors
/// The kernel's error: the address is in use, not of this host, or not permitted.
pub fn bound(
    address: SocketAddr,
    kind: Type,
    protocol: Protocol,
    v4_too: bool,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    // TCP: past connections do not block the port. UDP: each stream's socket shares it.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(!v4_too)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Applies the parameters to a data socket. An option that the kernel refuses is an error, as in
/// iperf3: figures under other options would mislead. A feature that it may lack is a warning.
///
/// `connecting` is set by the client, before `connect`: an MSS only has an effect then.
///
/// # Errors
/// The first option that the kernel refused, with iperf3's error number for it.
pub fn apply(
    socket: &Socket,
    asked: &Params,
    connecting: bool,
    warnings: &mut Vec<Warning>,
) -> Result<(), Refused> {
    if let Some(bytes) = asked.window {
        buffers(socket, bytes)?;
    }
    let six = socket.domain().is_ok_and(|d| d == Domain::IPV6);
    if asked.tos != 0 {
        let tos = i32::from(asked.tos);
        let done = match six {
            true => set(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, tos),
            false => set(socket, libc::IPPROTO_IP, libc::IP_TOS, tos),
        };
        done.map_err(|e| Refused::io(Code::SetTos, "cannot set the type of service", &e))?;
    }
    if asked.fq_rate > 0 {
        let rate = i32::try_from(asked.fq_rate / 8).unwrap_or(i32::MAX);
        if let Err(e) = set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, rate) {
            warnings.push(Warning::NoPacing { why: e.to_string() });
        }
    }
    match asked.udp {
        true => udp(socket, asked, six),
        false => tcp(socket, asked, connecting),
    }
}

fn buffers(socket: &Socket, bytes: u32) -> Result<(), Refused> {
    let fail = |e: io::Error| Refused::io(Code::SetBuffer, "cannot set the socket buffers", &e);
    let bytes = bytes as usize;
    // The kernel doubles the value, in an int.
    let given = bytes.min(i32::MAX as usize / 2);
    socket.set_send_buffer_size(given).map_err(fail)?;
    socket.set_recv_buffer_size(given).map_err(fail)?;
    let least = socket
        .send_buffer_size()
        .and_then(|s| Ok(s.min(socket.recv_buffer_size()?)))
        .map_err(fail)?;
    if least < bytes {
        let why = format!(
            "socket buffers of {bytes} bytes: the kernel gives {least} \
             (net.core.wmem_max, net.core.rmem_max)"
        );
        return Err(Refused::new(Code::BufferTooSmall, why));
    }
    Ok(())
}

fn tcp(socket: &Socket, asked: &Params, connecting: bool) -> Result<(), Refused> {
    if asked.nodelay {
        socket
            .set_tcp_nodelay(true)
            .map_err(|e| Refused::io(Code::SetNodelay, "cannot set TCP_NODELAY", &e))?;
    }
    if let Some(name) = &asked.congestion {
        // Only our own operator may make the kernel load a module.
        if !connecting {
            // ENOENT is the kernel's answer to an unknown algorithm.
            is_loaded(name).map_err(|e| Refused {
                errno: libc::ENOENT,
                ..Refused::new(Code::SetCongestion, e.to_string())
            })?;
        }
        socket.set_tcp_congestion(name.as_bytes()).map_err(|e| {
            let doing = format!("cannot use the congestion control {name:?}");
            Refused::io(Code::SetCongestion, &doing, &e)
        })?;
    }
    // A server's socket for -M gets the client's MSS from its SYN.
    if let (Some(mss), true) = (asked.mss, connecting) {
        socket
            .set_tcp_mss(mss)
            .map_err(|e| Refused::io(Code::CreateStream, "cannot set the MSS", &e))?;
    }
    Ok(())
}

fn udp(socket: &Socket, asked: &Params, six: bool) -> Result<(), Refused> {
    if asked.dont_fragment && !six {
        set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
            .map_err(|e| Refused::io(Code::SetDontFragment, "cannot forbid fragments", &e))?;
    }
    Ok(())
}

/// Congestion control in use.
pub fn congestion(socket: &Socket) -> Option<String> {
    let name = socket.tcp_congestion().ok()?;
    let name: Vec<u8> = name.into_iter().take_while(|b| *b != 0).collect();
    String::from_utf8(name).ok()
}

/// The fields of `TCP_INFO` used here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Payload of a full segment, bytes.
    pub snd_mss: u32,
    /// Smoothed round trip, µs.
    pub rtt_us: u32,
    /// The congestion window in segments.
    pub snd_cwnd: u32,
    /// Segments retransmitted since the connection began.
    pub retransmits: u32,
    /// Payload bytes that the other end's kernel has acknowledged.
    pub bytes_acked: u64,
}

/// Reads it; `None` if the socket is no TCP connection or is closed.
pub fn tcp_info(socket: &impl AsRawFd) -> Option<TcpInfo> {
    let said = tcp_info::TcpInfo::read(socket.as_raw_fd())?;
    let small = |n: Option<u64>| n.and_then(|n| u32::try_from(n).ok());
    let mss = said.mss_bytes?;
    Some(TcpInfo {
        snd_mss: small(Some(mss))?,
        rtt_us: small(said.rtt_ns.map(|ns| ns / 1000))?,
        snd_cwnd: small(said.cwnd_bytes.map(|b| b / mss.max(1)))?,
        retransmits: small(said.retransmits)?,
        bytes_acked: said.bytes_acked?,
    })
}

/// A memory file with the payload, for `sendfile`.
///
/// # Errors
/// The kernel's error, for example a limit of memory or of descriptors.
pub fn in_memory(payload: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("payload", MemfdFlags::CLOEXEC)?);
    file.write_all(payload)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_info_counts_what_was_acknowledged() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        here.write_all(&[7; 5000]).unwrap();
        let mut into = [0; 5000];
        io::Read::read_exact(&mut there, &mut into).unwrap();
        let said = (0..100).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            // The SYN counts as one byte.
            tcp_info(&here).filter(|i| (5000..=5001).contains(&i.bytes_acked))
        });
        assert!(said.is_some_and(|i| i.snd_mss > 0 && i.snd_cwnd > 0));
        assert_eq!(tcp_info(&File::open("/dev/null").unwrap()), None);
    }

    #[test]
    fn buffers_that_the_kernel_does_not_give_are_refused() {
        let socket = Socket::new(Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let asked = |window| Params { window: Some(window), ..Params::default() };
        apply(&socket, &asked(10_000), false, &mut Vec::new()).unwrap();
        let refused = apply(&socket, &asked(u32::MAX), false, &mut Vec::new()).unwrap_err();
        assert_eq!(refused.code, Code::BufferTooSmall);
    }
}
