//! Warns of transactions that sent nothing, as with a script of `\set` and `\sleep` only: pgbench
//! counts them too, but they show nothing about the server.

use model::Warning;

use super::{plan::Plan, recorder::PgRecorder};

/// Transactions of the window that sent no statement; for another program's log, those of scripts
/// without a statement.
pub fn count(plan: &Plan, all: &PgRecorder, logged: bool) -> u64 {
    if !logged {
        return all.unsent;
    }
    let has_none = |script: usize| !plan.statements.iter().any(|s| s.script == script);
    let of = |(n, s): (usize, _)| if has_none(n) { s } else { 0 };
    all.scripts.iter().map(|s| s.answered).enumerate().map(of).sum()
}

/// A warning if some of the answered transactions sent nothing.
pub fn warning(unsent: u64, answered: u64) -> Option<Warning> {
    match unsent {
        0 => None,
        n if n >= answered => Some(Warning::NoStatementSent),
        unsent => Some(Warning::SomeSentNoStatement { unsent, answered }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sends_nothing_is_reported_in_a_line() {
        assert_eq!(warning(0, 10), None);
        assert!(warning(10, 10).unwrap().to_string().starts_with("no transaction sent"));
        let some = warning(2_500, 10_000).unwrap().to_string();
        assert!(
            some.starts_with("2,500 of 10,000 transactions") && some.contains("(25.0%)"),
            "{some}"
        );
    }
}
