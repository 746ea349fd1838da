//! The page as a tree of blocks, from which HTML and Markdown are written.

pub use crate::tone::Tone;
use crate::{
    chart::Chart,
    unit::{NONE, Unit},
};

/// A text of spans.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Text(pub Vec<(Tone, String)>);

impl Text {
    pub fn plain(text: impl Into<String>) -> Self {
        Self::default().then(Tone::Plain, text)
    }

    pub fn strong(text: impl Into<String>) -> Self {
        Self::default().then(Tone::Strong, text)
    }

    /// A text whose parts in backquotes are code. For texts of the program itself.
    pub fn with_code(text: &str) -> Self {
        let tone = |n: usize| if n % 2 == 1 { Tone::Code } else { Tone::Plain };
        Self(text.split('`').enumerate().map(|(n, part)| (tone(n), part.to_owned())).collect())
    }

    /// Appends a span in this tone.
    #[must_use]
    pub fn then(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    /// Appends the spans of another text, each in its tone.
    #[must_use]
    pub fn also(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Appends text without a tone.
    #[must_use]
    pub fn and(self, text: impl Into<String>) -> Self {
        self.then(Tone::Plain, text)
    }
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
    /// Where the figure stands in the document: a JSON pointer (RFC 6901).
    pub pointer: Option<String>,
    /// Why there is no figure, as the document says.
    pub missing: Option<String>,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, ..Self::text(text) }
    }

    /// No figure, and no reason.
    pub fn none() -> Self {
        Self::text(NONE)
    }

    /// A figure of a document.
    pub fn figure(pointer: &str, x: f64, unit: Unit) -> Self {
        Self { pointer: Some(pointer.to_owned()), ..Self::text(unit.show(x)) }
    }
}

/// A column's head, and whether it has figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub head: String,
    pub figures: bool,
}

/// A table. Its first column names the rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..Self::default() }
    }

    /// A column of texts.
    #[must_use]
    pub fn words(mut self, head: impl Into<String>) -> Self {
        self.columns.push(Column { head: head.into(), figures: false });
        self
    }

    /// A column of figures.
    #[must_use]
    pub fn figures(mut self, head: impl Into<String>) -> Self {
        self.columns.push(Column { head: head.into(), figures: true });
        self
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Removes the columns in which no row has a figure or a reason.
    #[must_use]
    pub fn without_empty_columns(mut self) -> Self {
        let used: Vec<bool> = (0..self.columns.len())
            .map(|n| {
                let cells = self.rows.iter().filter_map(|r| r.get(n));
                n == 0
                    || cells
                        .into_iter()
                        .any(|c| !matches!(c.text.as_str(), "" | NONE) || c.missing.is_some())
            })
            .collect();
        let keep = |n: usize| used.get(n).copied().unwrap_or(true);
        let filter = |n: &mut usize| {
            let at = *n;
            *n += 1;
            keep(at)
        };
        let mut n = 0;
        self.columns.retain(|_| filter(&mut n));
        for row in &mut self.rows {
            let mut n = 0;
            row.retain(|_| filter(&mut n));
        }
        self
    }

    /// The reasons for missing figures, each once.
    pub fn missing(&self) -> Vec<&str> {
        let mut all: Vec<&str> = vec![];
        for why in self.rows.iter().flatten().filter_map(|c| c.missing.as_deref()) {
            if !all.contains(&why) {
                all.push(why);
            }
        }
        all
    }
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Heading(String),
    Paragraph(Text),
    List(Vec<Text>),
    Table(Table),
    /// A chart with its figures behind it.
    Figure {
        chart: Chart,
        table: Table,
    },
    /// A picture as an SVG document of its own, and what it shows.
    Picture {
        svg: String,
        about: String,
    },
    /// A finding: its tag, its title, and what belongs to it.
    Card {
        tone: Tone,
        tag: String,
        title: String,
        inside: Vec<Block>,
    },
    /// Commands for a shell, one a line.
    Commands(Vec<String>),
    /// Preformatted text that is shown on request.
    More {
        title: String,
        text: String,
    },
}

/// A chapter of a page: one document, or the story of all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chapter {
    /// An anchor within the page, of letters, digits and `-`.
    pub id: String,
    pub title: String,
    pub blocks: Vec<Block>,
}

impl Chapter {
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self { id: id.into(), title: title.into(), blocks: vec![] }
    }

    pub fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    pub fn say(&mut self, text: Text) {
        self.blocks.push(Block::Paragraph(text));
    }

    /// A table, unless it has no rows.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    /// A list, unless it is empty.
    pub fn list(&mut self, items: Vec<Text>) {
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
    }

    pub fn figure(&mut self, chart: impl Into<Chart>, table: Table) {
        self.blocks.push(Block::Figure { chart: chart.into(), table });
    }
}

/// A whole page, before it becomes HTML or Markdown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    pub title: String,
    /// One line beneath the title.
    pub about: String,
    pub chapters: Vec<Chapter>,
}
