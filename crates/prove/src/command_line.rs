//! Splits a command line of ours into arguments.

/// The arguments of a line, separated by blanks; `'…'` and `"…"` group them. Nothing is expanded,
/// as there is no shell.
///
/// # Errors
/// A quote that is not closed.
pub(crate) fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if let Some(q) = quote {
        return Err(format!("`{line}`: a {q} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// The duration of a run of a workload given as a URL, unless its options set one. Many short runs
/// give a narrower interval than a few long ones.
const SHORT: &str = "500ms";

/// Turns `rtt://db1:4040 --flows 8` into `measure rtt db1:4040 --flows 8`; other lines stay as they
/// are.
pub(crate) fn expand_url(words: &mut Vec<String>) {
    let Some((scheme, rest)) = words.first().and_then(|w| w.split_once("://")) else { return };
    let (what, target) = match scheme {
        "rtt" | "stream" | "connect" => (scheme.to_owned(), rest.trim_end_matches('/').to_owned()),
        "http" | "https" => ("http".to_owned(), format!("{scheme}://{rest}")),
        "redis" | "rediss" => ("redis".to_owned(), format!("{scheme}://{rest}")),
        "pg" | "postgres" | "postgresql" => ("pg".to_owned(), format!("postgres://{rest}")),
        _ => return,
    };
    words.splice(0..1, ["measure".to_owned(), what, target]);
    if !words.iter().any(|w| w == "--duration" || w.starts_with("--duration=")) {
        words.extend(["--duration".to_owned(), SHORT.to_owned()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_measurement() {
        for (typed, words) in [
            ("rtt://db1:4040", "measure rtt db1:4040 --duration 500ms"),
            ("stream://db1/ --flows 4", "measure stream db1 --flows 4 --duration 500ms"),
            ("pg://u@db1/b --duration 1s", "measure pg postgres://u@db1/b --duration 1s"),
            ("rediss://db1/2 --flows 8", "measure redis rediss://db1/2 --flows 8 --duration 500ms"),
            ("https://w/i?a=1", "measure http https://w/i?a=1 --duration 500ms"),
            ("measure rtt db1", "measure rtt db1"),
            ("ftp://x", "ftp://x"),
        ] {
            let mut found = split(typed).unwrap();
            expand_url(&mut found);
            assert_eq!(found.join(" "), words);
        }
    }

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(split(" a  'b c' \"\" d'e f'\"g\" ").unwrap(), ["a", "b c", "", "de fg"]);
        assert!(split("a 'b").unwrap_err().contains("not closed"));
        assert!(split("").unwrap().is_empty());
    }
}
