//! Text of a shell as simple commands: words, redirections, pipes, here-documents. Nothing is
//! expanded but variables that the text sets once to a plain word.

use std::collections::BTreeMap;

/// A simple command of a script: words and redirections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// Line of its first word, from 1.
    pub line: u32,
    pub words: Vec<String>,
    /// Targets of `>` and `>>`.
    pub into: Vec<String>,
    /// Whether its output goes to the next command.
    pub piped: bool,
    /// The lines of its here-document, each with its number.
    pub here: Vec<(u32, String)>,
    /// Whether its line holds nothing else.
    pub whole: bool,
    /// The delimiters of here-documents that follow its line.
    awaited: Vec<String>,
}

impl Command {
    /// A command whose words are known already.
    pub fn of(words: &[String], line: u32) -> Self {
        Self { line, words: words.to_vec(), ..Self::default() }
    }
}

/// Words before a command that do not change what it is.
const BEFORE: &[&str] = &[
    "!", "builtin", "command", "do", "doas", "elif", "else", "env", "exec", "if", "nice", "nohup",
    "sudo", "then", "time", "until", "while", "{", "@",
];

/// The longest text that is taken apart.
const MOST_BYTES: usize = 4 << 20;

/// The commands of a text whose first line has this number.
pub fn commands(text: &str, first_line: u32) -> Vec<Command> {
    let text = text.get(..MOST_BYTES).unwrap_or(text);
    let mut reader = Reader { line: first_line, ..Reader::default() };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (reader.quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => reader.quote = None,
            (Some('"') | None, '\\') => match chars.next() {
                Some('\n') => reader.continued(),
                Some(next) => {
                    if reader.quote.is_some() && !matches!(next, '"' | '\\' | '$' | '`') {
                        reader.add('\\');
                    }
                    reader.add(next);
                }
                None => {}
            },
            (Some(_), '\n') => {
                reader.add(' ');
                reader.continued();
            }
            (Some(_), c) => reader.add(c),
            (None, '\'' | '"') => {
                reader.quote = Some(c);
                reader.word.get_or_insert_default();
            }
            (None, '#') if reader.word.is_none() => {
                while chars.peek().is_some_and(|&c| c != '\n') {
                    chars.next();
                }
            }
            (None, '\n') => {
                reader.end(false);
                reader.end_of_line();
                reader.heredocs(&mut chars);
            }
            (None, '<') if chars.peek() == Some(&'<') => {
                chars.next();
                reader.end_word();
                chars.next_if_eq(&'-');
                reader.takes = Takes::Delimiter;
            }
            (None, '>') => {
                // `2>` is the other stream, `&>` and `>&` are both.
                let other = reader.word.as_deref() == Some("2");
                if other || reader.word.as_deref() == Some("1") {
                    reader.word = None;
                }
                reader.end_word();
                chars.next_if_eq(&'>');
                chars.next_if_eq(&'|');
                let copies = chars.next_if_eq(&'&').is_some();
                reader.takes = if other || copies { Takes::Nothing } else { Takes::Target };
            }
            (None, '|') => {
                let or = chars.next_if_eq(&'|').is_some();
                reader.end(!or);
            }
            (None, '&') if chars.peek() == Some(&'>') => reader.end_word(),
            (None, ';' | '&') => reader.end(false),
            // `$(…)` and `${…}` stay in their word.
            (None, '(' | ')') if reader.word.is_none() => reader.end(false),
            (None, c) if c.is_whitespace() => reader.end_word(),
            (None, c) => reader.add(c),
        }
    }
    reader.end(false);
    reader.end_of_line();
    expanded(reader.done)
}

/// What the next word is.
#[derive(Default, PartialEq, Eq)]
enum Takes {
    #[default]
    Word,
    Target,
    Delimiter,
    Nothing,
}

#[derive(Default)]
struct Reader {
    line: u32,
    quote: Option<char>,
    word: Option<String>,
    takes: Takes,
    now: Command,
    /// Of the line that is being read.
    of_line: Vec<Command>,
    /// Whether the line goes on from the one before, or has words that belong to no command.
    mixed: bool,
    done: Vec<Command>,
}

impl Reader {
    fn add(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn continued(&mut self) {
        self.line = self.line.saturating_add(1);
        self.mixed = true;
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::take(&mut self.takes) {
            Takes::Nothing => {}
            Takes::Target => self.now.into.push(word),
            Takes::Delimiter => self.now.awaited.push(word),
            Takes::Word => {
                if self.now.words.is_empty() {
                    let name = word.rsplit('/').next().unwrap_or(&word);
                    if BEFORE.contains(&name) {
                        self.mixed |= !matches!(name, "sudo" | "doas" | "command" | "exec");
                        return;
                    }
                    self.now.line = self.line;
                }
                self.now.words.push(word);
            }
        }
    }

    fn end(&mut self, piped: bool) {
        self.end_word();
        self.takes = Takes::Word;
        if self.now.words.is_empty() {
            self.now.words.clear();
            return;
        }
        self.now.piped = piped;
        self.of_line.push(std::mem::take(&mut self.now));
    }

    fn end_of_line(&mut self) {
        let count = self.of_line.iter().filter(|c| !c.piped).count();
        let whole = !self.mixed && count == 1;
        self.done.extend(
            self.of_line.drain(..).map(|c| Command { whole: whole && c.awaited.is_empty(), ..c }),
        );
        self.mixed = false;
        self.line = self.line.saturating_add(1);
    }

    /// Reads the here-documents of the line that just ended.
    fn heredocs(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        let from = self.done.len().saturating_sub(16);
        for at in from..self.done.len() {
            let Some(command) = self.done.get_mut(at) else { return };
            for delimiter in std::mem::take(&mut command.awaited) {
                while chars.peek().is_some() {
                    let text: String = chars.by_ref().take_while(|&c| c != '\n').collect();
                    let number = self.line;
                    self.line = self.line.saturating_add(1);
                    if text.trim() == delimiter {
                        break;
                    }
                    command.here.push((number, text));
                }
            }
        }
    }
}

/// Puts the value of a variable where its name stands, if the text sets it once, to a plain word.
fn expanded(mut all: Vec<Command>) -> Vec<Command> {
    let mut known: BTreeMap<String, Option<String>> = BTreeMap::new();
    for command in &all {
        let skipped = match command.words.first().map(String::as_str) {
            Some("for" | "read" | "select") => {
                if let Some(name) = command.words.get(1) {
                    known.insert(name.clone(), None);
                }
                continue;
            }
            Some("export" | "local" | "readonly" | "declare") => 1,
            _ => 0,
        };
        for (name, value) in command.words.iter().skip(skipped).map_while(|w| assignment(w)) {
            let plain = !value.contains(['$', '`', '{']) && value.len() < 256;
            let value = plain.then(|| value.to_owned());
            known.entry(name.to_owned()).and_modify(|v| *v = None).or_insert(value);
        }
    }
    if known.values().all(Option::is_none) {
        return all;
    }
    for command in &mut all {
        for word in command.words.iter_mut().chain(&mut command.into) {
            if word.contains('$') {
                *word = with_values(word, &known);
            }
        }
    }
    all
}

/// Splits `NAME=VALUE`; `None` where the name is no shell variable's.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    is_name.then_some((name, value))
}

fn with_values(word: &str, known: &BTreeMap<String, Option<String>>) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after.strip_prefix('{').and_then(|a| a.split_once('}'));
        let length = after.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let (name, tail) = braced.unwrap_or_else(|| after.split_at(length));
        match known.get(name) {
            Some(Some(value)) if out.len() < 4096 => {
                out.push_str(value);
                rest = tail;
            }
            _ => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<(u32, String, String, bool)> {
        commands(text, 1)
            .into_iter()
            .map(|c| (c.line, c.words.join("|"), c.into.join(","), c.whole))
            .collect()
    }

    #[test]
    fn commands_with_their_words_and_lines() {
        let text = "#!/bin/sh\nsudo sysctl -w a.b='1 2' # why\nif true; then echo 1 >/proc/x; fi\n\
                    N=eth0\nethtool -G \"$N\" rx \\\n 4096 2>/dev/null || true\necho 3 | tee /sys/y\n";
        let rows = said(text);
        let rows: Vec<_> =
            rows.iter().map(|(l, w, i, whole)| (*l, w.as_str(), i.as_str(), *whole)).collect();
        assert_eq!(
            rows,
            [
                (2, "sysctl|-w|a.b=1 2", "", true),
                (3, "true", "", false),
                (3, "echo|1", "/proc/x", false),
                (3, "fi", "", false),
                (4, "N=eth0", "", true),
                (5, "ethtool|-G|eth0|rx|4096", "", false),
                (6, "true", "", false),
                (7, "echo|3", "", true),
                (7, "tee|/sys/y", "", true),
            ]
        );
    }

    #[test]
    fn here_documents_keep_their_lines() {
        let text = "cat >> /etc/sysctl.conf <<'EOF'\nnet.core.x = 1\n# no\nEOF\necho done\n";
        let all = commands(text, 10);
        assert_eq!(all[0].into, ["/etc/sysctl.conf"]);
        assert_eq!(all[0].here, [(11, "net.core.x = 1".into()), (12, "# no".into())]);
        assert_eq!((all[1].line, all[1].words.join(" ")), (14, "echo done".into()));
    }

    #[test]
    fn a_variable_of_two_values_stays_one() {
        let all = commands("A=1\nA=2\nB=$A\nfor C in 1 2; do\necho $A $B ${C} $D; done\n", 1);
        assert!(all.iter().any(|c| c.words.join(" ") == "echo $A $B ${C} $D"), "{all:?}");
    }
}
