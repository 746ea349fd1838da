//! `nic.NIC.rss.hash_fields.FLOW`: header fields that RSS hashes for a flow type.

use model::{
    knob::{HASH_FIELDS, NicSetting, Target},
    tune::{Disruption, Impact},
};

use crate::{
    Host, TuneError,
    knob::{Kind, Knob, PlanContext, Refusal, cannot, usage},
    need::Need,
    phase::Phase,
};

/// `ethtool -n NIC rx-flow-hash FLOW` and `-N`.
pub const KIND: Kind = Kind {
    name: "rss_hash_fields",
    spelling: "nic.NIC.rss.hash_fields.tcp4|udp4|tcp6|udp6='src_ip dst_ip src_port dst_port'",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::HashFields(flow)) if FLOWS.contains(&flow) => {
            Some(Box::new(RssHashFields { nic, flow }))
        }
        _ => None,
    },
};

struct RssHashFields<'k> {
    nic: &'k str,
    flow: &'k str,
}

const FLOWS: [&str; 4] = ["tcp4", "udp4", "tcp6", "udp6"];

fn names(bits: u64) -> Vec<String> {
    let known = HASH_FIELDS.iter().filter(|(bit, ..)| bits >> bit & 1 == 1);
    let mut all: Vec<String> = known.map(|(_, name, _)| (*name).to_owned()).collect();
    let rest = HASH_FIELDS.iter().fold(bits, |rest, (bit, ..)| rest & !(1 << bit));
    // Unknown fields of later kernels, so that undoing restores them too.
    all.extend((0..64).filter(|b| rest >> b & 1 == 1).map(|b| format!("bit{b}")));
    all
}

fn bits(text: &str) -> Option<u64> {
    text.split_whitespace().try_fold(0, |all, word| {
        let named = HASH_FIELDS.iter().find(|(_, name, _)| *name == word).map(|(bit, ..)| *bit);
        let bit = named.or_else(|| word.strip_prefix("bit")?.parse().ok())?;
        (bit < 64).then(|| all | 1u64 << bit)
    })
}

impl Knob for RssHashFields<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::HashFields(self.flow))
    }

    fn phase(&self) -> Phase {
        Phase::Spread
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let all = host.ethtool().hash_fields(self.nic).map_err(|e| TuneError::read(&e))?;
        let bits = all.fields.get(self.flow);
        bits.map(|bits| names(*bits).join(" ")).ok_or_else(|| {
            TuneError::Absent(format!("{}: the driver does not report it", self.target()))
        })
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if context.nic(self.nic).is_none() {
            return cannot("no such interface");
        }
        match bits(wanted) {
            Some(bits) => Ok(names(bits).join(" ")),
            None => {
                let known: Vec<&str> = HASH_FIELDS.iter().map(|f| f.1).collect();
                usage(format!("{wanted:?}: the fields are {}", known.join(", ")))
            }
        }
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let bits = bits(value).ok_or_else(|| {
            TuneError::Usage(format!("{}: {value:?} are no fields", self.target()))
        })?;
        host.set_hash_fields(self.nic, self.flow, bits)
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        let why = "flows change their queue once; with ports, fragments may overtake each other";
        context.nic_impact(self.nic, Disruption::BriefStall, why)
    }

    fn sets(&self) -> &'static str {
        "rss"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_any_kernel_come_back_as_the_same_bits() {
        for given in [0, 0xf0, 1 << 31 | 0x3e, 1 << 8, u64::MAX] {
            assert_eq!(bits(&names(given).join(" ")), Some(given), "{given:x}");
        }
        assert_eq!(bits("src_ip nonsense"), None);
        assert_eq!(bits("bit64"), None);
    }
}
