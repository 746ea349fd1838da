//! SQL in scripts: finds the end of a statement, and its variables.

use std::{fmt::Write as _, ops::Range};

use super::{
    fault::Fault,
    value::{Vars, name_length},
};

/// Most parameters of a `Bind` message.
const MOST_PARAMETERS: usize = 65_535;

/// A statement, or several joined by `\;`, without the final semicolon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlText {
    text: String,
    /// Positions of variables, including their colons.
    variables: Vec<Range<usize>>,
    /// Pairs of a byte offset in the text and the script's offset from there on: comments and the
    /// backslashes before semicolons are left out between them.
    cuts: Vec<(usize, usize)>,
}

impl SqlText {
    fn new(text: String, at: usize, cuts: Vec<(usize, usize)>) -> Result<Self, Fault> {
        let (mut variables, mut from) = (vec![], 0);
        while let Some(colon) = text.get(from..).and_then(|t| t.find(':')).map(|n| from + n) {
            from = colon + 1;
            match name_length(text.get(from..).unwrap_or_default()) {
                // A cast's two colons, and further ones, do not begin a variable.
                0 => {
                    let rest = text.get(from..).unwrap_or_default();
                    from += rest.len() - rest.trim_start_matches(':').len();
                }
                n => {
                    variables.push(colon..from + n);
                    from += n;
                }
            }
        }
        if variables.len() > MOST_PARAMETERS {
            return Err(Fault::at(at, format!("more than {MOST_PARAMETERS} variables")));
        }
        Ok(Self { text, variables, cuts })
    }

    /// The text as in the script, with variable names.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn pieces(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut from = 0;
        self.variables.iter().map(move |range| {
            let literal = self.text.get(from..range.start).unwrap_or_default();
            from = range.end;
            (literal, self.text.get(range.start + 1..range.end).unwrap_or_default())
        })
    }

    fn tail(&self) -> &str {
        let from = self.variables.last().map_or(0, |range| range.end);
        self.text.get(from..).unwrap_or_default()
    }

    /// For the simple protocol: replaces variables by values everywhere in the text, as pgbench
    /// does. Unknown variables stay.
    pub fn render_simple(&self, vars: &Vars) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len() + 32);
        self.render_into(vars, &mut out);
        out
    }

    /// The same, appended to `out`.
    pub fn render_into(&self, vars: &Vars, out: &mut Vec<u8>) {
        use std::io::Write as _;
        for (literal, name) in self.pieces() {
            out.extend(literal.as_bytes());
            // Writing to memory does not fail.
            let _ = match vars.get(name) {
                Some(value) => write!(out, "{value}"),
                None => write!(out, ":{name}"),
            };
        }
        out.extend(self.tail().as_bytes());
    }

    /// Script offset, in bytes, of a character position (from 1) in the text that was sent with
    /// values inserted.
    pub fn place_with_values(&self, character: usize, vars: &Vars) -> Option<usize> {
        self.place(character, |_, name| match vars.get(name) {
            Some(value) => value.to_string().chars().count(),
            None => 1 + name.chars().count(),
        })
    }

    /// The same for the text that was sent with `$1`, `$2`, ….
    pub fn place_with_parameters(&self, character: usize) -> Option<usize> {
        self.place(character, |n, _| format!("${}", n + 1).len())
    }

    /// The same where variable n, from 0, of this name took `length` characters.
    fn place(&self, character: usize, length: impl Fn(usize, &str) -> usize) -> Option<usize> {
        let mut left = character.checked_sub(1)?;
        let mut at = 0;
        for (n, (literal, name)) in self.pieces().enumerate() {
            if let Some((within, _)) = literal.char_indices().nth(left) {
                return Some(self.in_script(at + within));
            }
            at += literal.len();
            left -= literal.chars().count();
            let stood = length(n, name);
            if left < stood {
                return Some(self.in_script(at));
            }
            (at, left) = (at + 1 + name.len(), left - stood);
        }
        let tail = self.tail();
        let mut ends = tail.char_indices().map(|(within, _)| within).chain([tail.len()]);
        Some(self.in_script(at + ends.nth(left)?))
    }

    fn in_script(&self, at: usize) -> usize {
        let before = self.cuts.iter().rev().find(|(text, _)| *text <= at);
        before.map_or(at, |(text, script)| script + (at - text))
    }

    /// For the extended protocol: the text with `$1`, `$2`, …, and the variables' names in that
    /// order. A variable used twice becomes two parameters, because their types may differ.
    pub fn render_parameters(&self) -> (String, Vec<String>) {
        let (mut text, mut names) = (String::with_capacity(self.text.len()), vec![]);
        for (literal, name) in self.pieces() {
            text += literal;
            names.push(name.to_owned());
            let _ = write!(text, "${}", names.len());
        }
        (text + self.tail(), names)
    }
}

/// How a piece of SQL ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Semicolon,
    /// At a backslash command, which begins at the cursor.
    Backslash,
    Script,
}

/// Splits statements by the rules of PostgreSQL's own scanner: a semicolon in quotes, comments,
/// parentheses or the body of a `CREATE FUNCTION` does not end a statement.
pub(super) struct Scanner<'a> {
    script: &'a str,
    pub at: usize,
    statement: String,
    cuts: Vec<(usize, usize)>,
    begin: usize,
    parentheses: usize,
    body: Body,
}

impl<'a> Scanner<'a> {
    pub fn new(script: &'a str) -> Self {
        Self {
            script,
            at: 0,
            statement: String::new(),
            cuts: vec![],
            begin: 0,
            parentheses: 0,
            body: Body::default(),
        }
    }

    fn rest(&self) -> &'a str {
        self.script.get(self.at..).unwrap_or_default()
    }

    fn keep(&mut self, length: usize) {
        if self.statement.is_empty() {
            self.begin = self.at;
        }
        let goes_on =
            |(text, script): &(usize, usize)| self.statement.len() + script == self.at + text;
        if !self.cuts.last().is_some_and(goes_on) {
            self.cuts.push((self.statement.len(), self.at));
        }
        self.statement += self.rest().get(..length).unwrap_or_default();
        self.at += length;
    }

    /// The next statement with its offset, if there is one, and its end.
    ///
    /// # Errors
    /// The statement is malformed, with its place: an unclosed quote or comment, a bad variable.
    pub fn next(&mut self) -> Result<(Option<(SqlText, usize)>, End), Fault> {
        self.statement.clear();
        self.cuts.clear();
        (self.parentheses, self.body) = (0, Body::default());
        let end = loop {
            if let Some(end) = self.step()? {
                break end;
            }
        };
        let text = self.statement.trim_end().to_owned();
        // A lone semicolon is a statement too; it costs the server almost nothing.
        let empty = text.is_empty() && end != End::Semicolon;
        let begin = if text.is_empty() { self.at.saturating_sub(1) } else { self.begin };
        let sql = if empty {
            None
        } else {
            Some((SqlText::new(text, begin, std::mem::take(&mut self.cuts))?, begin))
        };
        Ok((sql, end))
    }

    fn step(&mut self) -> Result<Option<End>, Fault> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Some(End::Script)) };
        let begins = |text: &str| rest.starts_with(text);
        if first.is_ascii_whitespace() || first == '\x0b' {
            match self.statement.is_empty() {
                true => self.at += 1,
                false => self.keep(1),
            }
        } else if begins("--") {
            self.at += rest.find('\n').unwrap_or(rest.len());
        } else if begins("/*") {
            self.comment(rest)?;
        } else if begins("\\;") || begins("\\:") {
            self.at += 1;
            self.keep(1);
        } else if first == '\\' {
            self.at += 1;
            return Ok(Some(End::Backslash));
        } else if first == ';' && self.parentheses == 0 && self.body.depth == 0 {
            self.at += 1;
            return Ok(Some(End::Semicolon));
        } else if first == '\'' || first == '"' {
            self.quoted(rest, first, false)?;
        } else if begins("e'") || begins("E'") {
            self.keep(1);
            self.quoted(self.rest(), '\'', true)?;
        } else if first == '$' {
            self.dollar(rest)?;
        } else {
            self.other(rest, first);
        }
        Ok(None)
    }

    fn other(&mut self, rest: &str, first: char) {
        // A number with letters attached contains no quote and begins no identifier.
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
        if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let word = rest.get(..length).unwrap_or_default();
            if self.parentheses == 0 {
                self.body.word(word);
            }
            return self.keep(length);
        }
        match first {
            '(' => self.parentheses += 1,
            ')' => self.parentheses = self.parentheses.saturating_sub(1),
            _ => {}
        }
        self.keep(first.len_utf8());
    }

    /// Reads a nested comment. It stays in the text: some extensions read comments.
    fn comment(&mut self, rest: &str) -> Result<(), Fault> {
        let (mut depth, mut at) = (0usize, 0);
        loop {
            let here = rest.get(at..).unwrap_or_default();
            if here.starts_with("/*") {
                (depth, at) = (depth + 1, at + 2);
            } else if here.starts_with("*/") {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    break;
                }
            } else if let Some(c) = here.chars().next() {
                at += c.len_utf8();
            } else {
                return Err(Fault::at(self.at, "the comment that begins here does not end"));
            }
        }
        self.keep(at);
        Ok(())
    }

    /// Reads a quoted text or name. A quote inside is doubled, or escaped by a backslash in an `E`
    /// string.
    fn quoted(&mut self, rest: &str, quote: char, escapes: bool) -> Result<(), Fault> {
        let mut characters = rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            if escapes && c == '\\' {
                characters.next();
            } else if c == quote {
                // A doubled quote can be read as an end and a new start: the same result, except in
                // `E` strings.
                let doubled = rest.get(at + 1..).is_some_and(|r| r.starts_with(quote));
                if !doubled {
                    self.keep(at + 1);
                    return Ok(());
                }
                characters.next();
            }
        }
        Err(Fault::at(self.at, format!("the {quote} that begins here has no end")))
    }

    /// Reads `$$ … $$` or `$tag$ … $tag$`; or a parameter or a single dollar sign.
    fn dollar(&mut self, rest: &str) -> Result<(), Fault> {
        let inner = rest.get(1..).unwrap_or_default();
        let name = name_length(inner);
        if !inner.get(name..).is_some_and(|r| r.starts_with('$')) {
            self.keep(1);
            return Ok(());
        }
        let tag = rest.get(..name + 2).unwrap_or_default();
        let after = rest.get(tag.len()..).unwrap_or_default();
        match after.find(tag) {
            Some(n) => self.keep(n + 2 * tag.len()),
            None => {
                return Err(Fault::at(self.at, format!("the {tag} that begins here has no end")));
            }
        }
        Ok(())
    }
}

/// Tracks the body of a `CREATE FUNCTION … BEGIN ATOMIC … END`.
#[derive(Default)]
struct Body {
    /// Number of the statement's first words read, until one shows that it is no function.
    words: usize,
    creates: Creates,
    /// Number of open `BEGIN` and `CASE`.
    depth: usize,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Creates {
    #[default]
    Unknown,
    /// `CREATE [OR [REPLACE]]` so far.
    Something,
    Function,
    Nothing,
}

impl Body {
    fn word(&mut self, word: &str) {
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        self.words += 1;
        self.creates = match (self.creates, self.words) {
            (Creates::Unknown, 1) if is("create") => Creates::Something,
            (Creates::Something, _) if is("function") || is("procedure") => Creates::Function,
            (Creates::Something, 2) if is("or") => Creates::Something,
            (Creates::Something, 3) if is("replace") => Creates::Something,
            (Creates::Function, _) => Creates::Function,
            _ => Creates::Nothing,
        };
        if self.creates == Creates::Function {
            if is("begin") || (is("case") && self.depth > 0) {
                self.depth += 1;
            } else if is("end") {
                self.depth = self.depth.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pg::script::Value;

    fn statements(script: &str) -> Vec<String> {
        let mut scanner = Scanner::new(script);
        let mut all = vec![];
        loop {
            let (sql, end) = scanner.next().unwrap();
            all.extend(sql.map(|(sql, _)| sql.text));
            if end != End::Semicolon {
                return all;
            }
        }
    }

    #[test]
    fn a_semicolon_ends_a_statement_only_outside_of_quotes_comments_and_bodies() {
        for (script, expected) in [
            ("select 1; select 2", &["select 1", "select 2"][..]),
            ("select ';'';' ; x", &["select ';'';'", "x"]),
            ("select E'\\';' ; x", &["select E'\\';'", "x"]),
            ("select '\\'; x", &["select '\\'", "x"]),
            ("select \";\" ; x", &["select \";\"", "x"]),
            ("a $$ ; $ $$ b; x", &["a $$ ; $ $$ b", "x"]),
            ("a $q$ ; $$ $q$; x", &["a $q$ ; $$ $q$", "x"]),
            ("select a$q$ ; x", &["select a$q$", "x"]),
            ("a -- ; '\nb; x -- y", &["a \nb", "x"]),
            ("-- nothing\n\n  -- here", &[]),
            ("a /* ; /* ; */ ; */ b; x", &["a /* ; /* ; */ ; */ b", "x"]),
            ("f(1; 2); x", &["f(1; 2)", "x"]),
            ("a \\; b; x", &["a ; b", "x"]),
            (";;", &["", ""]),
            (
                "create function f() returns int begin atomic; select case 1 when 1 then 2 end; end; x",
                &[
                    "create function f() returns int begin atomic; select case 1 when 1 then 2 end; end",
                    "x",
                ],
            ),
            ("begin; x; end; y", &["begin", "x", "end", "y"]),
            ("größe 'ß;'; x", &["größe 'ß;'", "x"]),
        ] {
            assert_eq!(statements(script), expected, "{script}");
        }
    }

    #[test]
    fn variables_are_replaced_everywhere_but_in_casts() {
        let sql =
            SqlText::new("a = :a::int, ':b' ::c :1 :_d:e : :größe".into(), 0, vec![]).unwrap();
        let (text, names) = sql.render_parameters();
        assert_eq!(text, "a = $1::int, '$2' ::c :1 $3$4 : $5");
        assert_eq!(names, ["a", "b", "_d", "e", "größe"]);
        let mut vars = Vars::default();
        vars.set("a", Value::Int(-5));
        vars.set("b", Value::Text("x".into()));
        vars.set("e", Value::Double(0.5));
        vars.set("größe", Value::Null);
        let text = String::from_utf8(sql.render_simple(&vars)).unwrap();
        assert_eq!(text, "a = -5::int, 'x' ::c :1 :_d0.5 : NULL");
    }
}
