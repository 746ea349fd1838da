//! The largest packets of an interface before segmentation and after merging: `ip link`'s
//! `gso_max_size` and its like.

use parse::netlink::{Request, attribute};
use probe::ask::netlink;

use super::Host;
use crate::TuneError;

/// Bytes of a `struct ifinfomsg`.
const HEADER: usize = 16;
/// `IFLA_TSO_MAX_SIZE`: the driver's limit, bytes. Since 5.19.
const TSO_MAX_SIZE: u16 = 59;

/// One size of an interface, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentSize {
    pub now: u32,
    /// The driver's largest; `None` before Linux 5.19.
    pub driver_max: Option<u32>,
}

/// A `struct ifinfomsg` of an interface.
fn header(ifindex: u32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    bytes
}

impl Host {
    /// Reads one size by the number of its attribute (`IFLA_*`).
    ///
    /// # Errors
    /// As the kernel answered; absent on a kernel without it and in a directory tree.
    pub fn segment_size(&self, nic: &str, id: u16, name: &str) -> Result<SegmentSize, TuneError> {
        let what = format!("ip -d link show dev {nic}: {name}");
        if !self.is_live() {
            return Err(TuneError::Environment(format!("{what}: a folder has none")));
        }
        let request = Request::one(libc::RTM_GETLINK, &header(self.ifindex(nic)?));
        let answer = netlink::one(libc::NETLINK_ROUTE, &what, &request, |m| {
            let number = |id| attribute(m.payload, HEADER, id).and_then(|a| a.u32());
            (m.kind == libc::RTM_NEWLINK).then(|| (number(id), number(TSO_MAX_SIZE)))
        });
        match answer.map_err(|e| TuneError::read(&e))? {
            (Some(now), driver_max) => Ok(SegmentSize { now, driver_max }),
            (None, _) => Err(TuneError::Absent(format!("{what}: this kernel has none"))),
        }
    }

    /// Sets one size, in bytes.
    ///
    /// # Errors
    /// As the kernel answered; a directory tree has none.
    pub fn set_segment_size(
        &self,
        nic: &str,
        id: u16,
        name: &str,
        bytes: u32,
    ) -> Result<(), TuneError> {
        let what = format!("ip link set dev {nic} {name} {bytes}");
        if !self.is_live() {
            return Err(TuneError::Environment(format!("{what}: a folder has none")));
        }
        let request = Request::change(libc::RTM_NEWLINK, 0, &header(self.ifindex(nic)?))
            .with(id, &bytes.to_ne_bytes());
        self.request(&what, &request)
    }
}
