//! Turns the sums into the document.

use std::{collections::BTreeMap, io};

use model::{
    Nanos, Reading, SCHEMA_VERSION, Warning,
    passive::{ConnectionClass, Cost, PassiveDocument, TimesNs},
};

use super::{BUDGET, Observer};
use crate::{
    bpf::exchanges::{Class, ExchangesPart, PROGRAMS, READY, Server, Sums, TCP, times},
    watch::{
        ObserveWhen,
        duty_cycle::{Part as _, Runs},
    },
};

impl Observer {
    /// All that was seen in a window of this length.
    pub(super) fn document(
        &self,
        window_ns: u64,
        interrupted: bool,
    ) -> io::Result<PassiveDocument> {
        let servers = self.exchanges.servers()?;
        let window = window_ns as f64;
        let observed_share =
            if window > 0.0 { (self.spread.observed_ns() / window).min(1.0) } else { 1.0 };
        let mut classes: Vec<ConnectionClass> = together(self.exchanges.classes()?)
            .iter()
            .filter(|(_, sums)| sums.exchanges > 0)
            .map(|(class, sums)| self.class(class, sums, &servers, window))
            .collect();
        classes
            .sort_by(|a, b| b.exchanges.cmp(&a.exchanges).then_with(|| a.process.cmp(&b.process)));
        let exchanges = classes.iter().map(|c| c.exchanges).sum();
        Ok(PassiveDocument {
            schema_version: SCHEMA_VERSION,
            kind: "explain-passive".into(),
            started_unix_s: self.started_unix_s,
            ports: if self.services.any_port { vec![] } else { self.services.ports.clone() },
            pids: self.services.pids.clone(),
            window_ns: Nanos(window_ns),
            observed_share,
            cost: self.cost(window_ns, exchanges),
            warnings: self.warnings(&classes)?,
            classes,
            interrupted,
        })
    }

    fn class(
        &self,
        class: &Class,
        sums: &Sums,
        servers: &[Server],
        window_ns: f64,
    ) -> ConnectionClass {
        let of = |part: ExchangesPart| {
            let part = part as usize;
            let buckets = sums.buckets.get(part)?;
            times(buckets, sums.sum_ns.get(part).copied().unwrap_or(0))
        };
        let read = |part: ExchangesPart, why: &str| match of(part) {
            Some(times) => Reading::Known(times),
            None => Reading::absent(why),
        };
        let tcp = class.kind == TCP;
        let no_path = if tcp { "nothing was acknowledged" } else { "a Unix socket has no path" };
        let queueing = match self.exchanges.object.refused(READY.program) {
            Reading::Known(()) => {
                read(ExchangesPart::Queueing, "no request's arrival was observed")
            }
            why => why.and_then(|()| Reading::absent("not attached")),
        };
        let service = of(ExchangesPart::Service).unwrap_or_default();
        let (path, least) =
            (read(ExchangesPart::Path, no_path), read(ExchangesPart::LeastPath, no_path));
        let here = service.mean + queueing.known().map_or(0.0, |q| q.mean);
        let share = |path: &Reading<TimesNs>| path.clone().map(|p| p.mean / (p.mean + here));
        let mut pids: Vec<u32> = servers
            .iter()
            .filter(|s| s.class == Class { shard: 0, ..*class })
            .map(|s| s.pid)
            .collect();
        pids.sort_unstable();
        let each = |sum: u64| sum as f64 / sums.exchanges as f64;
        ConnectionClass {
            port: if tcp { Reading::Known(class.port) } else { Reading::absent("a Unix socket") },
            transport: if tcp { "tcp" } else { "unix" }.into(),
            process: name(class),
            pids,
            exchanges: sums.exchanges,
            exchanges_per_s: self.spread.whole(class) * 1e9 / window_ns.max(1.0),
            request_bytes: each(sums.request_bytes),
            response_bytes: each(sums.response_bytes),
            response_calls: each(sums.sends),
            network_share_low: share(&least),
            network_share_high: share(&path),
            path_rtt_ns: path,
            path_least_rtt_ns: least,
            queueing_ns: queueing,
            wakeup_ns: read(ExchangesPart::Wakeup, "no request was seen to wake a reader up"),
            service_ns: service,
            timed_by_call: sums.by_call,
        }
    }

    fn cost(&self, window_ns: u64, exchanges: u64) -> Cost {
        let now = self.exchanges.runs();
        let ns = self.exchanges.ns_per_run();
        let grown = grown(&now, &self.before);
        let by_cpu = |runs: &Vec<u64>| -> f64 {
            runs.iter().zip(&ns).map(|(runs, ns)| *runs as f64 * ns).sum()
        };
        let all: f64 = grown.iter().map(by_cpu).sum();
        let most = grown.iter().map(by_cpu).fold(0.0, f64::max);
        let whole: BTreeMap<&str, u64> = PROGRAMS
            .iter()
            .enumerate()
            .map(|(i, p)| (p.program, grown.iter().filter_map(|runs| runs.get(i)).sum()))
            .collect();
        Cost {
            programs: self.exchanges.object.status(&whole),
            programs_ns: Reading::Known(Nanos(all as u64)),
            ns_per_exchange: match exchanges {
                0 => Reading::absent("there was no exchange"),
                n => Reading::Known(all / n as f64),
            },
            busiest_cpu_share: Reading::Known(most / window_ns.max(1) as f64),
            budget_share: match self.when {
                ObserveWhen::Auto => Reading::Known(BUDGET),
                _ => Reading::absent("all was to be observed"),
            },
        }
    }

    fn warnings(&self, classes: &[ConnectionClass]) -> io::Result<Vec<Warning>> {
        let cpus = self.exchanges.cpus()?;
        let lost: u64 = cpus.iter().map(|(_, s)| s.lost).sum();
        let unnamed: u64 = cpus.iter().map(|(_, s)| s.unnamed).sum();
        let mut all = vec![];
        if lost > 0 {
            all.push(Warning::CallsNotCounted { calls: lost });
        }
        if unnamed > 0 {
            all.push(Warning::ProcessesNotComplete);
        }
        if !self.exchanges.object.runs(READY.program) {
            all.push(Warning::QueueingNotKnown);
        }
        if classes.iter().any(|c| c.timed_by_call * 10 > c.exchanges) {
            all.push(Warning::ServiceContainsSend);
        }
        Ok(all)
    }
}

/// All shards of each class as one.
pub(super) fn together(shards: Vec<(Class, Sums)>) -> BTreeMap<Class, Sums> {
    let mut all: BTreeMap<Class, Sums> = BTreeMap::new();
    for (class, sums) in shards {
        all.entry(Class { shard: 0, ..class }).or_default().add(&sums);
    }
    all
}

/// Runs by CPU since then.
fn grown(now: &Runs, before: &Runs) -> Vec<Vec<u64>> {
    let before: BTreeMap<_, _> = before.iter().map(|(cpu, runs)| (*cpu, runs)).collect();
    let one = |(cpu, now): &(_, Vec<u64>)| {
        let then = before.get(cpu).map_or(&[][..], |runs| runs.as_slice());
        let then = then.iter().chain(std::iter::repeat(&0));
        now.iter().zip(then).map(|(now, then)| now.wrapping_sub(*then)).collect()
    };
    now.iter().map(one).collect()
}

fn name(class: &Class) -> String {
    let end = class.name.iter().position(|b| *b == 0).unwrap_or(class.name.len());
    String::from_utf8_lossy(class.name.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_one_class_and_names_end_at_their_zero() {
        let mut class = Class { port: 80, ..Class::default() };
        class.name[..5].copy_from_slice(b"nginx");
        let mut one = Sums::default();
        (one.exchanges, one.sends, one.buckets[0][7]) = (2, 3, 2);
        let shards = vec![(class, one), (Class { shard: 9, ..class }, one)];
        let all = together(shards);
        let (found, sums) = all.first_key_value().unwrap();
        assert_eq!((found, all.len(), name(found).as_str()), (&class, 1, "nginx"));
        assert_eq!((sums.exchanges, sums.sends, sums.buckets[0][7]), (4, 6, 4));
        let full = Class { name: *b"sixteen-letters!", ..class };
        assert_eq!(name(&full), "sixteen-letters!");
    }

    #[test]
    fn runs_grow_by_cpu_and_a_new_cpu_grows_from_nothing() {
        use model::CpuId;
        let before = vec![(CpuId(0), vec![5, 5])];
        let now = vec![(CpuId(0), vec![7, 5]), (CpuId(3), vec![1, 2])];
        assert_eq!(grown(&now, &before), [[2, 0], [1, 2]]);
    }
}
