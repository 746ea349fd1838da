//! pgbench's report, as versions 10 to 18 write it.

/// Figures of a report; `None` if the version does not print them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reported {
    /// `number of transactions actually processed`.
    pub processed: u64,
    /// Transactions per second, excluding the initial connection time.
    pub per_s_without: Option<f64>,
    /// Including it, or including the time of each new connection.
    pub per_s_with: Option<f64>,
    /// Time that pgbench took to connect all clients at the start, ns.
    pub connecting_ns: Option<f64>,
    /// With a connection for each transaction: mean time of one.
    pub each_connection_ns: Option<f64>,
    /// With a rate: mean and maximum schedule lag.
    pub lag_ns: Option<(f64, f64)>,
}

/// Parses a report; `None` if it lacks the number of transactions.
pub fn read(report: &str) -> Option<Reported> {
    let mut reported = Reported::default();
    let mut processed = None;
    for line in report.lines() {
        // From here on each script has its own section.
        if line.starts_with("SQL script ") {
            break;
        }
        let Some((name, value)) = line.split_once([':', '=']) else { continue };
        let value = value.trim();
        let number = || {
            let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
            value.get(..end)?.parse::<f64>().ok()
        };
        match name.trim() {
            "number of transactions actually processed" => processed = number(),
            "initial connection time" => reported.connecting_ns = number().map(|ms| ms * 1e6),
            "average connection time" => reported.each_connection_ns = number().map(|ms| ms * 1e6),
            "rate limit schedule lag" => reported.lag_ns = lag(value),
            "tps" if value.contains("(without") || value.contains("(excluding") => {
                reported.per_s_without = number();
            }
            "tps" => reported.per_s_with = number(),
            _ => {}
        }
    }
    reported.processed = processed? as u64;
    Some(reported)
}

/// Parses `avg 0.023 (max 1.567) ms`.
fn lag(text: &str) -> Option<(f64, f64)> {
    let (mean, most) = text.strip_prefix("avg ")?.strip_suffix(") ms")?.split_once(" (max ")?;
    let ns = |ms: &str| ms.trim().parse::<f64>().ok().map(|ms| ms * 1e6);
    Some((ns(mean)?, ns(most)?))
}

/// Its error, if there is one, and its warnings.
pub fn complaints(said: &str) -> (Option<String>, Vec<String>) {
    let after = |line: &str, kind: &str| {
        line.strip_prefix("pgbench: ")?.strip_prefix(kind).map(|l| l.trim().to_owned())
    };
    let error = said.lines().find_map(|l| after(l, "error:").or_else(|| after(l, "fatal:")));
    let mut warnings: Vec<String> = said.lines().filter_map(|l| after(l, "warning:")).collect();
    warnings.sort();
    warnings.dedup();
    // Versions without these prefixes: the first line that is not a startup message.
    let plain = || {
        let mut lines = said.lines().map(str::trim).filter(|l| !l.is_empty());
        lines.find(|l| !l.starts_with("pgbench: warning:")).map(str::to_owned)
    };
    (error.or_else(plain), warnings)
}

/// Replaces the script number in an error by the script's name.
pub fn with_name(error: &str, names: &[&str]) -> String {
    let number = error.split_once("script ").and_then(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest.get(..end)?.parse::<usize>().ok()
    });
    match number.and_then(|n| names.get(n)) {
        Some(name) => format!("{name}: {error}"),
        None => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_fails_is_named_and_not_numbered_alone() {
        let said = "client 3 script 1 aborted in command 4 query 0: ERROR:  division by zero";
        assert_eq!(with_name(said, &["a.sql", "b.sql"]), format!("b.sql: {said}"));
        let said = "client 0 aborted in command 0 (SQL) of script 0; ERROR:  no";
        assert_eq!(with_name(said, &["a.sql"]), format!("a.sql: {said}"));
        assert_eq!(with_name("connection failed", &["a.sql"]), "connection failed");
        assert_eq!(with_name("script 7", &["a.sql"]), "script 7");
    }

    #[test]
    fn reports_of_all_versions_are_read() {
        let new = "pgbench (15.14 (Debian 15.14-0+deb12u1))\ntransaction type: multiple scripts\n\
                   duration: 2 s\nnumber of transactions actually processed: 41235\nnumber of failed \
                   transactions: 0 (0.000%)\nlatency average = 0.388 ms\ninitial connection time = \
                   12.300 ms\nrate limit schedule lag: avg 1.250 (max 30.5) ms\ntps = 20617.400000 (without initial connection time)\nSQL script 1: \
                   <builtin: select only>\n - 7 transactions (50.1% of total, tps = 3.5)\n";
        let reported = read(new).expect("a report");
        assert_eq!((reported.processed, reported.per_s_without), (41235, Some(20617.4)));
        assert_eq!((reported.connecting_ns, reported.per_s_with), (Some(12.3e6), None));
        assert_eq!(reported.lag_ns, Some((1.25e6, 30.5e6)));
        let each = "number of transactions actually processed: 20/20\naverage connection time = \
                    2.5 ms\ntps = 300.25 (including reconnection times)\n";
        let reported = read(each).expect("a report");
        assert_eq!((reported.processed, reported.per_s_with), (20, Some(300.25)));
        assert_eq!((reported.per_s_without, reported.each_connection_ns), (None, Some(2.5e6)));
        let old = "number of transactions actually processed: 10\ntps = 90.0 (including connections \
                   establishing)\ntps = 100.0 (excluding connections establishing)\n";
        let reported = read(old).expect("a report");
        assert_eq!((reported.per_s_with, reported.per_s_without), (Some(90.0), Some(100.0)));
        assert_eq!(read("pgbench (15.14)\n"), None);
    }

    #[test]
    fn the_error_is_found_among_what_else_is_said() {
        let said = "pgbench (15.14)\npgbench: warning: scale option ignored\npgbench: error: client \
                    0 aborted\npgbench: error: Run was aborted\n";
        let (error, warnings) = complaints(said);
        assert_eq!(error.as_deref(), Some("client 0 aborted"));
        assert_eq!(warnings, ["scale option ignored"]);
        assert_eq!(complaints("connection failed\n").0.as_deref(), Some("connection failed"));
    }
}
