//! `nic.NIC.rss.table`: which queue each hash value goes to.

use model::tune::Impact;

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Case, Knob, Refusal, Undone, cannot, nic_of, number, usage},
    phase::Phase,
    privilege::Need,
};

/// `ethtool -x` and `-X`, the default context. A value is the queues in order, or `equal N`.
pub struct RssTable;

fn nic(knob: &str) -> &str {
    nic_of(knob, "rss.table").unwrap_or_default()
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split_whitespace().map(|w| w.parse().ok()).collect()
}

/// Whether all queues come in turn, as in a table that nobody set.
pub(super) fn is_in_turn(table: &[u32]) -> bool {
    let queues = table.iter().max().map_or(1, |m| m.saturating_add(1));
    (0u32..).zip(table).all(|(i, q)| i % queues == *q)
}

impl Knob for RssTable {
    fn name(&self) -> &'static str {
        "rss_table"
    }

    fn spelling(&self) -> &'static str {
        "nic.NIC.rss.table='equal N' or 'QUEUE QUEUE …'"
    }

    fn phase(&self, _: &str) -> Phase {
        Phase::Spread
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

    fn needs(&self, _: &Host, _: &str) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        let table = numbers(value)
            .ok_or_else(|| TuneError::Usage(format!("{knob}: {value:?} holds no queues")))?;
        host.set_rss_table(nic(knob), &table)
    }

    /// The kernel refuses fewer channels than a table that was set by hand uses: one that looks as
    /// the kernel makes it is put back by the kernel, so that this is over too.
    fn undo(&self, host: &Host, knob: &str, old: &str, _: &str) -> Result<Undone, TuneError> {
        let in_turn = numbers(old).is_some_and(|t| is_in_turn(&t));
        match self.read(host, knob) {
            Ok(now) if now == old => return Ok(Undone::Restored(now)),
            Err(TuneError::Absent(why)) => return Ok(Undone::Gone(why)),
            _ => {}
        }
        if !in_turn || host.set_rss_table(nic(knob), &[]).is_err() || self.read(host, knob)? != old
        {
            self.write(host, knob, old)?;
        }
        self.came_back(host, knob, old)
    }

    fn undo_text(&self, _: &str) -> String {
        "the old table is written back, one of all queues in turn as `ethtool -X default` does"
            .into()
    }

    fn impact(&self, case: &Case<'_>, knob: &str, _: &str, _: &str) -> Impact {
        case.act_impact(nic(knob), Act::RssTable)
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
    fn the_kernels_own_table_is_known() {
        for table in [&[0, 1, 2, 3, 0, 1, 2, 3][..], &[0, 1, 2, 0], &[0, 0]] {
            assert!(is_in_turn(table), "{table:?}");
        }
        for table in [&[0, 1, 2, 3, 3, 2, 1, 0][..], &[1, 1], &[0, 2, 0, 2], &[u32::MAX]] {
            assert!(!is_in_turn(table), "{table:?}");
        }
    }
}
