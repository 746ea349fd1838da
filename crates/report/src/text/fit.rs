//! Shortens text to a number of lines.

use super::{Ink, Line, Page};

impl Line {
    /// The line in at most `lines` lines of `columns` columns: cut at a word, with an ellipsis,
    /// where it is longer. Only for text that `-v` shows whole.
    #[must_use]
    pub fn cut(&self, columns: usize, lines: usize) -> Line {
        let wrapped = self.wrap(columns, columns, false);
        if wrapped.len() <= lines {
            return self.clone();
        }
        let mut kept = Line::new();
        for (i, part) in wrapped.into_iter().take(lines).enumerate() {
            if i > 0 {
                kept.push(Ink::Plain, " ");
            }
            let last = i + 1 == lines;
            let words = part.words();
            // The ellipsis needs two columns of the last line.
            let mut line = Line::new();
            for word in words {
                let gap = usize::from(!line.is_empty());
                if last && line.width() + gap + word.width() + 2 > columns && !line.is_empty() {
                    break;
                }
                if gap == 1 {
                    line.push(Ink::Plain, " ");
                }
                line.extend(word);
            }
            kept.extend(line);
        }
        kept.push(Ink::Faint, "\u{a0}…");
        kept
    }

    /// Columns of the longest word.
    pub fn longest_word(&self) -> usize {
        self.words().iter().map(Line::width).max().unwrap_or(0)
    }

    /// The number of lines of `columns` columns that the line takes.
    pub fn height(&self, columns: usize) -> usize {
        self.wrap(columns, columns, false).len()
    }
}

impl Page {
    /// The columns left for a text beside a label of this width.
    pub fn beside(&self, label: usize) -> usize {
        self.look().width.saturating_sub(label).max(20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_word_and_says_so() {
        let text = Line::plain("one two three four five");
        assert_eq!(text.cut(9, 3).bare(), "one two three four five");
        assert_eq!(text.cut(9, 2).bare(), "one two three …");
        assert_eq!(text.cut(9, 2).height(9), 2);
        assert_eq!(text.cut(80, 1).bare(), text.bare());
        assert_eq!(Line::plain("abcdefghij klm").cut(4, 1).bare(), "abcdefghij …");
    }
}
