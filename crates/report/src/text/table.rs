//! Tables with aligned columns, wrapped where a page is narrow.

use super::{Ink, Line};

const GAP: usize = 2;
/// No column is narrower than this.
const NARROWEST: usize = 8;
/// Wide enough for the parts of most names.
const NAME: usize = 12;
/// What a cell below its row is indented by.
const INDENT: usize = 2;

struct Column {
    head: String,
    right: bool,
    wraps: bool,
    below: bool,
}

/// A table with a head row. Columns are as wide as their widest cell. If that exceeds the page,
/// columns that may wrap shrink, the widest first. A word is broken only where the longest words of
/// all columns do not fit.
#[derive(Default)]
pub struct Table {
    columns: Vec<Column>,
    body: Vec<Vec<Line>>,
    folds: bool,
}

impl Table {
    pub fn new() -> Self {
        Self::default()
    }

    /// The same table, whose heads are broken at blanks where it is wider than the
    /// page. They end above the cells.
    #[must_use]
    pub fn folding_heads(mut self) -> Self {
        self.folds = true;
        self
    }

    /// A column of names.
    #[must_use]
    pub fn left(self, head: &str) -> Self {
        self.column(head, false, false)
    }

    /// A column of numbers.
    #[must_use]
    pub fn right(self, head: &str) -> Self {
        self.column(head, true, false)
    }

    /// A column of text that may run over several lines.
    #[must_use]
    pub fn wrapping(self, head: &str) -> Self {
        self.column(head, false, true)
    }

    /// The last column, of text. Where the table is wider than the page, the cells stand below their
    /// rows instead, without the head.
    #[must_use]
    pub fn last_or_below(mut self, head: &str) -> Self {
        self.columns.push(Column { head: head.to_owned(), right: false, wraps: true, below: true });
        self
    }

    fn column(mut self, head: &str, right: bool, wraps: bool) -> Self {
        self.columns.push(Column { head: head.to_owned(), right, wraps, below: false });
        self
    }

    /// A row; missing cells are empty, superfluous ones are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Line>) {
        self.body.push(cells.into_iter().take(self.columns.len()).collect());
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// The finished lines, the head first unless every head is empty.
    pub fn rows(&self, width: usize) -> Vec<Line> {
        let fits = total(&self.widest(Line::width, super::width)) <= width;
        let below = !fits && self.columns.last().is_some_and(|c| c.below);
        let widths = self.widths(width, self.columns.len() - usize::from(below));
        let mut lines = vec![];
        if self.columns.iter().any(|c| !c.head.is_empty()) {
            let head: Vec<Line> =
                self.columns.iter().map(|c| Line::new().ink(Ink::Faint, &c.head)).collect();
            lines.extend(self.lay_out(&head, &widths, self.folds));
        }
        for row in &self.body {
            lines.extend(self.lay_out(row, &widths, false));
            let cell = row.get(widths.len()).filter(|_| below);
            let room = width.saturating_sub(INDENT).max(NARROWEST);
            for part in cell.iter().flat_map(|cell| cell.wrap(room, room, true)) {
                let mut line = Line::plain(" ".repeat(INDENT));
                line.extend(part);
                lines.push(line);
            }
        }
        lines
    }

    /// The widths of the first columns, on a page of this width.
    fn widths(&self, page: usize, columns: usize) -> Vec<usize> {
        let mut whole = self.widest(Line::width, super::width);
        whole.truncate(columns);
        let folds = self.folds && total(&whole) > page;
        let head = |head: &str| match folds {
            true => head.split(' ').map(super::width).max().unwrap_or(0),
            false => super::width(head),
        };
        let mut widths = if folds { self.widest(Line::width, head) } else { whole };
        widths.truncate(columns);
        let words = self.widest(Line::longest_word, head);
        self.narrow(&mut widths, page, &words);
        let heads: Vec<usize> = self.columns.iter().map(|c| head(&c.head).max(NAME)).collect();
        self.narrow(&mut widths, page, &heads);
        self.narrow(&mut widths, page, &vec![NARROWEST; self.columns.len()]);
        widths
    }

    /// The widest of each column, its head among its cells.
    fn widest(&self, cell: fn(&Line) -> usize, head: impl Fn(&str) -> usize) -> Vec<usize> {
        let of = |(i, c): (usize, &Column)| {
            let cells = self.body.iter().filter_map(|r| r.get(i)).map(cell);
            cells.chain([head(&c.head)]).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(of).collect()
    }

    /// Takes from the widest of the columns that may wrap, none below its floor, until the page is
    /// wide enough or nothing is left to take.
    fn narrow(&self, widths: &mut [usize], page: usize, floors: &[usize]) {
        loop {
            let total = total(widths);
            let widest = widths
                .iter_mut()
                .zip(&self.columns)
                .zip(floors)
                .filter(|((w, c), floor)| c.wraps && **w > **floor)
                .map(|((w, _), _)| w)
                .max();
            match widest {
                Some(w) if total > page => *w -= 1,
                _ => return,
            }
        }
    }

    /// The lines of a row; its cells begin in the first line, or with `at_bottom` end in the last.
    fn lay_out(&self, row: &[Line], widths: &[usize], at_bottom: bool) -> Vec<Line> {
        let mut cells: Vec<Vec<Line>> =
            row.iter().zip(widths).map(|(cell, &w)| cell.wrap(w, w, true)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for parts in cells.iter_mut().filter(|_| at_bottom) {
            let missing = height - parts.len();
            parts.splice(0..0, vec![Line::new(); missing]);
        }
        (0..height)
            .map(|y| {
                let mut line = Line::new();
                let mut due = 0;
                for ((parts, &w), column) in cells.iter().zip(widths).zip(&self.columns) {
                    let part = parts.get(y).cloned().unwrap_or_default();
                    let before = if column.right { w.saturating_sub(part.width()) } else { 0 };
                    due += before;
                    if !part.is_empty() {
                        line.push(Ink::Plain, " ".repeat(due));
                        due = 0;
                    }
                    due += w.saturating_sub(part.width() + before) + GAP;
                    line.extend(part);
                }
                line
            })
            .collect()
    }
}

/// The columns of all cells of a line and of the gaps between them.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &Table, width: usize) -> Vec<String> {
        table.rows(width).iter().map(Line::bare).collect()
    }

    #[test]
    fn aligns_and_wraps_only_what_may_wrap() {
        let mut t = Table::new().left("NAME").right("COUNT").wrapping("WHY");
        t.row(["a", "1,000", "short"].map(Line::plain));
        t.row(["網路", "7", "a longer text that does not fit"].map(Line::plain));
        assert_eq!(
            text(&t, 30),
            [
                "NAME  COUNT  WHY",
                "a     1,000  short",
                "網路      7  a longer text",
                "             that does not fit",
            ]
        );
        assert_eq!(text(&t, 80).len(), 3);
        assert!(text(&t, 5).len() > 4, "too narrow a page still gives a table");
    }

    #[test]
    fn the_last_column_stands_below_its_rows_where_the_page_is_narrow() {
        let mut t = Table::new().wrapping("METRIC").right("CHANGE").last_or_below("VERDICT");
        t.row(["rate", "+4.3%", "no significant difference"].map(Line::plain));
        t.row(["time", "-0.4%", "worse"].map(Line::plain));
        assert_eq!(
            text(&t, 41),
            [
                "METRIC  CHANGE  VERDICT",
                "rate     +4.3%  no significant difference",
                "time     -0.4%  worse",
            ]
        );
        assert_eq!(
            text(&t, 40),
            [
                "METRIC  CHANGE",
                "rate     +4.3%",
                "  no significant difference",
                "time     -0.4%",
                "  worse",
            ]
        );
        assert_eq!(
            text(&t, 16)[2..4],
            ["  no significant"[..16].to_owned(), "  difference".into()]
        );
    }

    #[test]
    fn a_name_is_broken_only_where_no_column_can_give_way() {
        let mut t = Table::new().wrapping("IRQ").wrapping("WHAT");
        t.row(["virtio0-input.0-with-a-name", "ab cd ef gh ij kl mn"].map(Line::plain));
        assert_eq!(
            text(&t, 40),
            [
                "IRQ                          WHAT",
                "virtio0-input.0-with-a-name  ab cd ef gh",
                "                             ij kl mn",
            ]
        );
        assert!(text(&t, 24).iter().all(|l| l.len() <= 24), "{:?}", text(&t, 24));
    }
}
