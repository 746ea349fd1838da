//! What is said of responses that are not what was asked for: they are as much measured as others are.

use std::{collections::BTreeMap, ops::Range};

use model::{Warning, units::grouped};

/// "Not modified" is what a request with a condition asks for.
const NOT_MODIFIED: u16 = 304;

/// A line for errors and one for redirects, of responses by status.
pub fn of_statuses(by_status: &BTreeMap<u16, u64>) -> Vec<Warning> {
    let reported =
        |range, what, fast, next| StatusKind { range, what, fast, next }.reported(by_status);
    let wrong = reported(
        400..u16::MAX,
        ["says that something is wrong", "say that something is wrong"],
        "says so",
        "",
    );
    let redirects = reported(
        300..400,
        ["leads elsewhere", "lead elsewhere"],
        "redirects",
        "; a redirect is not the page, and none is followed: give the URL that it leads to (curl -sI URL has \
         it as Location)",
    );
    wrong.into_iter().chain(redirects).collect()
}

/// Statuses of which the same is said.
struct StatusKind {
    range: Range<u16>,
    /// What one of them does, and what several do.
    what: [&'static str; 2],
    /// What is fast there, where there are no others.
    fast: &'static str,
    next: &'static str,
}

impl StatusKind {
    fn reported(&self, by_status: &BTreeMap<u16, u64>) -> Option<Warning> {
        let these = by_status.range(self.range.clone()).filter(|(s, _)| **s != NOT_MODIFIED);
        let (mut n, mut each, mut kinds) = (0, vec![], BTreeMap::new());
        for (status, count) in these {
            n += count;
            each.push(format!("{} × {status}", grouped(*count)));
            kinds.insert(*status, *count);
        }
        let (all, each) = (by_status.values().sum::<u64>(), each.join(", "));
        let Self { what: [one, several], fast, next, .. } = self;
        let text = match n {
            0 => return None,
            n if n == all => format!(
                "every response {one} ({each}): what was measured is how fast the server {fast}{next}"
            ),
            _ => format!(
                "{:.1}% of the responses {several} ({each}), and the times are of all of them{next}",
                n as f64 * 100.0 / all as f64
            ),
        };
        Some(Warning::Statuses { by_status: kinds, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(all: &[(u16, u64)]) -> Vec<String> {
        let all = of_statuses(&all.iter().copied().collect());
        all.iter().map(Warning::to_string).collect()
    }

    #[test]
    fn an_error_and_a_redirect_are_told_apart() {
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
