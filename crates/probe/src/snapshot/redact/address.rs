//! Pseudonyms of addresses: one for one, with the properties that a diagnosis needs.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, Ipv6Addr},
};

use super::siphash::SipHash;

/// Pseudonyms given so far: two names never share one.
pub struct Pseudonyms {
    prf: SipHash,
    v4: OneToOne<[u8; 3]>,
    hosts: BTreeMap<[u8; 3], Vec<u8>>,
    v6: OneToOne<[u8; 8]>,
}

/// A table from original to pseudonym that gives each pseudonym once.
struct OneToOne<T> {
    given: BTreeMap<T, T>,
    used: BTreeSet<T>,
}

impl<T: Ord + Copy> OneToOne<T> {
    fn new() -> Self {
        Self { given: BTreeMap::new(), used: BTreeSet::new() }
    }

    /// The pseudonym of `original`: of the n-th candidates the first that is free.
    fn get(&mut self, original: T, candidate: impl Fn(u32) -> T) -> T {
        if let Some(&p) = self.given.get(&original) {
            return p;
        }
        // A million candidates are a /4 of /24s: when all are taken two names do share one.
        let free = (0..1 << 20).map(&candidate).find(|p| !self.used.contains(p));
        let pseudonym = free.unwrap_or_else(|| candidate(0));
        self.used.insert(pseudonym);
        self.given.insert(original, pseudonym);
        pseudonym
    }
}

impl Pseudonyms {
    pub fn new(prf: SipHash) -> Self {
        Self { prf, v4: OneToOne::new(), hosts: BTreeMap::new(), v6: OneToOne::new() }
    }

    /// Keeps the multicast and the local bit, and addresses that everybody has.
    pub fn mac(&self, mac: [u8; 6]) -> [u8; 6] {
        let kept = match mac {
            [0, 0, 0, 0, 0, 0] | [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => return mac,
            [0x01, 0x80, 0xc2, 0, 0, _] => return mac, // spanning tree, LLDP
            [0x01, 0x00, 0x5e, ..] => 3,               // carries an IPv4 group
            [0x33, 0x33, ..] => 2,                     // carries an IPv6 group or address
            _ => 0,
        };
        let hash = self.prf.hash(&[b"mac", &mac]).to_le_bytes();
        let mut out = mac;
        for (i, (o, h)) in out.iter_mut().zip(hash).enumerate().skip(kept) {
            *o = if i == 0 { *o & 3 | h & !3 } else { h };
        }
        out
    }

    /// Eight bytes: an EUI-64 or a GUID, with the MAC in it if there is one.
    pub fn eui64(&self, id: [u8; 8]) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h] = id;
        if [d, e] == [0xff, 0xfe] {
            // IPv6 flips the local bit; flipped back it is the MAC's own.
            let [a, b, c, f, g, h] = self.mac([a ^ 2, b, c, f, g, h]);
            return [a ^ 2, b, c, 0xff, 0xfe, f, g, h];
        }
        self.prf.hash(&[b"eui64", &id]).to_le_bytes()
    }

    /// Maps to 240.0.0.0/4, which is unassigned: a pseudonym is never another real address.
    pub fn v4(&mut self, address: Ipv4Addr) -> Ipv4Addr {
        let [a, b, c, host] = address.octets();
        let bits = u32::from(address);
        let is_mask = a == 255 && bits.leading_ones() + bits.trailing_zeros() >= 32;
        if a == 0 || is_mask || address.is_loopback() || address.is_multicast() {
            return address;
        }
        let prefix = [a, b, c];
        let [x, y, z] = if address.is_link_local() {
            let h = self.prf.hash(&[b"link-local", &prefix]).to_le_bytes();
            self.v4.get(prefix, |n| [169, 254, h[0].wrapping_add(n as u8)])
        } else {
            let prf = &self.prf;
            self.v4.get(prefix, |n| {
                let h = prf.hash(&[b"v4", &prefix, &n.to_le_bytes()]).to_le_bytes();
                [240 | h[0] & 14, h[1], h[2]] // not 255, where masks are
            })
        };
        Ipv4Addr::new(x, y, z, self.host(prefix, host))
    }

    /// Shuffles 1 to 254; the network's own and the broadcast address stay what they are.
    fn host(&mut self, prefix: [u8; 3], host: u8) -> u8 {
        let prf = &self.prf;
        let order = self.hosts.entry(prefix).or_insert_with(|| {
            let mut order: Vec<u8> = (1..=254).collect();
            for i in (1..order.len()).rev() {
                let h = prf.hash(&[b"v4 host", &prefix, &(i as u64).to_le_bytes()]);
                order.swap(i, (h % (i as u64 + 1)) as usize);
            }
            order
        });
        match host {
            0 | 255 => host,
            n => order.get(usize::from(n) - 1).copied().unwrap_or(n),
        }
    }

    /// Into 2001:db8::/32, the range of examples.
    pub fn v6(&mut self, address: Ipv6Addr) -> Ipv6Addr {
        let o = address.octets();
        if address.is_unspecified() || address.is_loopback() {
            return address;
        }
        if let Some(v4) = address.to_ipv4_mapped() {
            return self.v4(v4).to_ipv6_mapped();
        }
        let (mut prefix, mut id) = ([0u8; 8], [0u8; 8]);
        prefix.copy_from_slice(o.get(..8).unwrap_or(&[0; 8]));
        id.copy_from_slice(o.get(8..).unwrap_or(&[0; 8]));
        let new_id = if id == [0; 8] { id } else { self.eui64(id) };
        let new_prefix = match prefix {
            [0xff, ..] => {
                // Well-known groups are short; what is long names a host or a service.
                if id.iter().take(5).all(|&b| b == 0) && prefix.iter().skip(2).all(|&b| b == 0) {
                    return address;
                }
                let h = self.prf.hash(&[b"group", &o]).to_le_bytes();
                let kept = prefix.iter().take(2).chain(&[0; 6]).copied();
                return collect(kept.chain(h));
            }
            [0xfe, b, ..] if b & 0xc0 == 0x80 => prefix,
            _ => {
                let prf = &self.prf;
                self.v6.get(prefix, |n| {
                    let h = prf.hash(&[b"v6", &prefix, &n.to_le_bytes()]).to_le_bytes();
                    [0x20, 0x01, 0x0d, 0xb8, h[0], h[1], h[2], h[3]]
                })
            }
        };
        collect(new_prefix.into_iter().chain(new_id))
    }
}

fn collect(bytes: impl Iterator<Item = u8>) -> Ipv6Addr {
    let mut all = [0u8; 16];
    for (a, b) in all.iter_mut().zip(bytes) {
        *a = b;
    }
    Ipv6Addr::from(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pseudonyms() -> Pseudonyms {
        Pseudonyms::new(SipHash::new(&[42; 16]))
    }

    #[test]
    fn what_everybody_has_is_kept() {
        let mut p = pseudonyms();
        for kept in [
            "0.0.0.0",
            "127.0.0.1",
            "127.0.0.53",
            "255.255.255.255",
            "255.255.240.0",
            "224.0.0.251",
            "239.1.2.3",
        ] {
            let a: Ipv4Addr = kept.parse().unwrap();
            assert_eq!(p.v4(a), a);
        }
        for kept in ["::", "::1", "ff02::1", "ff02::fb"] {
            let a: Ipv6Addr = kept.parse().unwrap();
            assert_eq!(p.v6(a), a);
        }
        for kept in [[0; 6], [0xff; 6], [1, 0x80, 0xc2, 0, 0, 0]] {
            assert_eq!(p.mac(kept), kept);
        }
    }

    #[test]
    fn an_address_made_of_a_mac_stays_so() {
        let mut p = pseudonyms();
        let mac = [0x02, 0xfc, 0, 0, 0, 1];
        let made = |m: [u8; 6]| {
            let [a, b, c, d, e, f] = m;
            Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
        };
        assert_eq!(p.v6(made(mac)), made(p.mac(mac)));
        assert_ne!(p.mac(mac), mac);
        // A solicited-node group ends with an address.
        let group: Ipv6Addr = "ff02::1:ff00:1".parse().unwrap();
        assert_ne!(p.v6(group), group);
        assert!(p.v6(group).is_multicast());
    }

    proptest! {
        #[test]
        fn v4_is_one_to_one_and_keeps_the_24(list in proptest::collection::btree_set(any::<u32>(), 2..60), local in any::<u32>()) {
            let mut p = pseudonyms();
            let mut all: BTreeSet<Ipv4Addr> = list.into_iter().map(Ipv4Addr::from).collect();
            all.extend((0..30).map(|i| Ipv4Addr::from((local & !0xff) | (i * 7 % 256))));
            let mapped: BTreeMap<Ipv4Addr, Ipv4Addr> = all.iter().map(|&a| (a, p.v4(a))).collect();
            prop_assert_eq!(mapped.values().collect::<BTreeSet<_>>().len(), all.len());
            let net = |a: Ipv4Addr| u32::from(a) >> 8;
            for (&a, &x) in &mapped {
                prop_assert_eq!(p.v4(a), x, "the same again");
                for (&b, &y) in &mapped {
                    if a != x && b != y {
                        prop_assert_eq!(net(a) == net(b), net(x) == net(y), "{} {} {} {}", a, b, x, y);
                    }
                }
            }
        }

        #[test]
        fn v6_is_one_to_one_and_keeps_the_64(list in proptest::collection::btree_set(any::<u128>(), 2..40), local in any::<u64>()) {
            let mut p = pseudonyms();
            let mut all: BTreeSet<Ipv6Addr> = list.into_iter().map(Ipv6Addr::from).collect();
            all.extend((0..20u128).map(|i| Ipv6Addr::from((u128::from(local >> 1) << 64) | i)));
            let mapped: Vec<(Ipv6Addr, Ipv6Addr)> = all.iter().map(|&a| (a, p.v6(a))).collect();
            prop_assert_eq!(mapped.iter().map(|m| m.1).collect::<BTreeSet<_>>().len(), all.len());
            let net = |a: Ipv6Addr| u128::from(a) >> 64;
            for &(a, x) in mapped.iter().filter(|m| !m.0.is_multicast() && m.0 != m.1) {
                for &(b, y) in mapped.iter().filter(|m| !m.0.is_multicast() && m.0 != m.1) {
                    prop_assert_eq!(net(a) == net(b), net(x) == net(y));
                }
            }
        }

        #[test]
        fn macs_keep_their_two_bits(mac in any::<[u8; 6]>()) {
            let p = pseudonyms();
            prop_assert_eq!(p.mac(mac)[0] & 3, mac[0] & 3);
        }
    }
}
