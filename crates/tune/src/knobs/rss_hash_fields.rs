//! `nic.NIC.rss.hash_fields.FLOW`: which header fields spread a kind of traffic over queues.

use model::{
    knob::HASH_FIELDS,
    tune::{Disruption, Impact},
};

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, nic_and, usage},
    phase::Phase,
    privilege::Need,
};

/// `ethtool -n NIC rx-flow-hash FLOW` and `-N`.
pub struct RssHashFields;

const FLOWS: [&str; 4] = ["tcp4", "udp4", "tcp6", "udp6"];

fn parts(knob: &str) -> Option<(&str, &'static str)> {
    nic_and(knob, "rss.hash_fields", FLOWS.iter().copied())
}

fn names(bits: u64) -> Vec<String> {
    let known = HASH_FIELDS.iter().filter(|(bit, ..)| bits >> bit & 1 == 1);
    let mut all: Vec<String> = known.map(|(_, name, _)| (*name).to_owned()).collect();
    let rest = HASH_FIELDS.iter().fold(bits, |rest, (bit, ..)| rest & !(1 << bit));
    // Fields of later kernels, so that they are put back too.
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

impl Knob for RssHashFields {
    fn name(&self) -> &'static str {
        "rss_hash_fields"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.rss.hash_fields.tcp4|udp4|tcp6|udp6='src_ip dst_ip src_port dst_port'"
    }

    fn phase(&self, _: &str) -> Phase {
        Phase::Spread
    }

    fn takes(&self, knob: &str) -> bool {
        parts(knob).is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        let (nic, flow) = parts(knob).unwrap_or_default();
        let all = host.ethtool().hash_fields(nic).map_err(|e| TuneError::read(&e))?;
        let bits = all.fields.get(flow);
        bits.map(|bits| names(*bits).join(" "))
            .ok_or_else(|| TuneError::Absent(format!("{knob}: the driver does not tell")))
    }

    fn validate(
        &self,
        case: &Case<'_>,
        knob: &str,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if case.nic(parts(knob).unwrap_or_default().0).is_none() {
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

    fn needs(&self, _: &Host, _: &str) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        let (nic, flow) = parts(knob).unwrap_or_default();
        let bits = bits(value)
            .ok_or_else(|| TuneError::Usage(format!("{knob}: {value:?} are no fields")))?;
        host.set_hash_fields(nic, flow, bits)
    }

    fn impact(&self, case: &Case<'_>, knob: &str, _: &str, _: &str) -> Impact {
        let why = "flows change their queue once; with ports, fragments may overtake each other";
        case.nic_impact(parts(knob).unwrap_or_default().0, Disruption::BriefStall, why)
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        String::new()
    }

    fn sets(&self, _: &str) -> &'static str {
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
