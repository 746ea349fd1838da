//! The page as Markdown, for a ticket. Charts are left out; their tables stay.

use report::clean;

use crate::block::{Block, Cell, Page, Table, Text, Tone};

/// Tables with more rows are left out of a ticket.
const LONG: usize = 40;

/// The page as Markdown.
pub fn write(page: &Page) -> String {
    let mut out = format!("# {}\n\n{}\n", plain(&page.title), plain(&page.about));
    for chapter in &page.chapters {
        out += &format!("\n## {}\n", plain(&chapter.title));
        chapter.blocks.iter().for_each(|b| block(b, 3, &mut out));
    }
    out
}

fn block(b: &Block, level: usize, out: &mut String) {
    match b {
        Block::Heading(text) => *out += &format!("\n{} {}\n", "#".repeat(level), plain(text)),
        Block::Paragraph(t) => *out += &format!("\n{}\n", spans(t)),
        Block::List(items) => {
            out.push('\n');
            items.iter().for_each(|t| *out += &format!("- {}\n", spans(t)));
        }
        Block::Table(t) => table(t, out),
        Block::Figure { table: t, .. } => table(t, out),
        Block::Picture { about, .. } => {
            *out += &format!("\n{} The picture is on the HTML page.\n", plain(about));
        }
        Block::Card { tag, title, inside, .. } => {
            *out += &format!("\n{} {}: {}\n", "#".repeat(level + 1), plain(tag), plain(title));
            inside.iter().for_each(|b| block(b, level + 2, out));
        }
        Block::Commands(lines) => fenced(&lines.join("\n"), "sh", out),
        // The program prints it; a ticket has room for the answer.
        Block::More { .. } => {}
    }
}

fn table(t: &Table, out: &mut String) {
    *out += &format!("\n{}:\n", plain(&t.caption));
    if t.rows.len() > LONG {
        *out += &format!("{} rows, which are on the HTML page.\n", t.rows.len());
        return;
    }
    let heads: Vec<String> = t.columns.iter().map(|c| plain(&c.head)).collect();
    *out += &format!("\n| {} |\n", heads.join(" | "));
    let rules: Vec<&str> =
        t.columns.iter().map(|c| if c.figures { "---:" } else { "---" }).collect();
    *out += &format!("|{}|\n", rules.join("|"));
    for row in &t.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        *out += &format!("| {} |\n", cells.join(" | "));
    }
    let missing = t.missing();
    if !missing.is_empty() {
        *out += &format!("\nNot known: {}.\n", plain(&missing.join("; ")));
    }
}

fn cell(c: &Cell) -> String {
    spans(&Text::default().then(c.tone, &c.text))
}

fn spans(t: &Text) -> String {
    let span = |(tone, text): &(Tone, String)| match tone {
        _ if text.trim().is_empty() => text.clone(),
        Tone::Plain => plain(text),
        Tone::Code => code(text),
        Tone::Strong | Tone::Good | Tone::Warn | Tone::Bad => strong(text),
    };
    merged(t).iter().map(span).collect()
}

/// Neighbouring spans that Markdown prints alike, as one: marks that touch are no marks.
fn merged(t: &Text) -> Vec<(Tone, String)> {
    let alike = |tone: Tone| match tone {
        Tone::Good | Tone::Warn | Tone::Bad => Tone::Strong,
        other => other,
    };
    let mut all: Vec<(Tone, String)> = vec![];
    for (tone, text) in &t.spans {
        match all.last_mut() {
            Some((before, whole)) if *before == alike(*tone) && *before != Tone::Code => {
                whole.push_str(text);
            }
            _ => all.push((alike(*tone), text.clone())),
        }
    }
    all
}

/// Strong text: a blank beside a mark makes it no mark, so blanks at the ends stay outside.
fn strong(text: &str) -> String {
    let begin = text.len() - text.trim_start().len();
    let end = text.trim_end().len();
    let (before, after) = (text.get(..begin), text.get(end..));
    let inner = text.get(begin..end).unwrap_or_default();
    format!("{}**{}**{}", before.unwrap_or_default(), plain(inner), after.unwrap_or_default())
}

/// A text as code: it ends only with as many backquotes as it began with.
fn code(text: &str) -> String {
    let text = clean(text).replace('|', "\\|");
    let fence = "`".repeat(longest_run(&text) + 1);
    match fence.len() {
        1 => format!("`{text}`"),
        _ => format!("{fence} {text} {fence}"),
    }
}

fn fenced(text: &str, language: &str, out: &mut String) {
    let lines: Vec<String> = text.lines().map(clean).collect();
    let fence = "`".repeat((longest_run(text) + 1).max(3));
    *out += &format!("\n{fence}{language}\n{}\n{fence}\n", lines.join("\n"));
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// A text without the characters of Markdown and HTML.
fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '<' => shown += "&lt;",
            '>' => shown += "&gt;",
            '&' => shown += "&amp;",
            '|' | '*' | '`' | '[' | ']' | '_' | '\\' | '#' | '@' | '~' => shown.extend(['\\', c]),
            c => shown.push(c),
        }
    }
    shown
}
