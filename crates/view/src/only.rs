//! The filter as text: `nic:eth0 cpu:0-3 pid:4711 postgres`.

use model::watch::WatchFilter;

/// A parsed filter; a row must match all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Only {
    /// The text as typed.
    pub text: String,
    /// NICs, CPUs and processes by name and number.
    pub filter: WatchFilter,
    /// Lower-case words that a row must contain.
    pub words: Vec<String>,
    /// The last word that could not be parsed, with the form to write; `None` where all were.
    pub wrong: Option<String>,
}

impl Only {
    /// Parses a filter, in addition to that of the command line. An unknown word is reported, and
    /// the rest applies.
    pub fn parse(text: &str, asked: &WatchFilter) -> Self {
        let mut only = Self { text: text.trim().to_owned(), ..Self::default() };
        for word in text.split_whitespace() {
            match word.split_once(':') {
                Some(("nic", name)) if !name.is_empty() => only.filter.nics.push(name.to_owned()),
                Some(("cpu", list)) => match list.parse() {
                    Ok(cpus) => only.filter.cpus = Some(cpus),
                    Err(_) => only.wrong = Some(format!("{word}: write cpu:0-3,8")),
                },
                Some(("pid", id)) => match id.parse() {
                    Ok(pid) => only.filter.pids.push(pid),
                    Err(_) => only.wrong = Some(format!("{word}: write pid:4711")),
                },
                _ => only.words.push(word.to_lowercase()),
            }
        }
        if only.filter.nics.is_empty() {
            only.filter.nics.clone_from(&asked.nics);
        }
        if only.filter.cpus.is_none() {
            only.filter.cpus.clone_from(&asked.cpus);
        }
        if only.filter.pids.is_empty() {
            only.filter.pids.clone_from(&asked.pids);
        }
        only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_names_numbers_and_words() {
        let asked = WatchFilter { pids: vec![7], ..WatchFilter::default() };
        let only = Only::parse(" nic:eth0 cpu:0-1,4 Postgres ", &asked);
        assert_eq!(only.filter.nics, ["eth0"]);
        assert_eq!(only.filter.cpus.unwrap().to_string(), "0-1,4");
        assert_eq!((only.filter.pids, only.words), (vec![7], vec!["postgres".to_owned()]));
        let bad = Only::parse("cpu:x lo", &asked);
        assert!(bad.wrong.unwrap().contains("cpu:0-3,8"));
        assert_eq!(bad.words, ["lo"]);
    }
}
