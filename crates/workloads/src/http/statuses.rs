//! Warnings on error and redirect responses, which are measured like others.

use std::{collections::BTreeMap, ops::Range};

use model::{Warning, warning::StatusKind};

/// "Not modified" is a normal answer to a conditional request.
const NOT_MODIFIED: u16 = 304;

/// A warning on errors and one on redirects, from the counts by status.
pub fn of_statuses(by_status: &BTreeMap<u16, u64>) -> Vec<Warning> {
    let responses = by_status.values().sum::<u64>();
    let reported = |kind, range: Range<u16>| {
        let these = by_status.range(range).filter(|(status, _)| **status != NOT_MODIFIED);
        let by_status: BTreeMap<u16, u64> = these.map(|(status, n)| (*status, *n)).collect();
        let any = by_status.values().any(|n| *n > 0);
        any.then_some(Warning::Statuses { kind, by_status, responses })
    };
    let wrong = reported(StatusKind::Errors, 400..u16::MAX);
    let redirects = reported(StatusKind::Redirects, 300..400);
    wrong.into_iter().chain(redirects).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(all: &[(u16, u64)]) -> Vec<String> {
        let all = of_statuses(&all.iter().copied().collect());
        all.iter().map(Warning::to_string).collect()
    }

    #[test]
    fn an_error_and_a_redirect_are_distinguished() {
        assert_eq!(said(&[(200, 9), (204, 9), (304, 9)]), [""; 0]);
        let all = said(&[(404, 5)]);
        assert!(
            all[0].starts_with("every response says that something is wrong (5 × 404)"),
            "{all:?}"
        );
        let all = said(&[(301, 1_000), (302, 1)]);
        assert!(
            all[0].starts_with("every response leads elsewhere (1,000 × 301, 1 × 302)"),
            "{all:?}"
        );
        assert!(
            all.len() == 1 && all[0].contains("server redirects; a redirect is not the page"),
            "{all:?}"
        );
        let all = said(&[(200, 6), (302, 2), (500, 2)]);
        assert!(
            all[0].starts_with("20.0% of the responses say that something is wrong (2 × 500)"),
            "{all:?}"
        );
        assert!(all[1].starts_with("20.0% of the responses lead elsewhere (2 × 302)"), "{all:?}");
    }
}
