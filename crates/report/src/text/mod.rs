//! Text on a page of a given width: styled spans, wrapping, aligned tables.

mod fit;
mod line;
mod page;
mod table;

pub use line::{Ink, Line};
pub use page::Page;
pub use table::Table;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStyle {
    pub width: usize,
    /// Whether ANSI colours may be used.
    pub colour: bool,
    /// Whether to print everything (`-v`).
    pub verbose: bool,
}

impl Default for TextStyle {
    fn default() -> Self {
        Self { width: 80, colour: false, verbose: false }
    }
}

/// The text with control characters (terminal escapes, line ends, direction overrides) shown
/// as escapes and tabs as a space.
pub fn clean(text: &str) -> String {
    model::quote::shown(&text.replace('\t', " "))
}

/// A text for HTML, XML and SVG: cleaned, with its line ends, and without characters that have a
/// meaning there; what XML does not allow becomes `�`.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            out.push('\n');
        }
        for c in clean(line).chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
                c => out.push(c),
            }
        }
    }
    out
}

/// Columns that a cleaned text takes on a terminal.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The longest start of `text` that fits `columns`, and the rest.
pub(crate) fn split_at_width(text: &str, columns: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns && at > 0 {
            return text.split_at(at);
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(clean("a\x1b[31mb\r\nc\td"), "a\\x1b[31mb\\x0d\\x0ac d");
        assert_eq!(clean("abc\u{202e}def"), "abc\\u{202e}def");
        assert_eq!(clean("naïve 網路"), "naïve 網路");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("網路"), 4);
        assert_eq!(split_at_width("網路卡", 4), ("網路", "卡"));
        assert_eq!(split_at_width("網路卡", 5), ("網路", "卡"));
        assert_eq!(split_at_width("網", 1), ("網", ""), "always some progress");
    }
}
