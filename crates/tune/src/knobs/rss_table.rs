//! `nic.NIC.rss.table`: which queue each hash value goes to.

use model::tune::{Radius, Reach};

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, nic_of, number, usage},
};

/// `ethtool -x` and `-X`, the default context. A value is the queues in order, or `equal N`.
pub struct RssTable;

fn nic(knob: &str) -> &str {
    nic_of(knob, "rss.table").unwrap_or_default()
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split_whitespace().map(|w| w.parse().ok()).collect()
}

impl Knob for RssTable {
    fn name(&self) -> &'static str {
        "rss_table"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.rss.table='equal N' or 'QUEUE QUEUE …'"
    }

    fn phase(&self) -> u8 {
        55
    }

    fn takes(&self, knob: &str) -> bool {
        !nic(knob).is_empty()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        let rss = host.ethtool().rss(nic(knob)).map_err(|e| TuneError::read(&e))?;
        if rss.indir.is_empty() {
            return Err(TuneError::Absent(format!("{knob}: the driver shows no table")));
        }
        Ok(rss.indir.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))
    }

    fn validate(
        &self,
        case: &Case<'_>,
        knob: &str,
        old: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let Some(nic) = case.nic(nic(knob)) else { return cannot("no such interface") };
        let size = old.split_whitespace().count();
        let rings = nic.rss.known().and_then(|r| r.rings.get()).unwrap_or(u32::MAX);
        let table = match wanted.strip_prefix("equal ") {
            Some(n) => {
                let n = number(n.trim(), 1, u64::from(rings).min(1 << 16), "queues")? as u32;
                (0..size as u32).map(|i| i % n).collect()
            }
            None => match numbers(wanted) {
                Some(table) => table,
                None => return usage(format!("{wanted:?} is neither 'equal N' nor queues")),
            },
        };
        if table.len() != size {
            return usage(format!("the table has {size} places, not {}", table.len()));
        }
        if let Some(beyond) = table.iter().find(|q| **q >= rings) {
            return cannot(format!("there is no queue {beyond}: the driver has {rings}"));
        }
        Ok(table.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        let table = numbers(value)
            .ok_or_else(|| TuneError::Usage(format!("{knob}: {value:?} holds no queues")))?;
        host.set_rss_table(nic(knob), &table)
    }

    fn radius(&self, case: &Case<'_>, knob: &str, _: &str, _: &str) -> Radius {
        let why = "flows change their queue once, and their packets their order";
        case.nic_radius(nic(knob), Reach::BriefStall, why)
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        String::new()
    }

    fn sets(&self, _: &str) -> &'static str {
        "rss"
    }

    fn command(&self, knob: &str, new: &str) -> String {
        format!("ethtool -X {} … (queues in order: {new})", nic(knob))
    }
}
