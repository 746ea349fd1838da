//! Parses a script's backslash commands.

use super::{
    expr::{self, Expr},
    fault::Fault,
    function::Function,
    token::{Tokens, blank, continuation},
    value::is_name,
};

/// A command before its jump targets are known.
#[derive(Debug)]
pub(super) enum Meta {
    Set { name: String, expr: Expr },
    Sleep(Expr),
    If(Expr),
    Elif(Expr),
    Else,
    EndIf,
    StartPipeline,
    EndPipeline,
    Gset(String),
    Aset(String),
}

/// A word and its offset.
type MetaWord<'a> = (&'a str, usize);

/// Reader of a command's words.
struct MetaWords<'a> {
    script: &'a str,
    at: usize,
}

impl<'a> MetaWords<'a> {
    fn rest(&self) -> &'a str {
        self.script.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<MetaWord<'a>> {
        self.at += blank(self.rest());
        let rest = self.rest();
        let ends = |(n, c): (usize, char)| {
            c.is_ascii_whitespace() || c == '\x0b' || rest.get(n..).and_then(continuation).is_some()
        };
        let length = rest.char_indices().find(|c| ends(*c)).map_or(rest.len(), |(n, _)| n);
        let begin = self.at;
        self.at += length;
        rest.get(..length).filter(|w| !w.is_empty()).map(|w| (w, begin))
    }

    fn none_left(&mut self) -> Result<(), Fault> {
        match self.next() {
            Some((word, at)) => Err(Fault::at(at, format!("unexpected argument \"{word}\""))),
            None => Ok(()),
        }
    }
}

/// Offset of the command's end: after its line end, or at the end of the script.
pub(super) fn end_of_line(script: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(rest) = script.get(at..).filter(|r| !r.is_empty()) {
        let Some(n) = rest.find(['\n', '\\']) else { return script.len() };
        match rest.get(n..).and_then(continuation) {
            Some(length) => at += n + length,
            None if rest.get(n..).is_some_and(|r| r.starts_with('\n')) => return at + n + 1,
            None => at += n + 1,
        }
    }
    script.len()
}

/// Parses the command whose name begins at an offset; `None` for an empty line.
pub(super) fn read(script: &str, at: usize) -> Result<Option<Meta>, Fault> {
    let mut words = MetaWords { script, at };
    let Some((name, begin)) = words.next() else { return Ok(None) };
    // The command begins at its backslash.
    let begin = begin.min(at.saturating_sub(1));
    let plain = |meta: Meta, words: &mut MetaWords<'_>| words.none_left().map(|()| Some(meta));
    match name.to_ascii_lowercase().as_str() {
        "set" => set(&mut words, begin).map(Some),
        "if" => Ok(Some(Meta::If(expression(&words)?))),
        "elif" => Ok(Some(Meta::Elif(expression(&words)?))),
        "else" => plain(Meta::Else, &mut words),
        "endif" => plain(Meta::EndIf, &mut words),
        "startpipeline" => plain(Meta::StartPipeline, &mut words),
        "endpipeline" => plain(Meta::EndPipeline, &mut words),
        "gset" => prefix(&mut words).map(|p| Some(Meta::Gset(p))),
        "aset" => prefix(&mut words).map(|p| Some(Meta::Aset(p))),
        "sleep" => sleep(&mut words, begin).map(|e| Some(Meta::Sleep(e))),
        "shell" | "setshell" => Err(Fault::at(
            begin,
            format!("\\{name} is not supported: it would start a program in every transaction"),
        )),
        _ => Err(Fault::at(
            begin,
            format!(
                "there is no command \\{name}; there are \\set, \\sleep, \\if, \\elif, \\else, \
                 \\endif, \\gset, \\aset, \\startpipeline and \\endpipeline"
            ),
        )),
    }
}

fn expression(words: &MetaWords<'_>) -> Result<Expr, Fault> {
    expr::whole(&mut Tokens::new(words.script, words.at)?)
}

fn set(words: &mut MetaWords<'_>, begin: usize) -> Result<Meta, Fault> {
    let Some((name, at)) = words.next() else {
        return Err(Fault::at(begin, "\\set needs a variable's name and an expression"));
    };
    variable(name, at)?;
    Ok(Meta::Set { name: name.to_owned(), expr: expression(words)? })
}

fn variable(name: &str, at: usize) -> Result<(), Fault> {
    if is_name(name) {
        return Ok(());
    }
    let what = "a variable's name is of letters, digits and underscores and begins with no digit";
    Err(Fault::at(at, format!("\"{name}\": {what}")))
}

fn prefix(words: &mut MetaWords<'_>) -> Result<String, Fault> {
    let Some((word, at)) = words.next() else { return Ok(String::new()) };
    variable(word, at)?;
    words.none_left()?;
    Ok(word.to_owned())
}

/// Parses `\sleep NUMBER|:VARIABLE [us|ms|s]` into nanoseconds.
fn sleep(words: &mut MetaWords<'_>, begin: usize) -> Result<Expr, Fault> {
    let Some((word, at)) = words.next() else {
        return Err(Fault::at(begin, "\\sleep needs a time: \\sleep 10 ms"));
    };
    let mut unit = words.next();
    words.none_left()?;
    let time = if let Some(name) = word.strip_prefix(':') {
        variable(name, at + 1)?;
        // pgbench drops fractions, so this does too.
        Expr::call(Function::Truncate, vec![Expr::variable(name)])
    } else {
        let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        let signed = word.len() - digits.len() + length;
        let Some(Ok(n)) = word.get(..signed).map(str::parse::<i64>) else {
            return Err(Fault::at(at, format!("\"{word}\" is no time; write \\sleep 10 ms")));
        };
        if let Some(stuck) = word.get(signed..).filter(|s| !s.is_empty()) {
            if let Some((word, at)) = unit {
                return Err(Fault::at(at, format!("unexpected argument \"{word}\"")));
            }
            unit = Some((stuck, at + signed));
        }
        Expr::int(n)
    };
    let (unit, at) = unit.unwrap_or(("s", at));
    let ns = match unit.to_ascii_lowercase().as_str() {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(Fault::at(at, format!("unknown unit \"{unit}\"; it is us, ms or s"))),
    };
    Ok(Expr::call(Function::Mul, vec![time, Expr::int(ns)]))
}
