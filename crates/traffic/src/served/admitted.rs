//! What is said of connections that the server did not take, ended, or did not answer.

use model::units::grouped;

/// A run's connections, as they fared.
#[derive(Debug, Clone)]
pub struct Admitted<'a> {
    /// `clients`.
    pub who: &'a str,
    /// How to ask for fewer.
    pub flag: &'a str,
    /// What limits them at a server.
    pub limit: &'a str,
    /// How many were asked for.
    pub asked: u32,
    /// Whether they are kept: else to have none is no wonder.
    pub kept: bool,
    /// How many had no answer within the window though one was due.
    pub silent: u64,
    /// How many were not connected, in the mean over the window.
    pub away: f64,
    /// Connections that served nothing, warm-up included, by why.
    pub refused: Vec<(String, u64)>,
    /// Connections that the server ended between answers.
    pub reconnects: u64,
    /// How a server is had to keep them, and how one that does not is measured.
    pub keep: &'a str,
}

/// As many in the mean are worth a word: a server that ends connections now and then costs less.
const AWAY: f64 = 0.02;

impl Admitted<'_> {
    /// A line, where fewer than were asked for were at work.
    pub fn warning(&self) -> Option<String> {
        let Self { who, asked, silent, away, .. } = self;
        let away = away.min(f64::from(*asked));
        let mut parts = vec![];
        if self.kept && away > AWAY * f64::from(*asked) {
            parts.push(format!(
                "in the mean {away:.1} of {} {who} were not connected",
                grouped((*asked).into())
            ));
        }
        if self.kept && *silent > 0 {
            parts.push(format!(
                "{} of {} {who} had no answer within the window",
                grouped(*silent),
                grouped((*asked).into())
            ));
        }
        let failed: u64 = self.refused.iter().map(|(_, n)| n).sum();
        if failed > 0 {
            let why: Vec<String> =
                self.refused.iter().map(|(why, n)| format!("{} × {why}", grouped(*n))).collect();
            parts.push(format!(
                "{} connections came to nothing, warm-up included: {}",
                grouped(failed),
                why.join(", ")
            ));
        }
        if parts.is_empty() {
            return None;
        }
        // All were served that it did not end itself: fewer of them would fare no better.
        if *silent == 0 && failed == 0 && self.reconnects > 0 {
            return Some(format!(
                "{}: the server ended {} connections between answers, and no time has what it took to \
                 make them anew. {}",
                parts.join("; "),
                grouped(self.reconnects),
                self.keep
            ));
        }
        if self.kept && self.reconnects > 0 {
            parts.push(format!("the server ended {} connections", grouped(self.reconnects)));
        }
        Some(format!("{}. {}", parts.join("; "), self.advice(failed)))
    }

    /// What to do, by what kept them from being served.
    fn advice(&self, failed: u64) -> String {
        if self.kept && self.silent >= u64::from(self.asked) {
            return "Nobody was served".into();
        }
        if self.silent == 0 && failed == 0 {
            return "All were served, and connecting took the others' time: give it a longer --warmup"
                .into();
        }
        format!(
            "The figures are of those that were served; ask for fewer {}, or have the server \
             admit more ({})",
            self.flag, self.limit
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
            flag: "--clients",
            limit: "max_connections",
            asked: 500,
            kept: true,
            silent: 0,
            away: 3.0,
            refused: vec![],
            reconnects: 7,
            keep: "have it keep them",
        };
        assert_eq!(all.warning(), None, "a server may end a connection now and then");
        let some = Admitted {
            silent: 407,
            away: 406.6,
            refused: vec![("53300: sorry, too many clients already".into(), 12_345)],
            ..all.clone()
        };
        let said = some.warning().unwrap_or_default();
        for part in [
            "406.6 of 500 clients were not connected",
            "407 of 500 clients had no answer",
            "12,345 × 53300: sorry, too many clients already",
            "max_connections",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let ends = Admitted { away: 150.0, reconnects: 12_345, ..all.clone() };
        let said = ends.warning().unwrap_or_default();
        assert!(said.contains("ended 12,345") && said.ends_with("have it keep them"), "{said}");
        assert!(!said.contains("ask for fewer"), "{said}");
        let none = Admitted { asked: 1, silent: 1, away: 0.9, ..some };
        assert!(none.warning().unwrap_or_default().ends_with("Nobody was served"));
        let slow = Admitted { away: 30.0, reconnects: 0, ..all.clone() };
        let said = slow.warning().unwrap_or_default();
        assert!(said.ends_with("--warmup") && !said.contains("max_connections"), "{said}");
        let each = Admitted { kept: false, silent: 3, away: 400.0, ..all };
        assert_eq!(each.warning(), None, "with a connection for each there may be none between");
    }
}
