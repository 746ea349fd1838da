//! Counts wrong secrets by client address, to prevent guessing.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use super::endpoint::DataAddress;

/// Most wrong secrets from one address
const MOST: u32 = 10;
/// within this time; further ones are not checked until it has passed.
const WITHIN: Duration = Duration::from_secs(60);
/// Most addresses remembered; a further one replaces the oldest.
const ADDRESSES: usize = 4096;

#[derive(Debug, Default)]
pub struct FailedAuths {
    by: HashMap<IpAddr, (Instant, u32)>,
}

/// The address to count by: for IPv6 the network, since a client controls a whole network.
fn whose(client: &DataAddress) -> Option<IpAddr> {
    match client {
        DataAddress::Ip(_, IpAddr::V6(a)) if a.to_ipv4_mapped().is_none() => {
            let network = u128::from(*a) >> 64 << 64;
            Some(IpAddr::V6(Ipv6Addr::from(network)))
        }
        DataAddress::Ip(_, a) => Some(a.to_canonical()),
        DataAddress::Unix(_) => None,
    }
}

impl FailedAuths {
    /// Whether attempts from this address are no longer checked.
    pub fn too_many(&self, client: &DataAddress) -> bool {
        let known = whose(client).and_then(|a| self.by.get(&a));
        known.is_some_and(|(first, n)| *n >= MOST && first.elapsed() < WITHIN)
    }

    pub fn count(&mut self, client: &DataAddress) {
        let Some(address) = whose(client) else { return };
        let now = Instant::now();
        if !self.by.contains_key(&address) && self.by.len() >= ADDRESSES {
            let oldest = self.by.iter().min_by_key(|(_, (first, _))| *first).map(|(a, _)| *a);
            oldest.map(|a| self.by.remove(&a));
        }
        let (first, n) = self.by.entry(address).or_insert((now, 0));
        if first.elapsed() >= WITHIN {
            (*first, *n) = (now, 0);
        }
        *n += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> DataAddress {
        DataAddress::Ip("10.0.0.1".parse().unwrap(), address.parse().unwrap())
    }

    #[test]
    fn one_address_is_held_up_and_no_other() {
        let mut failed = FailedAuths::default();
        for n in 0..MOST {
            assert!(!failed.too_many(&client("10.0.0.2")), "{n}");
            failed.count(&client("10.0.0.2"));
        }
        assert!(
            failed.too_many(&client("10.0.0.2")) && failed.too_many(&client("::ffff:10.0.0.2"))
        );
        assert!(!failed.too_many(&client("10.0.0.3")));
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_and_the_table_stays_small() {
        let mut failed = FailedAuths::default();
        (0..MOST).for_each(|n| failed.count(&client(&format!("2001:db8::{n:x}"))));
        assert!(
            failed.too_many(&client("2001:db8::ffff")) && !failed.too_many(&client("2001:db9::1"))
        );
        for n in 0..2 * ADDRESSES as u32 {
            failed.count(&client(&std::net::Ipv4Addr::from(n).to_string()));
        }
        assert_eq!(failed.by.len(), ADDRESSES);
    }
}
