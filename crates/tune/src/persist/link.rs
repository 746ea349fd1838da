//! systemd `.link` options that correspond to knobs of an interface. systemd.link(5) gives the
//! version that introduced each.

/// Option, value, and the first systemd version with the option.
pub type LinkOption = (&'static str, String, u32);

/// The options for a knob (without `nic.NAME.`); `None` if a `.link` file has none for it.
pub fn options(knob: &str, value: &str) -> Option<Vec<LinkOption>> {
    if knob == "channels" {
        return channels(value);
    }
    let (key, since) = match knob {
        "mtu" => ("MTUBytes", 211),
        "txqueuelen" => ("TransmitQueueLength", 248),
        "rings.rx" => ("RxBufferSize", 244),
        "rings.rx_mini" => ("RxMiniBufferSize", 246),
        "rings.rx_jumbo" => ("RxJumboBufferSize", 246),
        "rings.tx" => ("TxBufferSize", 244),
        "coalesce.adaptive_rx" => ("UseAdaptiveRxCoalesce", 250),
        "coalesce.adaptive_tx" => ("UseAdaptiveTxCoalesce", 250),
        "coalesce.rx_max_frames" => ("RxMaxCoalescedFrames", 250),
        "coalesce.tx_max_frames" => ("TxMaxCoalescedFrames", 250),
        "coalesce.rx_usecs" => ("RxCoalesceSec", 250),
        "coalesce.rx_usecs_irq" => ("RxCoalesceIrqSec", 250),
        "coalesce.tx_usecs" => ("TxCoalesceSec", 250),
        "coalesce.tx_usecs_irq" => ("TxCoalesceIrqSec", 250),
        "pause.rx" => ("RxFlowControl", 246),
        "pause.tx" => ("TxFlowControl", 246),
        "pause.autoneg" => ("AutoNegotiationFlowControl", 246),
        "features.rx-checksum" => ("ReceiveChecksumOffload", 245),
        "features.rx-gro" => ("GenericReceiveOffload", 229),
        "features.rx-lro" => ("LargeReceiveOffload", 229),
        "features.tx-generic-segmentation" => ("GenericSegmentationOffload", 229),
        "features.tx-tcp-segmentation" => ("TCPSegmentationOffload", 229),
        "features.tx-tcp6-segmentation" => ("TCP6SegmentationOffload", 229),
        _ => return None,
    };
    let value = match value {
        "on" if !knob.starts_with("rings") => "yes".to_owned(),
        "off" if !knob.starts_with("rings") => "no".to_owned(),
        _ if knob.contains("usecs") => format!("{value}us"),
        _ => value.to_owned(),
    };
    Some(vec![(key, value, since)])
}

/// Options for a channel count such as `combined 4` or `rx 2 tx 2`.
fn channels(value: &str) -> Option<Vec<LinkOption>> {
    let words: Vec<&str> = value.split_whitespace().collect();
    let one = |pair: &[&str]| {
        let [name, count] = pair else { return None };
        let key = match *name {
            "rx" => "RxChannels",
            "tx" => "TxChannels",
            "other" => "OtherChannels",
            "combined" => "CombinedChannels",
            _ => return None,
        };
        // A count of 0 follows from the other kinds.
        Some((key, (*count).to_owned(), 239))
    };
    let all: Vec<LinkOption> = words.chunks(2).map(one).collect::<Option<_>>()?;
    Some(all.into_iter().filter(|o| o.1 != "0").collect())
}

/// The corresponding property of a NetworkManager connection, if it has one.
pub fn property(knob: &str, value: &str) -> Option<String> {
    let switch = match value {
        "on" => "1",
        "off" => "0",
        v => v,
    };
    if knob == "mtu" {
        return Some(format!("802-3-ethernet.mtu {value}"));
    }
    let (group, name) = knob.split_once('.')?;
    let name = name.replace('_', "-");
    match group {
        "rings" => Some(format!("ethtool.ring-{name} {value}")),
        "coalesce" => {
            Some(format!("ethtool.coalesce-{} {switch}", name.replace("max-frames", "frames")))
        }
        "features" => Some(format!("ethtool.feature-{name} {value}")),
        "pause" => Some(format!("ethtool.pause-{name} {value}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_are_options() {
        let of = |k, v| {
            let all = options(k, v)?;
            Some(all.iter().map(|o| format!("{}={}", o.0, o.1)).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(of("mtu", "9000").unwrap(), "MTUBytes=9000");
        assert_eq!(of("channels", "combined 4").unwrap(), "CombinedChannels=4");
        assert_eq!(of("channels", "rx 2 tx 2").unwrap(), "RxChannels=2 TxChannels=2");
        assert_eq!(of("coalesce.rx_usecs", "0").unwrap(), "RxCoalesceSec=0us");
        assert_eq!(of("coalesce.adaptive_rx", "on").unwrap(), "UseAdaptiveRxCoalesce=yes");
        assert_eq!(of("features.tx-tcp-segmentation", "off").unwrap(), "TCPSegmentationOffload=no");
        assert_eq!(of("gro_flush_timeout", "0"), None);
        assert_eq!(
            property("coalesce.rx_max_frames", "8").unwrap(),
            "ethtool.coalesce-rx-frames 8"
        );
    }
}
