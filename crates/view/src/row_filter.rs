//! The filter as text: `nic:eth0 cpu:0-3 pid:4711 postgres`.

use model::watch::WatchFilter;

/// A parsed filter; a row must match all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// The text as typed.
    pub text: String,
    /// NICs, CPUs and processes by name and number.
    pub filter: WatchFilter,
    /// Lower-case words that a row must contain.
    pub words: Vec<String>,
    /// The last word that could not be parsed, with the form to write; `None` where all were.
    pub wrong: Option<String>,
}

impl RowFilter {
    /// Parses a filter, in addition to that of the command line. An unknown word is reported, and
    /// the rest applies.
    pub fn parse(text: &str, asked: &WatchFilter) -> Self {
        let mut row_filter = Self { text: text.trim().to_owned(), ..Self::default() };
        for word in text.split_whitespace() {
            match word.split_once(':') {
                Some(("nic", name)) if !name.is_empty() => {
                    row_filter.filter.nics.push(name.to_owned())
                }
                Some(("cpu", list)) => match list.parse() {
                    Ok(cpus) => row_filter.filter.cpus = Some(cpus),
                    Err(_) => row_filter.wrong = Some(format!("{word}: write cpu:0-3,8")),
                },
                Some(("pid", id)) => match id.parse() {
                    Ok(pid) => row_filter.filter.pids.push(pid),
                    Err(_) => row_filter.wrong = Some(format!("{word}: write pid:4711")),
                },
                _ => row_filter.words.push(word.to_lowercase()),
            }
        }
        if row_filter.filter.nics.is_empty() {
            row_filter.filter.nics.clone_from(&asked.nics);
        }
        if row_filter.filter.cpus.is_none() {
            row_filter.filter.cpus.clone_from(&asked.cpus);
        }
        if row_filter.filter.pids.is_empty() {
            row_filter.filter.pids.clone_from(&asked.pids);
        }
        row_filter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_names_numbers_and_words() {
        let asked = WatchFilter { pids: vec![7], ..WatchFilter::default() };
        let row_filter = RowFilter::parse(" nic:eth0 cpu:0-1,4 Postgres ", &asked);
        assert_eq!(row_filter.filter.nics, ["eth0"]);
        assert_eq!(row_filter.filter.cpus.unwrap().to_string(), "0-1,4");
        assert_eq!(
            (row_filter.filter.pids, row_filter.words),
            (vec![7], vec!["postgres".to_owned()])
        );
        let bad = RowFilter::parse("cpu:x lo", &asked);
        assert!(bad.wrong.unwrap().contains("cpu:0-3,8"));
        assert_eq!(bad.words, ["lo"]);
    }
}
