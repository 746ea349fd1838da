//! Draws a listing: as many rows and columns as there is room for.

use ratatui::text::{Line, Span};
use report::{
    text::width,
    watch::listing::{Cell, Listing},
};

use super::palette::Palette;

/// Leading columns that never scroll out; they identify the row.
const PINNED: usize = 2;

/// The column that rows are sorted by, and its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortOrder {
    pub head: &'static str,
    /// Whether the order is descending.
    pub falls: bool,
}

impl SortOrder {
    /// The column's head with the arrow.
    fn marked(self) -> String {
        format!("{}{}", self.head, if self.falls { '▼' } else { '▲' })
    }
}

/// How to draw a listing.
pub struct TableLayout {
    pub palette: Palette,
    /// Rows scrolled out above.
    pub scroll: usize,
    /// Columns scrolled out after the first two.
    pub aside: usize,
    /// The sort column; `None` where there is none.
    pub sorted: Option<SortOrder>,
    /// The most lines and columns of the terminal to use.
    pub height: usize,
    pub width: usize,
}

impl TableLayout {
    /// A head, with an arrow where rows are sorted by it.
    fn head(&self, head: &str) -> String {
        match self.sorted.filter(|s| s.head == head) {
            Some(sorted) => sorted.marked(),
            None => head.to_owned(),
        }
    }
}

/// The lines: a head, the rows, and a last line for what does not fit.
pub fn lines(list: &Listing, layout: &TableLayout) -> Vec<Line<'static>> {
    let room = layout.height.saturating_sub(1);
    let first = layout.scroll.min(list.rows.len().saturating_sub(room.max(1)));
    let rows: Vec<&Vec<Cell>> = list.rows.iter().skip(first).take(room).collect();
    let columns = chosen(list, layout);
    let wide = |column: usize| {
        let head = list.columns.get(column).map_or(0, |c| width(&layout.head(c.head)));
        let cells = rows.iter().filter_map(|r| r.get(column)).map(|c| width(&c.text));
        cells.chain([head]).max().unwrap_or(0)
    };
    let widths = fitted(columns.into_iter().map(|c| (c, wide(c))).collect(), list, layout.width);
    let mut lines = vec![head(list, layout, &widths)];
    for row in rows {
        let cells = widths.iter().map(|(column, wide)| {
            let right = list.columns.get(*column).is_some_and(|c| c.right);
            let text = row.get(*column).map_or("", |c| c.text.as_str());
            Span::raw(padded(&cut(text, *wide), *wide, right))
        });
        lines.push(Line::from(cells.collect::<Vec<_>>()));
    }
    lines
}

/// The least width that a text is cut to.
const LEAST_TEXT: usize = 15;

/// The columns and their widths that fit: the widest texts are cut first, then whole columns are left
/// out at the end, so that no figure is cut.
fn fitted(mut widths: Vec<(usize, usize)>, list: &Listing, room: usize) -> Vec<(usize, usize)> {
    let is_text = |column: usize| list.columns.get(column).is_some_and(|c| !c.right);
    loop {
        let all: usize = widths.iter().map(|(_, wide)| wide + 2).sum();
        let over = all.saturating_sub(room + 2);
        if over == 0 {
            return widths;
        }
        let texts = widths.iter_mut().filter(|(c, wide)| is_text(*c) && *wide > LEAST_TEXT);
        if let Some((_, wide)) = texts.max_by_key(|(_, wide)| *wide) {
            *wide = LEAST_TEXT.max(wide.saturating_sub(over));
        } else if widths.len() > PINNED + 1 {
            widths.pop();
        } else {
            return widths;
        }
    }
}

/// A text of at most this width; one that is cut ends in `…`.
fn cut(text: &str, wide: usize) -> String {
    if width(text) <= wide {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width(&kept) >= wide {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

/// The indices of the columns to draw.
fn chosen(list: &Listing, layout: &TableLayout) -> Vec<usize> {
    let aside = layout.aside.min(list.columns.len().saturating_sub(PINNED + 1));
    (0..list.columns.len()).filter(|c| *c < PINNED || *c >= PINNED + aside).collect()
}

fn head(list: &Listing, layout: &TableLayout, widths: &[(usize, usize)]) -> Line<'static> {
    let cell = |(column, wide): &(usize, usize)| {
        let (head, right) = list.columns.get(*column).map_or(("", false), |c| (c.head, c.right));
        let style = match layout.sorted.is_some_and(|s| s.head == head) {
            true => layout.palette.chosen(),
            false => layout.palette.strong(),
        };
        Span::styled(padded(&layout.head(head), *wide, right), style)
    };
    Line::from(widths.iter().map(cell).collect::<Vec<_>>())
}

/// A text padded to its column, with the gap after it.
fn padded(text: &str, wide: usize, right: bool) -> String {
    let blank = " ".repeat(wide.saturating_sub(width(text)));
    if right { format!("{blank}{text}  ") } else { format!("{text}{blank}  ") }
}

/// A text wrapped over several lines; the later ones are indented by two more.
pub fn wrapped(text: &str, indent: usize, columns: usize) -> Vec<String> {
    let mut lines = vec![];
    let mut line = " ".repeat(indent);
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && width(&line) + 1 + width(word) > columns {
            lines.push(line);
            line = " ".repeat(indent + 2);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines
}
