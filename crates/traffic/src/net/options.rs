//! Reading, checking and setting socket options.

use std::os::fd::AsRawFd;

use model::{
    Warning,
    measure::{Common, SocketOptions, Transport, Wait},
};
use socket2::Socket;

use super::sys;
use crate::{Error, ErrorContext, Result};

/// Busy-poll time of the NIC's queue for [`Wait::BusyPoll`], in microseconds.
pub(super) const BUSY_POLL_US: i32 = 50;

/// Sets one integer option.
///
/// # Errors
/// As the kernel says.
pub fn set(socket: &impl AsRawFd, level: i32, name: i32, value: i32) -> std::io::Result<()> {
    sys::set_option(socket.as_raw_fd(), level, name, &value)
}

/// Reads one integer option; `None` if the kernel refuses.
pub fn get(socket: &impl AsRawFd, level: i32, name: i32) -> Option<i32> {
    let mut value = 0;
    sys::option(socket.as_raw_fd(), level, name, &mut value).ok()?;
    Some(value)
}

/// Applies options that must be set before `connect` or `listen`; `nodelay` is the default of
/// `TCP_NODELAY`. A refused option is an error: figures under other options would mislead.
///
/// # Errors
/// The refused option.
pub fn apply(
    socket: &Socket,
    transport: Transport,
    asked: &SocketOptions,
    nodelay: bool,
) -> Result<()> {
    if let Some(bytes) = asked.buffer_bytes {
        let bytes = usize::try_from(bytes.0).unwrap_or(usize::MAX).min(i32::MAX as usize / 2);
        let what = || format!("cannot set the socket buffers to {bytes} bytes");
        socket.set_send_buffer_size(bytes).doing(what)?;
        socket.set_recv_buffer_size(bytes).doing(what)?;
    }
    if let (Some(dscp), false) = (asked.dscp, transport == Transport::Unix) {
        let six = socket.domain().is_ok_and(|d| d == socket2::Domain::IPV6);
        let (level, name) = match six {
            true => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            false => (libc::IPPROTO_IP, libc::IP_TOS),
        };
        set(socket, level, name, i32::from(dscp) << 2)
            .doing(|| format!("cannot set DSCP {dscp}"))?;
    }
    if transport != Transport::Tcp {
        return Ok(());
    }
    socket.set_tcp_nodelay(asked.nodelay.unwrap_or(nodelay)).doing(|| "cannot set TCP_NODELAY")?;
    if let Some(mss) = asked.mss_bytes {
        socket.set_tcp_mss(mss).doing(|| format!("cannot set an MSS of {mss} bytes"))?;
    }
    if let Some(name) = &asked.congestion {
        socket.set_tcp_congestion(name.as_bytes()).map_err(|e| {
            let hint = "see net.ipv4.tcp_available_congestion_control";
            Error::io(format!("cannot use the congestion control {name:?} ({hint})"), &e)
        })?;
    }
    Ok(())
}

/// Checks a congestion control that a peer chose: it must be loaded. Otherwise the kernel would
/// load a module if we are root, which no peer may cause.
///
/// # Errors
/// Names the algorithms that are loaded.
pub fn is_loaded(name: &str) -> Result<()> {
    const KEY: &str = "net.ipv4.tcp_available_congestion_control";
    let path = format!("/proc/sys/{}", KEY.replace('.', "/"));
    let read = probe::Root::live().read(&path);
    let bytes = read.map_err(|e| Error::Environment(format!("cannot read {path}: {e}")))?;
    let all = String::from_utf8_lossy(&bytes);
    match all.split_ascii_whitespace().any(|loaded| loaded == name) {
        true => Ok(()),
        false => Err(Error::Usage(format!(
            "the congestion control {name:?} is not loaded at the server, which has {} ({KEY}); \
             its operator can load it: modprobe tcp_{name}",
            all.trim()
        ))),
    }
}

/// Checks options that no socket on this host would accept.
///
/// # Errors
/// Names what this kernel has instead.
pub fn check(common: &Common) -> Result<()> {
    let Some(name) =
        common.socket.congestion.as_ref().filter(|_| common.transport == Transport::Tcp)
    else {
        return Ok(());
    };
    // On an unconnected socket; here too the kernel loads a module if permitted.
    let Ok(socket) = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None) else {
        return Ok(());
    };
    let listed = |key: &str| {
        let read = probe::Root::live().read(&format!("/proc/sys/net/ipv4/{key}"));
        read.map_or_else(|_| "-".into(), |b| String::from_utf8_lossy(&b).trim().to_owned())
    };
    match socket.set_tcp_congestion(name.as_bytes()) {
        Ok(()) => Ok(()),
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => Err(Error::Denied(format!(
            "--congestion {name} needs CAP_NET_ADMIN here; everybody may use {} \
             (net.ipv4.tcp_allowed_congestion_control)",
            listed("tcp_allowed_congestion_control")
        ))),
        Err(_) => Err(Error::Usage(format!(
            "--congestion {name}: this kernel has {} (net.ipv4.tcp_available_congestion_control)",
            listed("tcp_available_congestion_control")
        ))),
    }
}

/// Prepares a data socket for a way of waiting; returns a warning if the kernel cannot.
pub fn prepare(socket: &impl AsRawFd, wait: Wait) -> Option<Warning> {
    const SO_PREFER_BUSY_POLL: i32 = 69;
    if wait != Wait::BusyPoll {
        return None;
    }
    match set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, BUSY_POLL_US) {
        Ok(()) => {
            // Since 5.11; without it, interrupts only end the busy poll earlier.
            let _ = set(socket, libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, 1);
            None
        }
        Err(e) => Some(Warning::NoBusyPoll { why: e.to_string() }),
    }
}
