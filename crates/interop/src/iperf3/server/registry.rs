//! Assigns data connections to sessions: by cookie (TCP) or by source address (UDP).

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
    /// The number is the order of acceptance, which is the client's order of opening.
    Tcp(u64, Socket),
    /// With the text of the first datagram, which decides the answer.
    Udp(Socket, [u8; 4]),
}

/// Datagrams from others that reached a stream's socket before it was connected.
pub struct Stray {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub text: [u8; 4],
}

/// Sessions that wait for data connections, by key.
type Awaited<K> = Mutex<HashMap<K, mpsc::Sender<Arrival>>>;

/// Registry of sessions, see the module. Not used while data flows.
pub struct Registry<'a> {
    pub limits: &'a Limits,
    cookies: Awaited<Cookie>,
    /// One client of a host at a time: datagrams of two clients cannot be distinguished.
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

    /// Registers a session for TCP streams with this cookie; `None` if another session has it.
    pub fn await_cookie(&self, cookie: Cookie) -> Option<Ticket<'_, Cookie>> {
        Ticket::take(&self.cookies, cookie)
    }

    /// Registers a session for UDP streams from this host; `None` if another session has it.
    pub fn await_host(&self, host: IpAddr) -> Option<Ticket<'_, IpAddr>> {
        Ticket::take(&self.hosts, host.to_canonical())
    }

    /// The session that waits for TCP streams with this cookie.
    pub fn by_cookie(&self, cookie: &Cookie) -> Option<mpsc::Sender<Arrival>> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner).get(cookie).cloned()
    }

    /// The session that waits for UDP streams from this host.
    pub fn by_host(&self, host: IpAddr) -> Option<mpsc::Sender<Arrival>> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.get(&host.to_canonical()).cloned()
    }

    /// Reserves a place for one more client; `None` if all are taken.
    pub fn client(&self) -> Option<Share<'_>> {
        self.clients.take(1)
    }

    /// Reserves places for `n` streams; `None` if fewer are left.
    pub fn streams(&self, n: usize) -> Option<Share<'_>> {
        self.streams.take(n)
    }

    pub fn memory(&self, bytes: usize) -> Option<Share<'_>> {
        self.limits.memory.take(bytes)
    }
}

/// A registration: data connections with its key go to its session until dropped.
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
