//! One PCI function: its link, and its request sizes.

use model::{BitsPerSec, Bytes, Reading, nic::PciFunction};
use parse::{
    ParseError,
    pci_config::{self, ListEnd, PciConfig},
};

use crate::{ReadError, Root, error::reading};

/// As much configuration space as capabilities stand in; the extended part beyond is slow to
/// read and holds nothing that is judged here.
const CONFIG_BYTES: usize = 256;
/// What a reader without `CAP_SYS_ADMIN` gets of it.
const UNPRIVILEGED_BYTES: usize = 64;

/// Reads the function in the folder `dir` (`/sys/devices/pci0000:00/0000:00:03.0`).
///
/// A virtual function of SR-IOV has no link and no request sizes (SR-IOV 1.1 §3.5: reserved, the
/// physical function's apply), so the result has its physical function's. A guest does not see that
/// relation.
pub fn read(root: &Root, dir: &str) -> PciFunction {
    let physical = format!("{dir}/physfn");
    let port = if root.link(&physical).is_ok() { physical.as_str() } else { dir };
    let link = |name: &str, parser: fn(&[u8]) -> Result<Option<u32>, ParseError>| {
        let path = format!("{port}/{name}");
        root.parsed(&path, parser).and_then(|known| match known {
            Some(n) => Reading::Known(n),
            None => Reading::absent(format!("{path}: the kernel does not know")),
        })
    };
    let speed = |name: &str| link(name, parse::pci_link::speed_mts);
    let lanes = |name: &str| link(name, parse::pci_link::lanes);
    let hex = |name: &str, digits: usize| {
        root.parsed(&format!("{dir}/{name}"), parse::text::hex).map(|n| format!("{n:0digits$x}"))
    };
    let (link_speed_mts, link_width) = (speed("current_link_speed"), lanes("current_link_width"));
    let path = format!("{port}/config");
    let config = Config { path: &path, space: config(root, &path) };
    PciFunction {
        vendor_id: hex("vendor", 4),
        device_id: hex("device", 4),
        class: hex("class", 6),
        usable_bps: link_speed_mts
            .as_ref()
            .and_then(|&mts| link_width.as_ref().map(|&lanes| usable(mts, lanes))),
        link_speed_mts,
        max_link_speed_mts: speed("max_link_speed"),
        link_width,
        max_link_width: lanes("max_link_width"),
        read_request_bytes: config.express(|e| e.read_request_bytes),
        max_payload_bytes: config.express(|e| e.max_payload_bytes),
        pcix_mmrbc_bytes: config.field("no PCI-X capability", |c| c.pcix_mmrbc_bytes),
        iommu: iommu(root, dir),
    }
}

/// Without a group no IOMMU translates the function's DMA. A copied tree may lack the link.
fn iommu(root: &Root, dir: &str) -> Reading<String> {
    let group = format!("{dir}/iommu_group");
    match root.link(&group) {
        Err(ReadError::Absent { .. }) if root.is_whole() => Reading::Known("none".to_owned()),
        _ => root.word(&format!("{group}/type")),
    }
}

/// What a link carries each way, bits a second after line coding, before packet overhead.
///
/// 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s (PCI Express Base 5.0 §4.2.1, §4.2.2); from
/// 64 GT/s on the link runs in flits of 256 bytes of which 236 carry packets (Base 6.0 §4.2.3).
pub fn usable(mts: u32, lanes: u32) -> BitsPerSec {
    let raw = u64::from(mts) * 1_000_000 * u64::from(lanes);
    BitsPerSec(match mts {
        0..8_000 => raw / 10 * 8,
        8_000..64_000 => raw / 130 * 128,
        64_000.. => raw / 256 * 236,
    })
}

/// A configuration space, and whether the reader was kept from the rest of it.
struct Space {
    config: PciConfig,
    withheld: bool,
}

fn config(root: &Root, path: &str) -> Reading<Space> {
    reading(root.read_head(path, CONFIG_BYTES).and_then(|bytes| {
        let config = pci_config::parse(&bytes)
            .map_err(|error| ReadError::Unparsable { path: path.to_owned(), error })?;
        let withheld = config.end == ListEnd::Truncated && bytes.len() == UNPRIVILEGED_BYTES;
        Ok(Space { config, withheld })
    }))
}

struct Config<'a> {
    path: &'a str,
    space: Reading<Space>,
}

impl Config<'_> {
    /// A field of the configuration space, or why there is none.
    fn field(&self, lacks: &str, get: impl Fn(&PciConfig) -> Option<u32>) -> Reading<Bytes> {
        let path = self.path;
        self.space.as_ref().and_then(|space| match get(&space.config) {
            Some(n) => Reading::Known(Bytes(n.into())),
            None if space.withheld => Reading::denied(format!(
                "{path}: only the first {UNPRIVILEGED_BYTES} bytes; CAP_SYS_ADMIN (or root) would \
                 show the rest"
            )),
            None if space.config.end != ListEnd::Complete => {
                Reading::absent(format!("{path}: its capability list breaks off"))
            }
            None => Reading::absent(format!("{path}: {lacks}")),
        })
    }

    fn express(&self, get: impl Fn(&pci_config::Express) -> Option<u32>) -> Reading<Bytes> {
        let lacks = match self.space.known().and_then(|s| s.config.express) {
            Some(_) => "a reserved size",
            None => "no PCI Express capability",
        };
        self.field(lacks, |c| get(c.express.as_ref()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Within the rounding of the kernel's own figures (`pcie_print_link_status`), which it
    /// rounds per lane: "31.504 Gb/s available PCIe bandwidth" for 8 GT/s x4.
    #[test]
    fn usable_is_after_line_coding() {
        for (mts, lanes, mbit) in [
            (2_500, 1, 2_000),
            (5_000, 8, 32_000),
            (8_000, 4, 31_507),
            (8_000, 8, 63_015),
            (16_000, 16, 252_061),
            (32_000, 16, 504_123),
        ] {
            assert_eq!(usable(mts, lanes).0 / 1_000_000, mbit, "{mts} MT/s x{lanes}");
        }
        assert_eq!(usable(64_000, 16).0 / 1_000_000, 944_000);
    }
}
