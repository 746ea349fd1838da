//! Built-in scripts, in the language of script files. Those named after pgbench's do the same work
//! on the same tables, so that figures are comparable.

/// Name, description and text of each.
pub const ALL: [(&str, &str, &str); 4] = [
    ("tpcb-like", "after TPC-B, as pgbench's own", TPCB_LIKE),
    ("simple-update", "the same without the small tables", SIMPLE_UPDATE),
    ("select-only", "one row by its key", SELECT_ONLY),
    ("select1", "no table at all", "SELECT 1;\n"),
];

const TPCB_LIKE: &str = r"\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

const SIMPLE_UPDATE: &str = r"\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

const SELECT_ONLY: &str = r"\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
";

/// The text of a built-in script.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(n, ..)| *n == name).map(|(.., text)| *text)
}

/// Whether a built-in script needs the tables of `--init`.
pub fn needs_tables(name: &str) -> bool {
    text(name).is_some_and(|t| t.contains("pgbench_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pg::script::Script;

    #[test]
    fn each_is_a_script() {
        for (name, _, text) in ALL {
            let script = Script::parse(name, text).expect("a script");
            assert_eq!(script.commands().len(), text.lines().count(), "{name}");
        }
        assert!(needs_tables("select-only") && !needs_tables("select1") && !needs_tables("x"));
    }
}
