//! Who waits for what: streams of known clients find their way by the cookie (TCP) or by the
//! address they come from (UDP).

use std::{
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, PoisonError, mpsc},
};

use socket2::Socket;
use traffic::budget::{Budget, Share};

use super::Limits;
use crate::iperf3::wire::Cookie;

/// A data connection for a session.
pub enum Arrival {
    /// The number tells in which order the connections were accepted: that is the order in which
    /// the client opened them.
    Tcp(u64, Socket),
    /// With the first datagram's text, which decides on the answer.
    Udp(Socket, [u8; 4]),
}

/// Datagrams that came to a stream's socket before it was connected, from others.
pub struct Stray {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub text: [u8; 4],
}

/// Where data connections go.
type Awaited<K> = Mutex<HashMap<K, mpsc::Sender<Arrival>>>;

/// See the module. Nothing here is touched while data moves.
pub struct Registry<'a> {
    pub limits: &'a Limits,
    cookies: Awaited<Cookie>,
    /// One client of a host at a time: nothing in a datagram tells two of them apart.
    hosts: Awaited<IpAddr>,
    pub strays: Mutex<Vec<Stray>>,
    clients: Budget,
    streams: Budget,
}

impl<'a> Registry<'a> {
    pub fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            cookies: Mutex::default(),
            hosts: Mutex::default(),
            strays: Mutex::default(),
            clients: Budget::new(limits.clients),
            streams: Budget::new(limits.streams),
        }
    }

    /// Awaits TCP streams with this cookie; `None` when another session does already.
    pub fn await_cookie(&self, cookie: Cookie) -> Option<Ticket<'_, Cookie>> {
        Ticket::take(&self.cookies, cookie)
    }

    /// Awaits UDP streams from this host; `None` when another session does already.
    pub fn await_host(&self, host: IpAddr) -> Option<Ticket<'_, IpAddr>> {
        Ticket::take(&self.hosts, host.to_canonical())
    }

    /// Who awaits TCP streams with this cookie.
    pub fn by_cookie(&self, cookie: &Cookie) -> Option<mpsc::Sender<Arrival>> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner).get(cookie).cloned()
    }

    /// Who awaits UDP streams from this host.
    pub fn by_host(&self, host: IpAddr) -> Option<mpsc::Sender<Arrival>> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.get(&host.to_canonical()).cloned()
    }

    /// A place for one more client.
    pub fn client(&self) -> Option<Share<'_>> {
        self.clients.take(1)
    }

    /// Places for so many streams.
    pub fn streams(&self, n: usize) -> Option<Share<'_>> {
        self.streams.take(n)
    }

    pub fn memory(&self, bytes: usize) -> Option<Share<'_>> {
        self.limits.memory.take(bytes)
    }
}

/// While it lives, data connections with its key arrive here.
pub struct Ticket<'a, K: Hash + Eq + Copy> {
    of: &'a Awaited<K>,
    key: K,
    pub arrivals: mpsc::Receiver<Arrival>,
}

impl<'a, K: Hash + Eq + Copy> Ticket<'a, K> {
    fn take(of: &'a Awaited<K>, key: K) -> Option<Self> {
        let mut awaited = of.lock().unwrap_or_else(PoisonError::into_inner);
        if awaited.contains_key(&key) {
            return None;
        }
        let (sender, arrivals) = mpsc::channel();
        awaited.insert(key, sender);
        Some(Self { of, key, arrivals })
    }
}

impl<K: Hash + Eq + Copy> Drop for Ticket<'_, K> {
    fn drop(&mut self) {
        self.of.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_of_a_host_awaits_datagrams_at_a_time() {
        let limits = Limits::default();
        let registry = Registry::new(&limits);
        let ticket = registry.await_host("::ffff:10.0.0.1".parse().unwrap()).unwrap();
        let host = "10.0.0.1".parse().unwrap();
        assert!(registry.await_host(host).is_none() && registry.by_host(host).is_some());
        drop(ticket);
        assert!(registry.by_host(host).is_none());
    }
}
