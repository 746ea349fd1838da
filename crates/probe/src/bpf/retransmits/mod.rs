//! Retransmitted segments by connection.
//!
//! | counts | unit |
//! |---|---|
//! | segments retransmitted, by the connection's addresses and ports | number |
//!
//! **Source**: `tcp_retransmit_skb` (since Linux 4.16) by what the connection's own count
//! grew, the first time with as many segments as the buffer is cut into, and `tcp_retransmit_synack`; together what the kernel adds to `Tcp.RetransSegs`.
//! Of all network namespaces. Needs BTF.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use aya::Pod;
use model::{CpuId, Reading};

use super::{
    Object, ProgramSpec,
    double_buffer::{DrainedTable, TablePair},
};

pub(super) static BYTES: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/retransmits.bpf.o"));

pub const NAME: &str = "retransmits";

const GIVES: &str = "retransmitted segments by connection";

/// The programs, in the order of their own run counts.
pub const WANTED: [ProgramSpec; 2] = [
    ProgramSpec { program: "tcp_retransmit_skb", gives: GIVES },
    ProgramSpec { program: "tcp_retransmit_synack", gives: "answers to a SYN among them" },
];

const AF_INET: u16 = 2;

/// A connection; the layout of `struct connection`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Key {
    local: [u8; 16],
    remote: [u8; 16],
    local_port: u16,
    remote_port: u16,
    family: u16,
    pad: u16,
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for Key {}

impl Key {
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.address(self.local), self.local_port)
    }

    pub fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.address(self.remote), u16::from_be(self.remote_port))
    }

    /// An IPv4 connection of an IPv6 socket as IPv4.
    fn address(&self, bytes: [u8; 16]) -> IpAddr {
        let [a, b, c, d, ..] = bytes;
        match self.family {
            AF_INET => Ipv4Addr::new(a, b, c, d).into(),
            _ => Ipv6Addr::from(bytes).to_canonical(),
        }
    }
}

#[derive(Debug)]
pub struct Retransmits {
    pub object: Object,
    tables: TablePair<Key, u64>,
}

impl Retransmits {
    /// Attaches.
    ///
    /// # Errors
    /// See [`Object::load`]; or the program is refused.
    pub fn attach(possible: Vec<CpuId>) -> Result<Self, Reading<()>> {
        let mut object = Object::load(NAME, BYTES, &WANTED, possible)?;
        object.needs(&["tcp_retransmit_skb"])?;
        let tables = TablePair::open(&mut object, "segments");
        let tables = tables.map_err(|e| Reading::absent(format!("{NAME}: {e}")))?;
        Ok(Self { object, tables })
    }

    /// Segments since the last time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&mut self) -> io::Result<DrainedTable<Key, u64>> {
        self.tables.take(&mut self.object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families() {
        let mut key = Key { family: AF_INET, local_port: 22, ..Key::default() };
        key.remote_port = 0x1234_u16.to_be();
        key.local[..4].copy_from_slice(&[10, 0, 0, 1]);
        assert_eq!(key.local().to_string(), "10.0.0.1:22");
        assert_eq!(key.remote().to_string(), "0.0.0.0:4660");
        key.family = 10;
        key.local = "fd99::1".parse::<Ipv6Addr>().unwrap().octets();
        key.remote = "::ffff:192.0.2.7".parse::<Ipv6Addr>().unwrap().octets();
        assert_eq!(key.local().to_string(), "[fd99::1]:22");
        assert_eq!(key.remote().to_string(), "192.0.2.7:4660");
    }
}
