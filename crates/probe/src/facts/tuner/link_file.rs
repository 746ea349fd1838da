//! systemd `.link` files that set more than a name. udev applies the first file that matches.

use model::tuner::Tuner;
use parse::ini;

use super::{conf_dirs, new, scan::Scan};

/// What a key of `[Link]` sets; `None` for names, addresses and wake-on-LAN.
fn owns(key: &str) -> Option<&'static str> {
    Some(match key {
        "MTUBytes" => "mtu",
        "TransmitQueueLength" => "txqueuelen",
        "RxChannels" | "TxChannels" | "OtherChannels" | "CombinedChannels" | "TransmitQueues"
        | "ReceiveQueues" => "channels",
        "NTupleFilter" => "flow rules",
        "ReceivePacketSteeringCPUMask" => "rps",
        k if k.ends_with("BufferSize") => "rings",
        k if k.contains("Coalesce") => "interrupt coalescing",
        k if k.contains("Offload") || k.contains("VLANCTAG") || k.contains("VLANSTAG") => {
            "offloads"
        }
        k if k.ends_with("FlowControl") => "pause",
        "BitsPerSecond" | "Duplex" | "AutoNegotiation" | "Advertise" => "link settings",
        k if k.starts_with("GenericSegmentOffload") => "offloads",
        _ => return None,
    })
}

pub fn find(scan: &Scan<'_>) -> Vec<Tuner> {
    conf_dirs::files(scan.root, "systemd/network", ".link")
        .into_iter()
        .filter_map(|path| {
            let ini = ini::parse(&scan.root.read(&path).ok()?);
            let mut tuner = new("link_file", path.clone());
            for e in ini.section("Match") {
                tuner.evidence.push(format!("{path}:{}: [Match] {}={}", e.line, e.key, e.value));
            }
            for e in ini.section("Link") {
                let Some(what) = owns(&e.key) else { continue };
                if !tuner.owns.iter().any(|o| o == what) {
                    tuner.owns.push(what.into());
                }
                tuner.evidence.push(format!("{path}:{}: {}={}", e.line, e.key, e.value));
            }
            tuner.settings_files = vec![path];
            (!tuner.owns.is_empty()).then_some(tuner)
        })
        .collect()
}
