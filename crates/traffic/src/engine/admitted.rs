//! Warns of connections that the server refused, closed, or did not answer.

use model::{Warning, units::grouped};

use super::connection_counts::ConnectionCounts;

/// The connections of a run as requested; a [`ConnectionCounts`] has the results.
#[derive(Debug, Clone)]
pub struct Admitted<'a> {
    /// Word for the connections in messages, such as `clients`.
    pub who: &'a str,
    /// The server setting that limits them.
    pub limit: &'a str,
    /// Number of connections requested.
    pub asked: u32,
    /// Whether connections are kept open; otherwise having none is normal.
    pub kept: bool,
    /// Whether requests were sent; otherwise having no answer is normal.
    pub answers: bool,
    /// How to make the server keep them, and how to measure one that does not.
    pub keep: &'a str,
    pub window_ns: u64,
}

/// Share of missing connections that is worth a warning.
const AWAY: f64 = 0.02;

impl Admitted<'_> {
    /// A warning if fewer connections worked than requested; `named` gives failure texts.
    pub fn warning<F>(
        &self,
        connections: &ConnectionCounts<F>,
        named: impl Fn(&F) -> String,
    ) -> Option<Warning> {
        let Self { who, asked, .. } = self;
        let silent = if self.answers { connections.silent } else { 0 };
        // Mean over the window.
        let away = connections.disconnected_ns as f64 / self.window_ns.max(1) as f64;
        let away = away.min(f64::from(*asked));
        let mut parts = vec![];
        if self.kept && away > AWAY * f64::from(*asked) {
            parts.push(format!(
                "in the mean {away:.1} of {} {who} were not connected",
                grouped((*asked).into())
            ));
        }
        if self.kept && silent > 0 {
            parts.push(format!(
                "{} of {} {who} had no answer within the window",
                grouped(silent),
                grouped((*asked).into())
            ));
        }
        let failed: u64 = connections.refused.values().sum();
        if failed > 0 {
            let each = |(why, n): (&F, &u64)| format!("{} × {}", grouped(*n), named(why));
            let why: Vec<String> = connections.refused.iter().map(each).collect();
            parts.push(format!(
                "{} connections came to nothing, warm-up included: {}",
                grouped(failed),
                why.join(", ")
            ));
        }
        if parts.is_empty() {
            return None;
        }
        let warned = |text| {
            let (asked, ended) = (*asked, connections.reconnects);
            Some(Warning::NotAllServed { asked, disconnected: away, silent, failed, ended, text })
        };
        // Every connection was served until the server closed it: fewer connections would not help.
        if silent == 0 && failed == 0 && connections.reconnects > 0 {
            return warned(format!(
                "{}: the server closed {} connections between answers, and the times leave out the \
                 reconnects. {}",
                parts.join("; "),
                grouped(connections.reconnects),
                self.keep
            ));
        }
        if self.kept && connections.reconnects > 0 {
            parts.push(format!("the server ended {} connections", grouped(connections.reconnects)));
        }
        warned(format!("{}. {}", parts.join("; "), self.advice(silent, failed)))
    }

    /// Advice, by the reason why connections were not served.
    fn advice(&self, silent: u64, failed: u64) -> String {
        if self.kept && silent >= u64::from(self.asked) {
            return "Every connection failed".into();
        }
        if silent == 0 && failed == 0 {
            return "All were served, and connecting took the others' time: give it a longer --warmup"
                .into();
        }
        format!(
            "The figures are of those that were served; ask for fewer --flows, or have the server \
             admit more ({})",
            self.limit
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_were_not_served_are_counted_in_the_servers_words() {
        let all = Admitted {
            who: "clients",
            limit: "max_connections",
            asked: 500,
            kept: true,
            answers: true,
            keep: "have it keep them",
            window_ns: 1_000_000,
        };
        let connections = |silent, disconnected_ns, reconnects| ConnectionCounts {
            silent,
            disconnected_ns,
            reconnects,
            ..ConnectionCounts::<&str>::default()
        };
        let of = |all: &Admitted<'_>, connections: &ConnectionCounts<&str>| {
            all.warning(connections, |why| (*why).to_owned()).map(|w| w.to_string())
        };
        assert_eq!(
            of(&all, &connections(0, 3_000_000, 7)),
            None,
            "a server may end one now and then"
        );
        let mut some = connections(407, 406_600_000, 7);
        some.refused.insert("53300: sorry, too many clients already", 12_345);
        let said = of(&all, &some).unwrap_or_default();
        for part in [
            "406.6 of 500 clients were not connected",
            "407 of 500 clients had no answer",
            "12,345 × 53300: sorry, too many clients already",
            "max_connections",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = of(&all, &connections(0, 150_000_000, 12_345)).unwrap_or_default();
        assert!(said.contains("closed 12,345") && said.ends_with("have it keep them"), "{said}");
        assert!(!said.contains("ask for fewer"), "{said}");
        let one = Admitted { asked: 1, ..all.clone() };
        (some.silent, some.disconnected_ns) = (1, 900_000);
        assert!(of(&one, &some).unwrap_or_default().ends_with("Every connection failed"));
        assert_eq!(
            of(&Admitted { answers: false, ..one }, &connections(1, 0, 0)),
            None,
            "nobody asked"
        );
        let said = of(&all, &connections(0, 30_000_000, 0)).unwrap_or_default();
        assert!(said.ends_with("--warmup") && !said.contains("max_connections"), "{said}");
        let each = Admitted { kept: false, ..all };
        assert_eq!(
            of(&each, &connections(3, 400_000_000, 7)),
            None,
            "with a connection for each there may be none between"
        );
    }
}
