//! Routes of the main table and their metrics, in the kernel's encoding.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use parse::netlink::{Attribute, Request, attributes, u32_at};
use probe::ask::netlink;

use super::Host;
use crate::TuneError;

/// Bytes of a `struct rtmsg`.
const HEADER: usize = 12;
const MAIN_TABLE: u32 = 254;
/// `RTM_F_CLONED`: an entry of the cache, no route.
const CLONED: u32 = 0x200;
/// `RTNH_F_ONLINK`, the only flag of a next hop that a request may hold.
const ONLINK: u8 = 4;
/// Routes that the kernel makes with an address (`RTPROT_KERNEL`), or by an advertisement (`RTPROT_RA`).
const BY_KERNEL: u8 = 2;
const BY_ADVERTISEMENT: u8 = 9;

// Attributes of include/uapi/linux/rtnetlink.h.
const DST: u16 = 1;
const PRIORITY: u16 = 6;
const METRICS: u16 = 8;
const MULTIPATH: u16 = 9;
const CACHEINFO: u16 = 12;
const TABLE: u16 = 15;
const NH_ID: u16 = 30;
/// `RTAX_LOCK`: the metrics that the kernel must not change by itself, a bit each.
pub const LOCK: u16 = 1;

/// A destination: address and prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    pub address: IpAddr,
    pub bits: u8,
}

/// One route of the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The kernel's `struct rtmsg`, sent back but for flags that only the kernel sets.
    header: [u8; HEADER],
    /// What follows, without the metrics, by number of the attribute.
    attributes: Vec<(u16, Vec<u8>)>,
    /// Number and bytes of each metric.
    pub metrics: Vec<(u16, Vec<u8>)>,
    /// The route's own metric among those to one destination (`RTA_PRIORITY`).
    pub priority: u32,
    to: Prefix,
    /// A lifetime, which a request cannot carry.
    expires: bool,
}

impl Route {
    fn parsed(payload: &[u8]) -> Option<Self> {
        let header: [u8; HEADER] = payload.get(..HEADER)?.try_into().ok()?;
        let six = i32::from(header[0]) == libc::AF_INET6;
        let mut route = Self {
            header,
            attributes: vec![],
            metrics: vec![],
            priority: 0,
            to: Prefix {
                address: if six {
                    Ipv6Addr::UNSPECIFIED.into()
                } else {
                    Ipv4Addr::UNSPECIFIED.into()
                },
                bits: header[1],
            },
            expires: false,
        };
        let mut table = u32::from(header[4]);
        for a in attributes(payload.get(HEADER..)?) {
            match a.kind {
                DST => route.to.address = address(&a)?,
                PRIORITY => route.priority = a.u32()?,
                TABLE => table = a.u32()?,
                METRICS => {
                    route.metrics = a.nested().map(|m| (m.kind, m.bytes.to_vec())).collect();
                    continue;
                }
                // `struct rta_cacheinfo`: rta_expires is its third word.
                CACHEINFO => {
                    route.expires = u32_at(a.bytes, 8).is_some_and(|e| e != 0);
                    continue;
                }
                _ => {}
            }
            route.attributes.push((a.kind, a.bytes.to_vec()));
        }
        let cached = u32_at(payload, 8)? & CLONED != 0;
        (table == MAIN_TABLE && !cached).then_some(route)
    }

    /// Why a change would lose something of it; `None` if nothing.
    pub fn loses(&self) -> Option<&'static str> {
        let six = i32::from(self.header[0]) == libc::AF_INET6;
        let protocol = self.header[5];
        match protocol {
            BY_ADVERTISEMENT if six => {
                Some("a router advertisement made it, and keeps it up to date")
            }
            BY_KERNEL if six => Some("the kernel made it with an address, and keeps it with that"),
            _ if self.expires => Some("it has a lifetime, which a change would end"),
            _ if self.attributes.iter().any(|(id, _)| *id == NH_ID) => {
                Some("it uses a nexthop object, which `ip route change` must name anew")
            }
            _ => None,
        }
    }

    /// The bytes of a metric.
    pub fn metric(&self, id: u16) -> Option<&[u8]> {
        self.metrics.iter().find(|(n, _)| *n == id).map(|(_, bytes)| bytes.as_slice())
    }

    /// Sets a metric, or takes it away.
    pub fn set_metric(&mut self, id: u16, bytes: Option<Vec<u8>>) {
        self.metrics.retain(|(n, _)| *n != id);
        self.metrics.extend(bytes.map(|b| (id, b)));
        self.metrics.sort_by_key(|(n, _)| *n);
    }

    /// The request that replaces it.
    fn request(&self) -> Request {
        let mut header = self.header;
        header[8] &= ONLINK;
        header[9..].fill(0);
        let flags = u16::try_from(libc::NLM_F_REPLACE).unwrap_or_default();
        let mut request = Request::change(libc::RTM_NEWROUTE, flags, &header);
        for (id, bytes) in &self.attributes {
            request = match *id {
                MULTIPATH => request.with(*id, &sendable_hops(bytes)),
                id => request.with(id, bytes),
            };
        }
        if self.metrics.is_empty() {
            return request;
        }
        let mut metrics = Vec::new();
        for (id, bytes) in &self.metrics {
            let length = u16::try_from(bytes.len() + 4).unwrap_or(u16::MAX);
            metrics.extend(length.to_ne_bytes());
            metrics.extend(id.to_ne_bytes());
            metrics.extend(bytes);
            metrics.resize(metrics.len().next_multiple_of(4), 0);
        }
        request.with(METRICS, &metrics)
    }
}

fn address(a: &Attribute<'_>) -> Option<IpAddr> {
    match a.bytes.len() {
        4 => <[u8; 4]>::try_from(a.bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(a.bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

/// Next hops (`struct rtnexthop`) without the flags that the kernel tells and does not take.
fn sendable_hops(bytes: &[u8]) -> Vec<u8> {
    let mut hops = bytes.to_vec();
    let mut at = 0;
    while let Some(length) = hops.get(at..at + 2).and_then(|b| b.try_into().ok()) {
        let Some(flags) = hops.get_mut(at + 2) else { break };
        *flags &= ONLINK;
        match usize::from(u16::from_ne_bytes(length)).next_multiple_of(4) {
            0 => break,
            length => at += length,
        }
    }
    hops
}

impl Host {
    /// The routes of the main table to one destination, by rising metric.
    ///
    /// # Errors
    /// As the kernel answered; a directory tree has none.
    pub fn routes(&self, to: Prefix) -> Result<Vec<Route>, TuneError> {
        let (family, six) = match to.address {
            IpAddr::V4(_) => (libc::AF_INET, ""),
            IpAddr::V6(_) => (libc::AF_INET6, " -6"),
        };
        let what = format!("ip{six} route show {}/{}", to.address, to.bits);
        if !self.is_live() {
            return Err(TuneError::Environment(format!("{what}: a folder has no routes")));
        }
        let mut header = [0; HEADER];
        header[0] = u8::try_from(family).unwrap_or_default();
        let dump = netlink::dump(
            libc::NETLINK_ROUTE,
            &what,
            &Request::dump(libc::RTM_GETROUTE, &header),
            |m| {
                let route = (m.kind == libc::RTM_NEWROUTE).then(|| Route::parsed(m.payload));
                route.flatten().filter(|r| r.to == to)
            },
        );
        let dump = dump.map_err(|e| TuneError::read(&e))?;
        if dump.interrupted {
            return Err(TuneError::Environment(format!("{what}: changes all the time")));
        }
        let mut all = dump.entries;
        all.sort_by_key(|r| r.priority);
        Ok(all)
    }

    /// Replaces a route by itself with other metrics.
    ///
    /// # Errors
    /// As the kernel answered; absent where the route is gone.
    pub fn change_route(&self, what: &str, route: &Route) -> Result<(), TuneError> {
        self.request(what, &route.request())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_lose_the_flags_that_only_the_kernel_sets() {
        let hop = |flags: u8| {
            let mut bytes = 12u16.to_ne_bytes().to_vec();
            bytes.extend([flags, 0, 3, 0, 0, 0, 1, 2, 3, 4]);
            bytes
        };
        let dead = [hop(1 | 4), hop(16)].concat();
        assert_eq!(sendable_hops(&dead), [hop(4), hop(0)].concat());
        assert_eq!(sendable_hops(&[0, 0, 9, 9]), [0, 0, 0, 9]);
        assert_eq!(sendable_hops(&[]), Vec::<u8>::new());
    }
}
