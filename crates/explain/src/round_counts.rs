//! Counts over all rounds, also of those without a figure in the document.

use std::{cell::RefCell, collections::BTreeMap};

use model::{
    Warning,
    explain::{Disturbance, ExplainDocument},
};

use crate::workload::Observed;

/// HTTP statuses, failures, and empty rounds so far.
#[derive(Debug, Default)]
pub struct RoundCounts {
    counts: RefCell<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    statuses: BTreeMap<u16, u64>,
    failures: BTreeMap<String, u64>,
    left_out: BTreeMap<String, u32>,
}

impl RoundCounts {
    pub fn saw(&self, round: &Observed) {
        let mut counts = self.counts.borrow_mut();
        for (status, n) in &round.statuses {
            *counts.statuses.entry(*status).or_default() += n;
        }
        for (why, n) in &round.failures {
            *counts.failures.entry(why.clone()).or_default() += n;
        }
    }

    /// Counts an empty round that was measured again.
    pub fn left_out(&self, why: String) {
        *self.counts.borrow_mut().left_out.entry(why).or_default() += 1;
    }

    /// How many rounds were left out for this reason.
    #[cfg(test)]
    pub fn of(&self, why: &str) -> Option<u32> {
        self.counts.borrow().left_out.get(why).copied()
    }

    /// Writes the counts, and what they mean, into the document.
    pub fn tell(&self, document: &mut ExplainDocument) {
        let Counts { statuses, failures, left_out } = &*self.counts.borrow();
        document.warnings.extend(workloads::what_statuses_say(statuses));
        document.warnings.extend(failed(failures).into_iter().chain(nothing(left_out)));
        if let Some(why) = unserved(statuses, failures) {
            document.sum.conclusive = false;
            document.sum.disturbed.push(why);
            document.predictions.iter_mut().for_each(|p| p.inconclusive = true);
            document.what_if.iter_mut().for_each(|w| w.inconclusive = true);
        }
        document.statuses.clone_from(statuses);
        document.left_out.clone_from(left_out);
    }
}

fn failed(failures: &BTreeMap<String, u64>) -> Option<Warning> {
    (!failures.is_empty()).then(|| Warning::SomeFailed { by_cause: failures.clone() })
}

/// A server that fails a larger share of requests than this does not serve so many clients at once.
const FAILING: f64 = 0.01;

/// The disturbance by an HTTP server that accepts new connections at the cost of others. It serves
/// all clients in turn, so that none waits as long as among so many clients.
fn unserved(
    statuses: &BTreeMap<u16, u64>,
    failures: &BTreeMap<String, u64>,
) -> Option<Disturbance> {
    let (answered, failed) = (statuses.values().sum::<u64>(), failures.values().sum::<u64>());
    let share = failed as f64 / (answered + failed).max(1) as f64;
    (answered > 0 && share > FAILING).then_some(Disturbance::RequestsFailed { share })
}

fn nothing(left_out: &BTreeMap<String, u32>) -> Option<Warning> {
    let mut alike: BTreeMap<&str, Vec<(&String, &u32)>> = BTreeMap::new();
    left_out.iter().for_each(|reported| alike.entry(cause(reported.0)).or_default().push(reported));
    let by_cause: BTreeMap<String, u64> = alike
        .iter()
        .map(|(cause, all)| match all.as_slice() {
            [(why, n)] => ((*why).clone(), u64::from(**n)),
            all => ((*cause).to_owned(), all.iter().map(|(_, n)| u64::from(**n)).sum()),
        })
        .collect();
    (!by_cause.is_empty()).then_some(Warning::RoundsRepeated { by_cause })
}

/// The end of a failure's text: without its address, the evidence, or advice.
fn cause(why: &str) -> &str {
    let last = why.rsplit(": ").next().unwrap_or(why);
    last.split("; ").next().unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_to_nothing_and_what_failed_is_counted_by_why() {
        assert_eq!((nothing(&BTreeMap::new()), failed(&BTreeMap::new())), (None, None));
        let one = BTreeMap::from([("no request was answered in 200 ms".to_owned(), 1)]);
        let said = nothing(&one).unwrap().to_string();
        assert!(said.starts_with("1 round failed and was repeated"), "{said}");
        let two = BTreeMap::from([("refused".to_owned(), 2), ("silent".to_owned(), 1)]);
        let said = nothing(&two).unwrap().to_string();
        assert!(
            said.starts_with("3 rounds") && said.ends_with("2 × refused, 1 × silent"),
            "{said}"
        );
        let said = failed(&BTreeMap::from([("reset".to_owned(), 12_345)])).unwrap().to_string();
        assert!(said.ends_with("12,345 × reset"), "{said}");
    }

    #[test]
    fn requests_that_fail_now_and_then_are_no_limit_of_the_server() {
        let answered = BTreeMap::from([(200, 9_900)]);
        let of = |n| unserved(&answered, &BTreeMap::from([("closed".to_owned(), n)]));
        assert_eq!(of(90), None);
        assert!(of(460).unwrap().to_string().starts_with("4.4% of the requests failed"));
        // PostgreSQL transactions have no status, and failed ones are tried again.
        assert_eq!(unserved(&BTreeMap::new(), &BTreeMap::from([("40001".to_owned(), 9)])), None);
    }

    #[test]
    fn one_cause_is_reported_once_whatever_it_was_seen_by() {
        let seen = [
            ("http://a:80/: no request was answered in 60 ms: closed; is it a port with TLS?", 2),
            ("http://a:80/: of 4 clients 0 were served at once; 24 requests failed: closed", 1),
            ("http://a:80/: of 4 clients 1 were served at once; 9 requests failed: closed", 1),
            ("http://a:80/: no request was answered in 60 ms", 1),
        ];
        let left_out = seen.into_iter().map(|(why, n)| (why.to_owned(), n)).collect();
        let said = nothing(&left_out).unwrap().to_string();
        let each = "4 × closed, 1 × http://a:80/: no request was answered in 60 ms";
        assert!(said.starts_with("5 rounds") && said.ends_with(&format!(": {each}")), "{said}");
    }
}
