//! A table before it is drawn: sortable, filterable, for a page or a terminal.

use std::{cmp::Ordering, fmt::Display};

use model::Reading;

use crate::{text::clean, words::grouped};

#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub text: String,
    /// The sort key of a numeric cell.
    pub number: Option<f64>,
}

impl Cell {
    /// Text from outside, cleaned.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self { text: clean(text.as_ref()), number: None }
    }

    /// A number as `text` says it.
    pub fn number(number: f64, text: String) -> Self {
        Self { text, number: Some(number) }
    }

    /// Whether the cell has a value.
    fn says(&self) -> bool {
        !matches!(self.text.as_str(), "-" | "denied")
    }

    /// An id: a number without grouping.
    pub fn id(id: impl Into<u64>) -> Self {
        let id = id.into();
        Self::number(id as f64, id.to_string())
    }

    pub fn count(n: u64) -> Self {
        Self::number(n as f64, grouped(n))
    }

    pub fn time(ns: u64) -> Self {
        Self::number(ns as f64, time(ns))
    }

    /// A share, 0 to 1, as percent.
    pub fn percent(share: f64) -> Self {
        Self::number(share, format!("{:.1}%", share * 100.0))
    }

    /// A reading: `-` where absent, `denied` where not permitted.
    pub fn reading<T>(reading: &Reading<T>, cell: impl FnOnce(&T) -> Self) -> Self {
        match reading {
            Reading::Known(v) => cell(v),
            Reading::Absent(_) => Self::text("-"),
            Reading::Denied(_) => Self::text("denied"),
        }
    }
}

/// A duration with three digits: `850 ns`, `12.3 µs`, `4.56 ms`, `1.20 s`.
pub fn time(ns: u64) -> String {
    let of = |unit: f64, name: &str| {
        let v = ns as f64 / unit;
        let digits = if v < 9.995 { 2 } else { usize::from(v < 99.95) };
        format!("{v:.digits$} {name}")
    };
    match ns {
        0 => "0".into(),
        1..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => of(1e3, "µs"),
        1_000_000..1_000_000_000 => of(1e6, "ms"),
        _ => of(1e9, "s"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub head: &'static str,
    /// Whether its cells stand at its right end: numbers.
    pub right: bool,
}

/// Rows of cells, a cell a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// Why the list is empty, or a further note.
    pub note: Option<String>,
    /// How many of the first columns say what a row is about.
    pub keys: usize,
}

impl Listing {
    /// A list with these columns; a name that begins with `>` is a numeric column.
    pub fn new(heads: &[&'static str]) -> Self {
        let column = |head: &&'static str| match head.strip_prefix('>') {
            Some(head) => Column { head, right: true },
            None => Column { head, right: false },
        };
        Self { columns: heads.iter().map(column).collect(), rows: vec![], note: None, keys: 1 }
    }

    /// The list with this many key columns.
    #[must_use]
    pub fn keyed(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// A list with a row for each item, or the reason why there are none.
    #[must_use]
    pub fn of<T>(mut self, items: &Reading<Vec<T>>, row: impl FnMut(&T) -> Vec<Cell>) -> Self {
        match items {
            Reading::Known(items) => {
                self.rows = items.iter().map(row).collect();
                if self.rows.is_empty() {
                    self.note = Some("none in this interval".into());
                }
            }
            Reading::Absent(why) => self.note = Some(format!("not seen: {why}")),
            Reading::Denied(why) => self.note = Some(format!("not permitted: {why}")),
        }
        self
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Sorts by a column: numbers descending, text ascending. The sort is stable.
    pub fn sort(&mut self, column: usize) {
        self.rows.sort_by(|a, b| match (a.get(column), b.get(column)) {
            (Some(a), Some(b)) => order(a, b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
    }

    /// Keeps the rows that contain every one of these words in some cell, in any case.
    pub fn keep(&mut self, words: &[String]) {
        let has = |cell: &Cell, word: &String| cell.text.to_lowercase().contains(word);
        self.rows.retain(|row| words.iter().all(|word| row.iter().any(|c| has(c, word))));
        if self.rows.is_empty() && self.note.is_none() && !words.is_empty() {
            self.note = Some("nothing here fits the filter".into());
        }
    }

    /// Removes empty columns; the reason is shown elsewhere.
    #[must_use]
    pub fn without_empty_columns(self) -> Self {
        self.with_columns(|_, cell| cell.says())
    }

    /// Removes the columns of these heads in which every cell has the text beside the head.
    #[must_use]
    pub fn without(self, usual: &[(&str, &str)]) -> Self {
        self.with_columns(|column, cell| {
            usual.iter().all(|(head, text)| column.head != *head || cell.text != *text)
        })
    }

    /// Keeps the columns in which at least one cell `says` something.
    fn with_columns(mut self, says: impl Fn(&Column, &Cell) -> bool) -> Self {
        if self.rows.is_empty() {
            return self;
        }
        let said = |(at, column): (usize, &Column)| {
            self.rows.iter().filter_map(|row| row.get(at)).any(|cell| says(column, cell))
        };
        let keep: Vec<bool> = self.columns.iter().enumerate().map(said).collect();
        self.keys = keep.iter().take(self.keys).filter(|k| **k).count();
        let mut at = keep.iter();
        self.columns.retain(|_| at.next() == Some(&true));
        for row in &mut self.rows {
            let mut at = keep.iter();
            row.retain(|_| at.next() == Some(&true));
        }
        self
    }
}

fn order(a: &Cell, b: &Cell) -> Ordering {
    match (a.number, b.number) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.text.cmp(&b.text),
    }
}

/// A reading shown as its own text.
pub fn shown<T: Display>(reading: &Reading<T>) -> Cell {
    Cell::reading(reading, |v| Cell::text(v.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_numbers_down_and_text_up_and_keeps_what_fits() {
        let mut list = Listing::new(&["NAME", ">N"]);
        for (name, n) in [("b", 2), ("a", 10), ("C", 7)] {
            list.row([Cell::text(name), Cell::count(n)]);
        }
        list.row([Cell::text("z"), Cell::text("-")]);
        let names =
            |l: &Listing| l.rows.iter().map(|r| r[0].text.clone()).collect::<Vec<_>>().concat();
        list.sort(1);
        assert_eq!(names(&list), "aCbz");
        list.sort(0);
        assert_eq!(names(&list), "Cabz");
        list.sort(9);
        list.keep(&["c".into()]);
        assert_eq!(names(&list), "C");
        list.keep(&["q".into()]);
        assert_eq!(list.note.as_deref(), Some("nothing here fits the filter"));
    }

    #[test]
    fn times_have_three_digits() {
        let all = [0, 850, 1_234, 12_345, 123_456, 4_560_000, 1_200_000_000, 99_960];
        let shown = ["0", "850 ns", "1.23 µs", "12.3 µs", "123 µs", "4.56 ms", "1.20 s", "100 µs"];
        for (ns, text) in all.into_iter().zip(shown) {
            assert_eq!(time(ns), text);
        }
    }
}
