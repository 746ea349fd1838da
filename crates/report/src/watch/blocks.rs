//! A listing on a page: one that is wider than the page becomes several tables below each other,
//! each with the columns that say what a row is about.

use super::listing::{Column, Listing};
use crate::text::{Line, Page, Table, width};

/// The space between two columns.
const GAP: usize = 2;
/// A column of text is not made narrower than this to avoid a further table.
const TEXT: usize = 24;

/// Prints the first `most` rows.
pub fn print(page: &mut Page, list: &Listing, most: usize, indent: usize) {
    let room = page.look().width.saturating_sub(indent);
    for columns in blocks(list, most, room) {
        page.table(&table(list, &columns, most), indent);
    }
}

/// The columns of each table, as indices; the key columns are in each.
fn blocks(list: &Listing, most: usize, room: usize) -> Vec<Vec<usize>> {
    let least: Vec<usize> = (0..list.columns.len()).map(|c| least(list, c, most)).collect();
    let wide = |columns: &[usize]| columns.iter().map(|c| least[*c] + GAP).sum::<usize>();
    let keys: Vec<usize> = (0..list.keys.min(list.columns.len())).collect();
    let mut all = vec![keys.clone()];
    for group in groups(&list.columns, keys.len()) {
        let full = all.last().is_some_and(|block| {
            block.len() > keys.len() && wide(block) + wide(&group) > room + GAP
        });
        if full {
            all.push(keys.clone());
        }
        if let Some(block) = all.last_mut() {
            block.extend(group);
        }
    }
    all
}

/// The columns after the keys; a quantile stands with the column before it, which names its quantity.
fn groups(columns: &[Column], keys: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = vec![];
    for (at, column) in columns.iter().enumerate().skip(keys) {
        match groups.last_mut() {
            Some(group) if column.head == "p99" => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    groups
}

/// The columns that it needs: figures are never broken, heads and text are, at blanks.
fn least(list: &Listing, column: usize, most: usize) -> usize {
    let Some(Column { head, right }) = list.columns.get(column) else { return 0 };
    let cells = || list.rows.iter().take(most).filter_map(|r| r.get(column)).map(|c| &c.text);
    let head = head.split(' ').map(width).max().unwrap_or(0);
    let cells = match right {
        true => cells().map(|text| width(text)).max(),
        false => cells().map(|text| width(text).min(TEXT.max(longest_word(text)))).max(),
    };
    head.max(cells.unwrap_or(0))
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(width).max().unwrap_or(0)
}

fn table(list: &Listing, columns: &[usize], most: usize) -> Table {
    let mut table = Table::new().folding_heads();
    for column in columns.iter().filter_map(|c| list.columns.get(*c)) {
        table = match column.right {
            true => table.right(column.head),
            false => table.wrapping(column.head),
        };
    }
    for row in list.rows.iter().take(most) {
        table.row(columns.iter().filter_map(|c| row.get(*c)).map(|c| Line::plain(&c.text)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{super::listing::Cell, *};
    use crate::text::TextStyle;

    fn text(list: &Listing, width: usize) -> String {
        let mut page = Page::new(TextStyle { width, ..TextStyle::default() });
        print(&mut page, list, usize::MAX, 0);
        page.finish()
    }

    #[test]
    fn a_wide_list_folds_its_heads_then_becomes_two_tables() {
        let mut list = Listing::new(&[">PID", "NAME", ">COPY p50", ">p99", ">LATE READS"]).keyed(2);
        list.row(["7", "nginx", "1.00 µs", "2.00 µs", "12"].map(Cell::text));
        let whole = "PID  NAME   COPY p50      p99  LATE READS\n  7  nginx   1.00 µs  2.00 µs          12\n";
        assert_eq!(text(&list, 50), whole);
        let folded = "               COPY            LATE\nPID  NAME       p50      p99  READS\n  7  nginx  1.00 µs  2.00 µs     12\n";
        assert_eq!(text(&list, 36), folded);
        let two = "PID  NAME   COPY p50      p99\n  7  nginx   1.00 µs  2.00 µs\nPID  NAME   LATE READS\n  7  nginx          12\n";
        assert_eq!(text(&list, 30), two);
    }

    #[test]
    fn a_name_that_is_wider_than_the_page_keeps_its_figures_beside_it() {
        let mut list = Listing::new(&["WHERE", ">COUNT"]);
        list.row([Cell::text("a place with a name of many words"), Cell::count(1_000)]);
        assert_eq!(
            text(&list, 20),
            "WHERE          COUNT\na place with   1,000\na name of\nmany words\n"
        );
    }
}
