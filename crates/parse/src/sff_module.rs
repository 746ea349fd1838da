//! The memory of a pluggable transceiver, as far as `doctor` judges it: its temperature and its own
//! alarms.
//!
//! **Source**: SFF-8024 table 4-1 (identifiers); SFF-8472 tables 8-1, 9-5, 9-11, 9-12 (SFP: byte 92
//! of address A0h, bytes 0, 96, 112 to 117 of A2h); SFF-8636 tables 6-6 to 6-8 (QSFP: bytes 6 to
//! 14, 22); CMIS 5.0 tables 8-7 and 8-8 (QSFP-DD, OSFP: bytes 9, 14).

use crate::netlink::be16_at;

/// What a transceiver says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// In thousandths of a degree Celsius.
    pub temperature_millicelsius: Option<i32>,
    /// The temperature from which it gives an alarm.
    pub high_alarm_millicelsius: Option<i32>,
    /// Alarms that are on, in `ethtool -m`'s words.
    pub alarms: Vec<String>,
    /// Warnings that are on.
    pub warnings: Vec<String>,
}

/// Where a transceiver's diagnostics are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// SFP: in the first half of another address, A2h.
    Sff8472,
    /// QSFP: in the half that was read.
    Sff8636,
    /// QSFP-DD, OSFP and the like: in the half that was read.
    Cmis,
}

/// The layout by the first 128 bytes of address A0h; `None` where it has no diagnostics or is of
/// another kind.
pub fn layout(lower: &[u8]) -> Option<Layout> {
    /// Bit 6 of byte 92: digital diagnostics are implemented.
    const DIAGNOSTICS: u8 = 0x40;
    match lower.first()? {
        0x03 => (lower.get(92)? & DIAGNOSTICS != 0).then_some(Layout::Sff8472),
        0x0c | 0x0d | 0x11 => Some(Layout::Sff8636),
        0x18 | 0x19 | 0x1e | 0x1f => Some(Layout::Cmis),
        _ => None,
    }
}

/// The diagnostics in 128 bytes of this layout; `None` where they are cut off.
pub fn diagnostics(layout: Layout, bytes: &[u8]) -> Option<Diagnostics> {
    match layout {
        Layout::Sff8472 => sfp(bytes),
        Layout::Sff8636 => qsfp(bytes),
        Layout::Cmis => cmis(bytes),
    }
}

/// 16 bits with sign, in 256ths of a degree.
fn temperature(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from(be16_at(bytes, at)?.cast_signed()) * 1000 / 256)
}

/// The names of the bits that are on, the highest bit first.
fn on(byte: u8, names: &[&str]) -> Vec<String> {
    let bits = names.iter().enumerate();
    bits.filter(|(n, _)| byte & (0x80 >> n) != 0).map(|(_, name)| (*name).to_owned()).collect()
}

fn sfp(bytes: &[u8]) -> Option<Diagnostics> {
    const FIRST: [&str; 8] = [
        "temperature high",
        "temperature low",
        "voltage high",
        "voltage low",
        "bias current high",
        "bias current low",
        "output power high",
        "output power low",
    ];
    const SECOND: [&str; 2] = ["rx power high", "rx power low"];
    let flags = |first: usize| {
        let mut all = on(*bytes.get(first)?, &FIRST);
        all.extend(on(*bytes.get(first + 1)?, &SECOND));
        Some(all)
    };
    Some(Diagnostics {
        temperature_millicelsius: temperature(bytes, 96),
        high_alarm_millicelsius: temperature(bytes, 0),
        alarms: flags(112)?,
        warnings: flags(116)?,
    })
}

fn qsfp(bytes: &[u8]) -> Option<Diagnostics> {
    let mut found =
        Diagnostics { temperature_millicelsius: temperature(bytes, 22), ..Diagnostics::default() };
    // Four bits each: alarm high, alarm low, warning high, warning low.
    let mut four = |bits: u8, what: &str, channel: &str| {
        let name = |end: &str| format!("{what} {end}{channel}");
        let lists = [&mut found.alarms, &mut found.warnings];
        for (list, pair) in lists.into_iter().zip([bits >> 2, bits]) {
            list.extend((pair & 2 != 0).then(|| name("high")));
            list.extend((pair & 1 != 0).then(|| name("low")));
        }
    };
    four(bytes.get(6)? >> 4, "temperature", "");
    four(bytes.get(7)? >> 4, "voltage", "");
    for (at, what) in [(9, "rx power"), (11, "bias current"), (13, "output power")] {
        for pair in 0..2 {
            let byte = *bytes.get(at + pair)?;
            four(byte >> 4, what, &format!(" (channel {})", 2 * pair + 1));
            four(byte & 0xf, what, &format!(" (channel {})", 2 * pair + 2));
        }
    }
    Some(found)
}

fn cmis(bytes: &[u8]) -> Option<Diagnostics> {
    let byte = *bytes.get(9)?;
    // From bit 0 on: high and low alarm, high and low warning, first of the temperature.
    let pick = |bit: u8, name: &str| (byte >> bit & 1 != 0).then(|| name.to_owned());
    let of = |first: u8| {
        let temperature = [pick(first, "temperature high"), pick(first + 1, "temperature low")];
        let voltage = [pick(first + 4, "voltage high"), pick(first + 5, "voltage low")];
        temperature.into_iter().chain(voltage).flatten().collect()
    };
    Some(Diagnostics {
        temperature_millicelsius: temperature(bytes, 14),
        high_alarm_millicelsius: None,
        alarms: of(0),
        warnings: of(2),
    })
}

/// What `ethtool -m` prints of the same: `Module temperature : 45.32 degrees C`, and lines that end in
/// `alarm : On` or `warning : On`. `None` for other text, or a transceiver without diagnostics.
pub fn printed(bytes: &[u8]) -> Option<Diagnostics> {
    let text = String::from_utf8_lossy(bytes);
    let mut found = Diagnostics::default();
    let mut is_known = false;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        let degrees = || {
            let number: f64 = value.split_once(" degrees C")?.0.trim().parse().ok()?;
            (number.abs() < 1000.0).then_some((number * 1000.0).round() as i32)
        };
        match key {
            "Module temperature" => found.temperature_millicelsius = degrees(),
            "Module temperature high alarm threshold" => found.high_alarm_millicelsius = degrees(),
            _ => {
                let (name, channel) = key.split_once('(').map_or((key, ""), |(n, c)| (n.trim(), c));
                let list = match name.rsplit_once(' ') {
                    Some((_, "alarm")) => &mut found.alarms,
                    Some((_, "warning")) => &mut found.warnings,
                    _ => continue,
                };
                is_known = true;
                if value.eq_ignore_ascii_case("on") {
                    list.push(words(name, channel.trim_end_matches(')')));
                }
            }
        }
    }
    (is_known || found.temperature_millicelsius.is_some()).then_some(found)
}

/// `Laser rx power low alarm`, `Channel 1` as `rx power low (channel 1)`.
fn words(name: &str, channel: &str) -> String {
    let short = name.rsplit_once(' ').map_or(name, |(short, _)| short);
    let short = ["Laser ", "Module "].iter().find_map(|w| short.strip_prefix(w)).unwrap_or(short);
    match channel.rsplit_once(' ') {
        Some((_, number)) => format!("{short} (channel {number})"),
        None => short.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(values: &[(usize, u8)]) -> Vec<u8> {
        let mut bytes = vec![0; 128];
        for (at, value) in values {
            bytes[*at] = *value;
        }
        bytes
    }

    #[test]
    fn an_sfp_says_its_temperature_and_what_is_wrong() {
        assert_eq!(layout(&memory(&[(0, 3), (92, 0x68)])), Some(Layout::Sff8472));
        assert_eq!(layout(&memory(&[(0, 3)])), None, "a copper cable has no diagnostics");
        // 45.5 °C of at most 75, RX power low: alarm and warning.
        let bytes = memory(&[(0, 75), (96, 45), (97, 0x80), (113, 0x40), (117, 0x40)]);
        let found = diagnostics(Layout::Sff8472, &bytes).unwrap();
        assert_eq!(found.temperature_millicelsius, Some(45_500));
        assert_eq!(found.high_alarm_millicelsius, Some(75_000));
        assert_eq!(
            (found.alarms, found.warnings),
            (vec!["rx power low".to_owned()], vec!["rx power low".into()])
        );
        assert_eq!(diagnostics(Layout::Sff8472, &bytes[..100]), None);
        let cold = diagnostics(Layout::Sff8472, &memory(&[(96, 0xf6)])).unwrap();
        assert_eq!(cold.temperature_millicelsius, Some(-10_000));
    }

    #[test]
    fn a_qsfp_says_it_by_channel() {
        assert_eq!(layout(&memory(&[(0, 0x11)])), Some(Layout::Sff8636));
        // High temperature warning; RX power of channel 3 low alarm; bias of channel 2 high alarm.
        let bytes = memory(&[(22, 70), (6, 0x20), (10, 0x40), (11, 0x08)]);
        let found = diagnostics(Layout::Sff8636, &bytes).unwrap();
        assert_eq!(found.temperature_millicelsius, Some(70_000));
        assert_eq!(found.alarms, ["rx power low (channel 3)", "bias current high (channel 2)"]);
        assert_eq!(found.warnings, ["temperature high"]);
    }

    #[test]
    fn cmis_has_its_flags_from_the_lowest_bit_on() {
        assert_eq!(layout(&memory(&[(0, 0x18)])), Some(Layout::Cmis));
        let found = diagnostics(Layout::Cmis, &memory(&[(9, 0x21), (14, 80)])).unwrap();
        assert_eq!(found.temperature_millicelsius, Some(80_000));
        assert_eq!(found.alarms, ["temperature high", "voltage low"]);
        assert!(found.warnings.is_empty());
        assert_eq!(layout(&[]), None);
    }

    #[test]
    fn what_ethtool_prints_of_it() {
        let text = b"\tIdentifier                                : 0x03 (SFP)\n\
            \tModule temperature                        : 33.50 degrees C / 92.30 degrees F\n\
            \tLaser rx power low alarm                  : On\n\
            \tLaser rx power low warning                : On\n\
            \tModule temperature high alarm             : Off\n\
            \tLaser rx power high alarm   (Channel 2)   : On\n\
            \tModule temperature high alarm threshold   : 75.00 degrees C / 167.00 degrees F\n";
        let found = printed(text).unwrap();
        assert_eq!(found.temperature_millicelsius, Some(33_500));
        assert_eq!(found.high_alarm_millicelsius, Some(75_000));
        assert_eq!(found.alarms, ["rx power low", "rx power high (channel 2)"]);
        assert_eq!(found.warnings, ["rx power low"]);
        assert_eq!(printed(b"netlink error: Operation not supported\n"), None);
        assert_eq!(printed(b"\tIdentifier : 0x03 (SFP)\n\tVendor name : X\n"), None);
    }
}
