//! The page as one HTML file: no script, no request, style and charts within.

use crate::{
    block::{Block, Cell, Chapter, Page, Table, Text, Tone},
    chart::WIDTHS,
    markup::Markup,
};

pub(crate) const STYLE: &str = include_str!("style.css");

/// Nothing is loaded: pictures and styles stand in the file.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// Tables with more rows are shown on request.
const LONG: usize = 16;

/// The page as HTML.
pub fn write(page: &Page) -> String {
    let mut m = Markup::default();
    m.constant("<!DOCTYPE html>\n");
    m.element("html", &[("lang", &"en")], |m| {
        m.element("head", &[], |m| head(page, m));
        m.element("body", &[], |m| {
            m.element("header", &[], |m| {
                m.says("h1", &[], &page.title);
                m.says("p", &[("class", &"about")], &page.about);
            });
            m.element("main", &[], |m| page.chapters.iter().for_each(|c| chapter(c, m)));
        });
    });
    m.constant("\n");
    m.finish()
}

fn head(page: &Page, m: &mut Markup) {
    m.leaf("meta", &[("charset", &"utf-8")]);
    m.leaf("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &POLICY)]);
    m.leaf("meta", &[("name", &"referrer"), ("content", &"no-referrer")]);
    m.leaf("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
    m.leaf("meta", &[("name", &"color-scheme"), ("content", &"light dark")]);
    // Without it a browser asks the server for one.
    m.leaf("link", &[("rel", &"icon"), ("href", &"data:,")]);
    m.says("title", &[], &page.title);
    m.element("style", &[], |m| m.constant(STYLE));
}

fn chapter(c: &Chapter, m: &mut Markup) {
    let heading = format!("{}-heading", c.id);
    m.element("section", &[("id", &c.id), ("aria-labelledby", &heading)], |m| {
        m.says("h2", &[("id", &heading)], &c.title);
        c.blocks.iter().for_each(|b| block(b, m));
    });
}

fn block(b: &Block, m: &mut Markup) {
    match b {
        Block::Heading(text) => m.says("h3", &[], text),
        Block::Paragraph(t) => m.element("p", &[], |m| text(t, m)),
        Block::List(items) => m.element("ul", &[], |m| {
            items.iter().for_each(|t| m.element("li", &[], |m| text(t, m)));
        }),
        Block::Table(t) => table(t, m),
        Block::Figure { chart, table: t } => m.element("figure", &[], |m| {
            m.says("figcaption", &[], chart.about());
            WIDTHS.iter().for_each(|(width, class)| chart.draw(*width, class, m));
            table(t, m);
        }),
        Block::Picture { svg, about } => m.element("figure", &[("class", &"picture")], |m| {
            m.says("figcaption", &[], about);
            let source = format!("data:image/svg+xml,{}", percent_encoded(svg));
            m.leaf("img", &[("src", &source), ("alt", about)]);
        }),
        Block::Card { tone: t, tag, title, inside } => {
            let class = format!("card {}", tone(*t));
            m.element("article", &[("class", &class)], |m| {
                m.element("h4", &[], |m| {
                    m.says("span", &[("class", &"tag")], tag);
                    m.text(" ");
                    m.text(title);
                });
                inside.iter().for_each(|b| block(b, m));
            });
        }
        Block::Commands(lines) => {
            m.element("pre", &[("class", &"commands"), ("tabindex", &"0")], |m| {
                m.says("code", &[], &lines.join("\n"));
            });
        }
        Block::More { title, text } => m.element("details", &[], |m| {
            m.says("summary", &[], title);
            m.says("pre", &[("tabindex", &"0")], text);
        }),
    }
}

fn text(t: &Text, m: &mut Markup) {
    for (tone_of, span) in &t.spans {
        match tone_of {
            Tone::Plain => m.text(span),
            Tone::Strong => m.says("strong", &[], span),
            Tone::Code => m.says("code", &[], span),
            Tone::Good | Tone::Warn | Tone::Bad => {
                m.says("strong", &[("class", &tone(*tone_of))], span);
            }
        }
    }
    if let Some((id, words)) = &t.link {
        m.says("a", &[("href", &format!("#{id}"))], words);
    }
}

fn tone(t: Tone) -> &'static str {
    match t {
        Tone::Plain => "plain",
        Tone::Strong => "strong",
        Tone::Code => "code",
        Tone::Good => "good",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
    }
}

/// A table; a long one on request.
fn table(t: &Table, m: &mut Markup) {
    match t.rows.len() > LONG {
        false => bare_table(t, m),
        true => m.element("details", &[], |m| {
            m.says("summary", &[], &format!("{} ({} rows)", t.caption, t.rows.len()));
            bare_table(t, m);
        }),
    }
    let missing = t.missing();
    if !missing.is_empty() {
        m.says("p", &[("class", &"missing")], &format!("Not known: {}.", missing.join("; ")));
    }
}

fn bare_table(t: &Table, m: &mut Markup) {
    let class =
        |n: usize| if t.columns.get(n).is_some_and(|c| c.figures) { "figure" } else { "words" };
    let label = t.caption.clone();
    // A focus lets a keyboard scroll a table that is wider than the screen.
    m.element(
        "div",
        &[("class", &"table"), ("tabindex", &"0"), ("role", &"region"), ("aria-label", &label)],
        |m| {
            m.element("table", &[], |m| {
                m.says("caption", &[], &t.caption);
                m.element("thead", &[], |m| {
                    m.element("tr", &[], |m| {
                        for (n, column) in t.columns.iter().enumerate() {
                            m.says("th", &[("scope", &"col"), ("class", &class(n))], &column.head);
                        }
                    });
                });
                m.element("tbody", &[], |m| {
                    for row in &t.rows {
                        m.element("tr", &[], |m| {
                            row.iter().enumerate().for_each(|(n, c)| cell(c, n, class(n), m));
                        });
                    }
                });
            });
        },
    );
}

fn cell(c: &Cell, n: usize, class: &'static str, m: &mut Markup) {
    let content = |m: &mut Markup| match c.tone {
        Tone::Plain => m.text(&c.text),
        t => text(&Text::default().then(t, &c.text), m),
    };
    match (&c.pointer, n) {
        (Some(at), _) => m.element("td", &[("class", &class), ("data-at", at)], content),
        (None, 0) => m.element("th", &[("scope", &"row"), ("class", &class)], content),
        (None, _) => m.element("td", &[("class", &class)], content),
    }
}

/// A text for the address of a picture.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 5 / 4);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b' '
            | b'/'
            | b'='
            | b':'
            | b','
            | b';'
            | b'('
            | b')' => out.push(char::from(byte)),
            b => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}
