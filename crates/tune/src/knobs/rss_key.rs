//! `nic.NIC.rss.key`: the hash key of RSS.

use model::{
    knob::{NicSetting, Target},
    tune::{Disruption, Impact},
};

use crate::{
    Host, TuneError,
    knob::{Kind, Knob, PlanContext, Refusal, cannot, usage},
    need::Need,
    phase::Phase,
};

/// `ethtool -x` and `-X NIC hkey`. A value is bytes in hex, with or without colons, of the driver's
/// key length. `symmetric` repeats 6d:5a, which gives both directions of a flow the same hash (Woo
/// and Park, "Scalable TCP session monitoring with symmetric receive-side scaling", 2012).
pub const KIND: Kind = Kind {
    name: "rss_key",
    spelling: "nic.NIC.rss.key=HEX or symmetric",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Plain("rss.key")) => Some(Box::new(RssKey { nic })),
        _ => None,
    },
};

struct RssKey<'k> {
    nic: &'k str,
}

fn text(key: &[u8]) -> String {
    key.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.trim().bytes().filter(|b| *b != b':').collect();
    let byte = |c: &[u8]| {
        let [_, _] = c else { return None };
        if !c.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        u8::from_str_radix(std::str::from_utf8(c).ok()?, 16).ok()
    };
    digits.chunks(2).map(byte).collect()
}

impl Knob for RssKey<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Plain("rss.key"))
    }

    fn phase(&self) -> Phase {
        Phase::Spread
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let rss = host.ethtool().rss(self.nic).map_err(|e| TuneError::read(&e))?;
        if rss.key.is_empty() {
            return Err(TuneError::Absent(format!("{}: the driver shows no key", self.target())));
        }
        Ok(text(&rss.key))
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        old: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if context.nic(self.nic).is_none() {
            return cannot("no such interface");
        }
        let size = bytes(old).map_or(0, |k| k.len());
        let key = match wanted {
            "symmetric" => (0..size).map(|i| if i % 2 == 0 { 0x6d } else { 0x5a }).collect(),
            hex => match bytes(hex) {
                Some(key) => key,
                None => return usage(format!("{hex:?} is neither hex nor symmetric")),
            },
        };
        if key.len() != size {
            return usage(format!("the key has {size} bytes, not {}", key.len()));
        }
        if key.iter().all(|b| *b == 0) {
            return usage("with a key of zeros all flows go to one queue");
        }
        Ok(text(&key))
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let key = bytes(value)
            .ok_or_else(|| TuneError::Usage(format!("{}: {value:?} is no key", self.target())))?;
        host.set_rss_key(self.nic, &key)
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        let why = "flows change their queue once, and their packets their order";
        context.nic_impact(self.nic, Disruption::BriefStall, why)
    }

    fn sets(&self) -> &'static str {
        "rss"
    }

    /// Some drivers write key and table together.
    fn coupled_settings(&self, _: &Host) -> Vec<String> {
        vec![format!("nic.{}.rss.table", self.nic)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_bytes_with_or_without_colons() {
        assert_eq!(bytes("6d:5a:01\n").unwrap(), [0x6d, 0x5a, 1]);
        assert_eq!(bytes("6d5a01").unwrap(), [0x6d, 0x5a, 1]);
        assert_eq!(text(&[0x6d, 0x5a, 1]), "6d:5a:01");
        for bad in ["6d5", "xy", "6d 5a", "+1"] {
            assert!(bytes(bad).is_none_or(|b| b.is_empty()), "{bad:?} was taken");
        }
    }
}
