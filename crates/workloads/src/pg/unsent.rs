//! What is said of transactions that sent the server nothing, as those of a script of `\set` and `\sleep`
//! alone do: pgbench counts them as it counts any, and of the server they say nothing.

use model::Warning;

use super::{plan::Plan, recorder::PgRecorder};

/// How many transactions of the window sent no statement; of another program's log, those whose script has
/// none.
pub fn count(plan: &Plan, all: &PgRecorder, logged: bool) -> u64 {
    if !logged {
        return all.unsent;
    }
    let has_none = |script: usize| !plan.statements.iter().any(|s| s.script == script);
    let of = |(n, s): (usize, _)| if has_none(n) { s } else { 0 };
    all.scripts.iter().map(|s| s.answered).enumerate().map(of).sum()
}

/// A line, where so many of the answered ones are some.
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
    fn what_sends_nothing_is_told_in_a_line() {
        assert_eq!(warning(0, 10), None);
        assert!(warning(10, 10).unwrap().to_string().starts_with("no transaction sent"));
        let some = warning(2_500, 10_000).unwrap().to_string();
        assert!(
            some.starts_with("2,500 of 10,000 transactions") && some.contains("(25.0%)"),
            "{some}"
        );
    }
}
