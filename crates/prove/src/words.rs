//! A command line of ours taken apart.

/// The words of a line: parted by blanks; `'…'` and `"…"` keep blanks together. Nothing is
/// expanded, for no shell is asked.
///
/// **Errors**: a quote that is not closed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(split(" a  'b c' \"\" d'e f'\"g\" ").unwrap(), ["a", "b c", "", "de fg"]);
        assert!(split("a 'b").unwrap_err().contains("not closed"));
        assert!(split("").unwrap().is_empty());
    }
}
