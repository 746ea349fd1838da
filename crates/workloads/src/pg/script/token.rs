//! Splits an expression into tokens.

use super::{fault::Fault, value::name_length};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    /// An integer up to 2^63, which is valid only after a minus.
    Int(u64),
    Double(f64),
    /// A variable, `:name`, without its colon.
    Variable(&'a str),
    /// A function name or a keyword.
    Word(&'a str),
    /// An operator, a parenthesis or a comma.
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 20] = [
    "<<", ">>", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "(", ")", ",", "<", ">", "=", "&",
    "|", "#",
];

/// The tokens of one command, which ends with its line; a final backslash continues the line.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// The next token and its offset.
    next: (Token<'a>, usize),
}

impl<'a> Tokens<'a> {
    /// Tokens from an offset on.
    ///
    /// # Errors
    /// The first token is invalid.
    pub fn new(text: &'a str, at: usize) -> Result<Self, Fault> {
        let mut tokens = Self { text, at, next: (Token::End, at) };
        tokens.next = tokens.read()?;
        Ok(tokens)
    }

    pub fn peek(&self) -> &Token<'a> {
        &self.next.0
    }

    /// Offset of the next token.
    pub fn offset(&self) -> usize {
        self.next.1
    }

    /// Returns the next token and reads the one after it.
    ///
    /// # Errors
    /// The token after it is invalid.
    pub fn take(&mut self) -> Result<Token<'a>, Fault> {
        let following = self.read()?;
        Ok(std::mem::replace(&mut self.next, following).0)
    }

    /// Whether the next token is this word, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w.eq_ignore_ascii_case(word))
    }

    /// Takes the next token if it is this word or sign.
    ///
    /// # Errors
    /// The token after it is invalid.
    pub fn accept(&mut self, what: &str) -> Result<bool, Fault> {
        let here = match self.peek() {
            Token::Sign(sign) => *sign == what,
            _ => self.is_word(what),
        };
        if here {
            self.take()?;
        }
        Ok(here)
    }

    /// Error for an unexpected token, with what was expected.
    pub fn unexpected(&self, wanted: &str) -> Fault {
        let what = match self.peek() {
            Token::End => format!("the command ends where {wanted} is expected"),
            _ => {
                let end = self.at.max(self.offset());
                let text = self.text.get(self.offset()..end).unwrap_or_default();
                format!("unexpected \"{}\" where {wanted} is expected", text.trim_end())
            }
        };
        Fault::at(self.offset(), what)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn read(&mut self) -> Result<(Token<'a>, usize), Fault> {
        self.at += blank(self.rest());
        let (rest, at) = (self.rest(), self.at);
        let (token, length) = token(rest).map_err(|what| Fault::at(at, what))?;
        self.at += length;
        Ok((token, at))
    }
}

/// Length in bytes of leading white space and line continuations.
pub(super) fn blank(text: &str) -> usize {
    let mut left = text;
    loop {
        let shorter = left.trim_start_matches([' ', '\t', '\r', '\x0c', '\x0b']);
        let next = continuation(shorter).and_then(|n| shorter.get(n..)).unwrap_or(shorter);
        if next.len() == left.len() {
            return text.len() - left.len();
        }
        left = next;
    }
}

/// Length of a backslash and line end at the start of a text, which continue a line.
pub(super) fn continuation(text: &str) -> Option<usize> {
    ["\\\n", "\\\r\n"].iter().find(|c| text.starts_with(**c)).map(|c| c.len())
}

fn token(rest: &str) -> Result<(Token<'_>, usize), String> {
    let Some(first) = rest.chars().next() else { return Ok((Token::End, 0)) };
    let part = |n: usize| rest.get(..n).unwrap_or_default();
    let sign = |s: &'static str| Ok((Token::Sign(s), s.len()));
    match first {
        '\n' => Ok((Token::End, 0)),
        ':' => match name_length(rest.get(1..).unwrap_or_default()) {
            0 => Err("a variable's name is missing after the colon".into()),
            n => Ok((Token::Variable(part(n + 1).trim_start_matches(':')), n + 1)),
        },
        '0'..='9' | '.' => number(rest),
        '~' => sign("~"),
        _ => match name_length(rest) {
            0 => match SIGNS.iter().find(|s| rest.starts_with(**s)) {
                Some(found) => sign(found),
                None => Err(format!("unexpected character {first:?}")),
            },
            n => Ok((Token::Word(part(n)), n)),
        },
    }
}

/// Reads `12`, `1.5`, `.5` or `1e-3`; returns its length too.
fn number(rest: &str) -> Result<(Token<'_>, usize), String> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let from = |n: usize| rest.get(n..).unwrap_or_default();
    let whole = digits(rest);
    let mut length = whole;
    if from(length).starts_with('.') {
        let fraction = digits(from(length + 1));
        if whole + fraction == 0 {
            return Err("unexpected character '.'".into());
        }
        length += 1 + fraction;
    }
    if from(length).starts_with(['e', 'E']) {
        let sign = usize::from(from(length + 1).starts_with(['+', '-']));
        let exponent = digits(from(length + 1 + sign));
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let text = rest.get(..length).unwrap_or_default();
    let token = if length == whole {
        let n = text.parse().ok().filter(|n| *n <= 1 << 63);
        Token::Int(n.ok_or("bigint constant overflow")?)
    } else {
        let x: Option<f64> = text.parse().ok().filter(|x: &f64| x.is_finite());
        Token::Double(x.ok_or("double constant overflow")?)
    };
    Ok((token, length))
}
