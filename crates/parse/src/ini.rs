//! Sections of `key=value` lines with their line numbers: systemd units and `.link` files,
//! NetworkManager keyfiles, tuned profiles, guest agents' settings.

/// What an INI file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ini {
    /// The lines that set something, as they stand.
    pub entries: Vec<Entry>,
    /// Lines that make no sense: number from 1 and text.
    pub strange: Vec<(u32, String)>,
}

/// One line `key=value` with its section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Line from 1 (of the first, where a `\` continues it).
    pub line: u32,
    /// The section it stands in; empty before the first.
    pub section: String,
    pub key: String,
    /// Value, blanks around taken off; quotes and inline comments as written.
    pub value: String,
}

impl Ini {
    /// The last value of `key` in `section`, which is the one that counts.
    pub fn get(&self, section: &str, key: &str) -> Option<&Entry> {
        self.entries.iter().rev().find(|e| e.section == section && e.key == key)
    }

    /// All lines of a section.
    pub fn section<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |e| e.section == name)
    }
}

/// Parses a whole file. `#` and `;` at the start of a line make a comment; a `\` at its end
/// joins the next line.
pub fn parse(bytes: &[u8]) -> Ini {
    let mut ini = Ini::default();
    let text = String::from_utf8_lossy(bytes);
    let mut section = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((n, first)) = lines.next() {
        let line = u32::try_from(n + 1).unwrap_or(u32::MAX);
        let mut joined = first.trim().to_owned();
        if joined.is_empty() || joined.starts_with(['#', ';']) {
            continue;
        }
        while joined.ends_with('\\') {
            joined.pop();
            let Some((_, next)) = lines.next() else { break };
            joined.push(' ');
            joined.push_str(next.trim());
        }
        if let Some(name) = joined.strip_prefix('[').and_then(|r| r.strip_suffix(']')) {
            name.trim().clone_into(&mut section);
        } else if let Some((key, value)) =
            joined.split_once('=').filter(|(k, _)| !k.trim().is_empty())
        {
            ini.entries.push(Entry {
                line,
                section: section.clone(),
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
            });
        } else {
            ini.strange.push((line, joined.chars().take(120).collect()));
        }
    }
    ini
}

/// A value without a trailing ` # comment`, as tuned reads it.
pub fn without_comment(value: &str) -> &str {
    let cut = value
        .char_indices()
        .find(|&(i, c)| c == '#' && (i == 0 || value[..i].ends_with(char::is_whitespace)))
        .map_or(value.len(), |(i, _)| i);
    value[..cut].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_lines_and_continuations() {
        let ini = parse(
            b"top=1\n[Match]\n# c\nOriginalName=eth*\n\n[Link]\nMTUBytes = 9000\nAlias=a \\\n b\nMTUBytes=1500\nnonsense\n=x\n",
        );
        assert_eq!(ini.get("", "top").map(|e| (e.line, e.value.as_str())), Some((1, "1")));
        assert_eq!(
            ini.get("Link", "MTUBytes").map(|e| (e.line, e.value.as_str())),
            Some((10, "1500"))
        );
        assert_eq!(ini.get("Link", "Alias").map(|e| (e.line, e.value.as_str())), Some((8, "a  b")));
        assert_eq!(ini.get("Match", "MTUBytes"), None);
        assert_eq!(ini.section("Link").count(), 3);
        assert_eq!(ini.strange.len(), 2);
    }

    #[test]
    fn tuned_comments_end_a_value() {
        assert_eq!(without_comment("4096 87380  # why"), "4096 87380");
        assert_eq!(without_comment("a#b"), "a#b");
        assert_eq!(without_comment("# all"), "");
        assert_eq!(without_comment("é # x"), "é");
    }
}
