//! A line of styled spans.

use std::fmt::{Display, Write};

use super::{clean, split_at_width, width};

/// The meaning of a span; its look is decided when it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ink {
    #[default]
    Plain,
    Strong,
    /// Labels and unknown values.
    Faint,
    Good,
    Warn,
    Bad,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Faint => "\x1b[2m",
            Self::Good => "\x1b[32m",
            Self::Warn => "\x1b[33m",
            Self::Bad => "\x1b[1;31m",
        }
    }
}

/// A line, or a cell of a table. Text is cleaned as it comes in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    spans: Vec<(Ink, String)>,
}

impl Line {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn plain(text: impl Display) -> Self {
        Self::new().ink(Ink::Plain, text)
    }

    /// Appends text without ink.
    #[must_use]
    pub fn text(self, text: impl Display) -> Self {
        self.ink(Ink::Plain, text)
    }

    /// Appends text with an ink.
    #[must_use]
    pub fn ink(mut self, ink: Ink, text: impl Display) -> Self {
        self.push(ink, text);
        self
    }

    /// Appends text with an ink, in place.
    pub fn push(&mut self, ink: Ink, text: impl Display) {
        let text = clean(&text.to_string());
        match self.spans.last_mut() {
            _ if text.is_empty() => {}
            Some((last, t)) if *last == ink => t.push_str(&text),
            _ => self.spans.push((ink, text)),
        }
    }

    /// Appends another line's spans, by value.
    #[must_use]
    pub fn also(mut self, other: Line) -> Self {
        self.extend(other);
        self
    }

    /// Appends another line's spans.
    pub fn extend(&mut self, other: Line) {
        for (ink, text) in other.spans {
            self.push(ink, text);
        }
    }

    /// The line made unbreakable: blanks become no-break spaces until it is printed.
    #[must_use]
    pub fn unbroken(mut self) -> Self {
        for (_, text) in &mut self.spans {
            *text = text.replace(' ', "\u{a0}");
        }
        self
    }

    /// The line with a capital first letter.
    #[must_use]
    pub fn capitalised(mut self) -> Self {
        if let Some((_, text)) = self.spans.first_mut() {
            let mut chars = text.chars();
            if let Some(first) = chars.next() {
                *text = first.to_uppercase().chain(chars).collect();
            }
        }
        self
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|(_, t)| width(t)).sum()
    }

    /// Whether the line is empty.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The text without ink.
    pub fn bare(&self) -> String {
        self.spans.iter().map(|(_, t)| t.replace('\u{a0}', " ")).collect()
    }

    /// Words at blanks, each as its spans. Blanks at the start are kept as the first word's.
    pub(super) fn words(&self) -> Vec<Line> {
        let mut words = vec![Line::new()];
        let mut seen_text = false;
        for (ink, text) in &self.spans {
            for (i, part) in text.split(' ').enumerate() {
                if i > 0 {
                    if seen_text {
                        words.push(Line::new());
                    } else if let Some(first) = words.last_mut() {
                        first.push(*ink, " ");
                    }
                }
                if !part.is_empty() {
                    seen_text = true;
                    if let Some(word) = words.last_mut() {
                        word.push(*ink, part);
                    }
                }
            }
        }
        words
    }

    /// Lines of at most `first` columns, then `next` columns, broken at blanks; a word that is
    /// too long for a line of its own is broken only if `hard`.
    pub fn wrap(&self, first: usize, next: usize, hard: bool) -> Vec<Line> {
        if self.width() <= first {
            return vec![self.clone()];
        }
        let mut lines = vec![Line::new()];
        for mut word in self.words() {
            loop {
                let room = if lines.len() == 1 { first } else { next };
                let Some(line) = lines.last_mut() else { break };
                let used = line.width();
                let gap = usize::from(used > 0);
                if used + gap + word.width() <= room || (used == 0 && !hard) {
                    if gap == 1 {
                        line.push(Ink::Plain, " ");
                    }
                    line.extend(word);
                    break;
                }
                if used > 0 {
                    lines.push(Line::new());
                    continue;
                }
                let (head, tail) = word.split(room.max(1));
                line.extend(head);
                if tail.is_empty() {
                    break;
                }
                word = tail;
                lines.push(Line::new());
            }
        }
        lines
    }

    fn split(&self, columns: usize) -> (Line, Line) {
        let (mut head, mut tail) = (Line::new(), Line::new());
        let mut left = columns;
        for (ink, text) in &self.spans {
            if left == 0 || !tail.is_empty() {
                tail.push(*ink, text);
                continue;
            }
            if width(text) <= left {
                head.push(*ink, text);
                left -= width(text);
                continue;
            }
            let (a, b) = split_at_separator(text, left);
            head.push(*ink, a);
            tail.push(*ink, b);
            left = 0;
        }
        (head, tail)
    }

    /// Appends it to `out`, without a line end and without blanks before it.
    pub fn print(&self, out: &mut String, colour: bool) {
        for (ink, text) in &self.spans {
            let text = text.replace('\u{a0}', " ");
            if colour && *ink != Ink::Plain {
                let _ = write!(out, "{}{text}\x1b[0m", ink.code());
            } else {
                out.push_str(&text);
            }
        }
    }
}

/// The longest prefix of a word that fits. It ends after the last separator of names in it, where
/// there is one, so that parts of names stay whole.
fn split_at_separator(word: &str, columns: usize) -> (&str, &str) {
    let (head, tail) = split_at_width(word, columns);
    let part = |at: usize| word.get(at + 1..).and_then(|t| t.chars().next());
    let named = |(at, _): &(usize, &str)| part(*at).is_some_and(char::is_alphabetic);
    let last = head.rmatch_indices(['.', '-', '_', '/', ':']).find(named);
    match last {
        Some((at, _)) if !tail.is_empty() => word.split_at(at + 1),
        _ => (head, tail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, first: usize, next: usize, hard: bool) -> Vec<String> {
        Line::plain(text).wrap(first, next, hard).iter().map(Line::bare).collect()
    }

    #[test]
    fn wraps_at_blanks_and_keeps_long_words_whole_unless_asked() {
        assert_eq!(wrapped("one two three", 7, 7, false), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 3, 9, false), ["one", "two three"]);
        assert_eq!(wrapped("a abcdefghij b", 4, 4, false), ["a", "abcdefghij", "b"]);
        assert_eq!(wrapped("a abcdefghij b", 4, 4, true), ["a", "abcd", "efgh", "ij b"]);
        assert_eq!(wrapped("  indented text", 10, 10, false), ["  indented", "text"]);
    }

    #[test]
    fn a_name_that_must_be_broken_is_broken_between_its_parts() {
        assert_eq!(wrapped("tcp_slow_start", 12, 12, true), ["tcp_slow_", "start"]);
        assert_eq!(wrapped("virtio0-input.0", 10, 10, true), ["virtio0-", "input.0"]);
        assert_eq!(wrapped("10.0.0.123456", 8, 8, true), ["10.0.0.1", "23456"], "no part begins");
    }

    #[test]
    fn ink_survives_wrapping() {
        let line = Line::new().ink(Ink::Strong, "ab cd").text(" ef");
        let mut out = String::new();
        for l in line.wrap(2, 5, false) {
            l.print(&mut out, true);
            out.push('\n');
        }
        assert_eq!(out, "\x1b[1mab\x1b[0m\n\x1b[1mcd\x1b[0m ef\n");
    }
}
