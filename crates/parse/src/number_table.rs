//! A table of numbers, a run in each row: CSV with a head, or one number a line.
//!
//! **Source**: RFC 4180; semicolons and tabs separate as well as commas, for spreadsheets write them.

use model::compare::{BenchmarkFigure, BenchmarkRun};

use crate::benchmark_runs::is_figure;

/// A table: the names of its columns, and the cells of each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberTable {
    pub names: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// The column of a table without a head.
const NAMELESS: &str = "value";

/// The table of this text; `None` where a row has another number of cells than the head, or where
/// no row follows it.
pub fn table(text: &str) -> Option<NumberTable> {
    let mut lines = text.lines().filter(|l| !l.trim().is_empty());
    let head = lines.next()?;
    if head.trim().parse::<f64>().is_ok() {
        let cell = |l: &str| vec![l.trim().to_owned()];
        let rows: Vec<Vec<String>> =
            text.lines().filter(|l| !l.trim().is_empty()).map(cell).collect();
        let numbers = rows.iter().flatten().all(|c| c.parse::<f64>().is_ok());
        return numbers.then(|| NumberTable { names: vec![NAMELESS.into()], rows });
    }
    let separator = [',', ';', '\t'].into_iter().find(|s| head.contains(*s))?;
    let names = cells(head, separator)?;
    let rows = lines.map(|l| cells(l, separator)).collect::<Option<Vec<_>>>()?;
    let even = !rows.is_empty() && rows.iter().all(|r| r.len() == names.len());
    even.then_some(NumberTable { names, rows })
}

/// The runs of a table: in each row, the columns that are numbers in all rows. Their meaning is
/// unknown: none has a direction.
pub(crate) fn rows(text: &str) -> Option<Vec<BenchmarkRun>> {
    let runs = runs(&table(text)?, None);
    runs.iter().all(|r| !r.figures.is_empty()).then_some(runs)
}

/// The runs of a table; where a column has the group of each row, the case of a run is its cell.
pub fn runs(table: &NumberTable, group: Option<usize>) -> Vec<BenchmarkRun> {
    let number = |row: &[String], at: usize| {
        row.get(at).and_then(|c| c.trim().parse::<f64>().ok()).filter(|v| is_figure(*v))
    };
    let numeric = |at: &usize| table.rows.iter().all(|r| number(r, *at).is_some());
    let columns: Vec<usize> =
        (0..table.names.len()).filter(|at| Some(*at) != group).filter(numeric).collect();
    let run = |row: &Vec<String>| {
        let figure = |at: &usize| {
            let name = table.names.get(*at)?.clone();
            let value = number(row, *at)?;
            Some(BenchmarkFigure { name, unit: "", direction: None, main: false, value })
        };
        BenchmarkRun {
            program: "table".into(),
            case: group.and_then(|at| row.get(at)).cloned().unwrap_or_default(),
            started_unix_s: None,
            figures: columns.iter().filter_map(figure).collect(),
        }
    };
    table.rows.iter().map(run).collect()
}

/// The cells of a line; a cell in double quotes can hold the separator, and a quote doubled. `None`
/// where a quote is not closed.
fn cells(line: &str, separator: char) -> Option<Vec<String>> {
    let mut cells = vec![String::new()];
    let (mut quoted, mut chars) = (false, line.trim_end_matches('\r').chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cells.last_mut()?.push('"');
            }
            '"' => quoted = !quoted,
            c if c == separator && !quoted => cells.push(String::new()),
            c => cells.last_mut()?.push(c),
        }
    }
    let trimmed = cells.into_iter().map(|c| c.trim().to_owned()).collect();
    (!quoted).then_some(trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_numbers_are_figures() {
        let text = "build,\"p99, ms\",note,tps\nold,1.5,a,100\nnew,2.5,\"b \"\"x\"\"\",90\n";
        let table = table(text).unwrap();
        assert_eq!(table.names, ["build", "p99, ms", "note", "tps"]);
        assert_eq!(table.rows[1][2], "b \"x\"");
        let runs = runs(&table, Some(0));
        let of = |n: usize| -> Vec<(String, f64)> {
            runs[n].figures.iter().map(|f| (f.name.clone(), f.value)).collect()
        };
        assert_eq!(of(1), [("p99, ms".to_owned(), 2.5), ("tps".to_owned(), 90.0)]);
        assert_eq!((runs[0].case.as_str(), runs[1].case.as_str()), ("old", "new"));
    }

    #[test]
    fn a_list_of_numbers_and_other_separators_are_tables() {
        assert_eq!(rows("1\n2.5\n\n-3e2\n").unwrap().len(), 3);
        assert_eq!(rows("a;b\n1;2\n").unwrap()[0].figures.len(), 2);
        assert_eq!(rows("a\tb\n1\tx\n").unwrap()[0].figures.len(), 1);
        for none in
            ["", "1\nx\n", "a,b\n1\n", "a,b\n", "a,b\nx,y\n", "a,\"b\n1,2\n", "a b\n1 2\n", "nan\n"]
        {
            assert_eq!(rows(none), None, "{none:?}");
        }
    }
}
