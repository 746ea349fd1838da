//! All figures of one scrape, and the families that they make.

use model::{Facts, Finding, Reading, Samples, tune::Status};

use crate::{
    Family, cpu, host,
    host::Process,
    network,
    probes::{ProbeTotals, probe_families},
    totals::Totals,
};

/// What one page is made of.
#[derive(Debug)]
pub struct Scrape<'a> {
    /// Counters since boot, read for this scrape.
    pub samples: Reading<&'a Samples>,
    /// Sums of the intervals so far.
    pub totals: &'a Totals,
    /// What the interfaces and interrupts are, as last read.
    pub facts: Reading<&'a Facts>,
    /// Findings of the last interval, by rank.
    pub findings: Reading<&'a [Finding]>,
    /// Changes in force, as last read.
    pub changes: Reading<&'a Status>,
    pub probes: &'a [ProbeTotals],
    pub process: Process,
    pub version: &'a str,
}

/// The families of a scrape, always in the same order. What is not known has no series.
pub fn families(scrape: &Scrape<'_>) -> Vec<Family> {
    let Scrape { totals, .. } = scrape;
    let mut all = host::exporter(scrape.version, &scrape.process, totals);
    all.extend(host::findings(&scrape.findings));
    all.extend(host::changes(&scrape.changes));
    all.extend([cpu::softirq_time(totals), cpu::observed(totals), network::drops(totals)]);
    all.push(cpu::waits(totals));
    if let Reading::Known(samples) = scrape.samples {
        all.extend(cpu::counts(samples));
        all.extend(network::protocols(samples));
        if let Reading::Known(facts) = scrape.facts {
            let nics = network::chosen(facts);
            all.extend(network::nics(samples, &nics));
            all.extend(network::interrupts(samples, facts, &nics));
        }
    }
    all.extend(probe_families(scrape.probes));
    all
}
