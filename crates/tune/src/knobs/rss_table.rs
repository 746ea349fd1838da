//! `nic.NIC.rss.table`: the RSS indirection table, from hash value to queue.

use model::{
    knob::{NicSetting, Target},
    tune::Impact,
};

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Kind, Knob, PlanContext, Refusal, Undone, cannot, number, usage},
    need::Need,
    phase::Phase,
};

/// `ethtool -x` and `-X`, the default context. A value is the queues in order, or `equal N`.
pub const KIND: Kind = Kind {
    name: "rss_table",
    spelling: "nic.NIC.rss.table='equal N' or 'QUEUE QUEUE …'",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Plain("rss.table")) => Some(Box::new(RssTable { nic })),
        _ => None,
    },
};

struct RssTable<'k> {
    nic: &'k str,
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split_whitespace().map(|w| w.parse().ok()).collect()
}

/// Whether all queues come in turn, as in the default table.
pub(super) fn is_in_turn(table: &[u32]) -> bool {
    let queues = table.iter().max().map_or(1, |m| m.saturating_add(1));
    (0u32..).zip(table).all(|(i, q)| i % queues == *q)
}

impl Knob for RssTable<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Plain("rss.table"))
    }

    fn phase(&self) -> Phase {
        Phase::Spread
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let rss = host.ethtool().rss(self.nic).map_err(|e| TuneError::read(&e))?;
        if rss.indir.is_empty() {
            return Err(TuneError::Absent(format!("{}: the driver shows no table", self.target())));
        }
        Ok(rss.indir.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        old: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let Some(nic) = context.nic(self.nic) else { return cannot("no such interface") };
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

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let table = numbers(value).ok_or_else(|| {
            TuneError::Usage(format!("{}: {value:?} holds no queues", self.target()))
        })?;
        host.set_rss_table(self.nic, &table)
    }

    /// The kernel refuses fewer channels than a table set by hand uses. A table equal to the
    /// kernel's default is restored as the default, which also lifts that limit.
    fn undo(&self, host: &Host, old: &str, _: &str) -> Result<Undone, TuneError> {
        let in_turn = numbers(old).is_some_and(|t| is_in_turn(&t));
        match self.read(host) {
            Ok(now) if now == old => return Ok(Undone::Restored(now)),
            Err(TuneError::Absent(why)) => return Ok(Undone::Gone(why)),
            _ => {}
        }
        if !in_turn || host.set_rss_table(self.nic, &[]).is_err() || self.read(host)? != old {
            self.write(host, old)?;
        }
        self.came_back(host, old)
    }

    fn undo_text(&self) -> String {
        "the old table is written back, one of all queues in turn as `ethtool -X default` does"
            .into()
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        context.act_impact(self.nic, Act::RssTable)
    }

    fn sets(&self) -> &'static str {
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
