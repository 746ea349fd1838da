//! Many runs: how they differ, which runs a remark is about, and tables too wide for the page.

use std::collections::BTreeSet;

use super::Run;
use crate::{
    text::{Line, Page, Table},
    words::{many, ranges},
};

/// An aspect that runs may differ in.
pub struct Aspect<R> {
    pub head: &'static str,
    pub cell: fn(&R) -> String,
    /// The text where all runs have the same value; empty where it needs no mention.
    pub said: fn(&R) -> String,
}

/// The aspects that differ between runs, and the text about the others.
pub fn tell_apart<R>(runs: &[R], aspects: Vec<Aspect<R>>) -> (Vec<Aspect<R>>, Vec<String>) {
    let (mut apart, mut said) = (vec![], vec![]);
    for aspect in aspects {
        let cells: BTreeSet<String> = runs.iter().map(aspect.cell).collect();
        if cells.len() > 1 {
            apart.push(aspect);
        } else if let Some(run) = runs.first() {
            let text = (aspect.said)(run);
            if !text.is_empty() {
                said.push(text);
            }
        }
    }
    (apart, said)
}

/// Threads at the client.
pub fn threads<R: Run>() -> Aspect<R> {
    Aspect {
        head: "THREADS",
        cell: |r| r.threads().to_string(),
        said: |r| many(r.threads() as usize, "thread"),
    }
}

/// A column of results.
pub struct Value<R> {
    pub head: &'static str,
    pub cell: fn(&R) -> Line,
}

/// A line for each run. On a narrow page the columns are spread over several tables, each with the
/// runs' names; columns of the same `group` stay together if possible.
pub fn table<R>(page: &mut Page, runs: &[R], apart: &[Aspect<R>], groups: &[&[Value<R>]]) {
    let width = page.look().width;
    let fits = |values: &[&Value<R>]| widest(&one(runs, apart, values)) <= width;
    let mut tables: Vec<Vec<&Value<R>>> = vec![];
    for group in groups {
        // The answer of a single run shows its intervals.
        let stays = |v: &&Value<R>| runs.len() > 1 || v.head != "±";
        let whole: Vec<&Value<R>> = group.iter().filter(stays).collect();
        let beside = tables.last().map(|t| [t.as_slice(), &whole].concat());
        if let (Some(last), Some(both)) = (tables.last_mut(), beside.filter(|b| fits(b))) {
            *last = both;
        } else if fits(&whole) {
            tables.push(whole);
        } else {
            tables.push(vec![]);
            for value in whole {
                let more = tables.last().map(|t| [t.as_slice(), &[value]].concat());
                match (tables.last_mut(), more.filter(|m| m.len() == 1 || fits(m))) {
                    (Some(last), Some(more)) => *last = more,
                    _ => tables.push(vec![value]),
                }
            }
        }
    }
    for values in tables.iter().filter(|t| !t.is_empty()) {
        page.gap();
        page.table(&one(runs, apart, values), 0);
    }
}

fn one<R>(runs: &[R], apart: &[Aspect<R>], values: &[&Value<R>]) -> Table {
    let mut table = Table::new();
    if runs.len() > 1 {
        table = table.right("RUN");
    }
    table = apart.iter().fold(table, |t, a| t.right(a.head));
    table = values.iter().fold(table, |t, v| t.right(v.head));
    for (n, run) in runs.iter().enumerate() {
        let number = (runs.len() > 1).then(|| Line::plain(n + 1));
        let aspects = apart.iter().map(|a| Line::plain((a.cell)(run)));
        let results = values.iter().map(|v| (v.cell)(run));
        table.row(number.into_iter().chain(aspects).chain(results));
    }
    table
}

fn widest(table: &Table) -> usize {
    table.rows(usize::MAX).iter().map(Line::width).max().unwrap_or(0)
}

/// One window of both ends' CPU time and counters: a run, or the two directions of one.
pub struct Windowed<'a, R> {
    /// The first of its runs.
    pub run: &'a R,
    /// The numbers of its runs, from 1.
    pub numbers: Vec<usize>,
    /// The work of its runs together.
    pub units: u64,
}

/// The windows, in order.
pub fn windows<R: Run>(runs: &[R]) -> Vec<Windowed<'_, R>> {
    let mut all: Vec<Windowed<'_, R>> = vec![];
    let mut before: Option<&R> = None;
    for (n, run) in runs.iter().enumerate() {
        let one = before.is_some_and(|b| run.is_one_with(b));
        match all.last_mut().filter(|w| one && w.numbers.len() == 1) {
            Some(window) => {
                window.numbers.push(n + 1);
                window.units = window.units.saturating_add(run.units());
            }
            None => all.push(Windowed { run, numbers: vec![n + 1], units: run.units() }),
        }
        before = Some(run);
    }
    all
}

/// Remarks with the numbers of their runs, in order; equal remarks once.
pub fn alike<T: PartialEq>(remarks: impl IntoIterator<Item = (usize, T)>) -> Vec<(T, Vec<usize>)> {
    let mut found: Vec<(T, Vec<usize>)> = vec![];
    for (run, remark) in remarks {
        match found.iter_mut().find(|(r, _)| *r == remark) {
            Some((_, runs)) => runs.push(run),
            None => found.push((remark, vec![run])),
        }
    }
    found
}

/// `run 3`, `runs 1-4`; empty where it is about all runs.
pub fn named(runs: &[usize], all: usize) -> String {
    let numbers: BTreeSet<u32> = runs.iter().filter_map(|&r| u32::try_from(r).ok()).collect();
    if numbers.len() >= all {
        return String::new();
    }
    let s = if numbers.len() == 1 { "" } else { "s" };
    format!("run{s} {}", ranges(numbers))
}

/// The prefix of a remark: `run 3: `; empty where it is about all runs.
pub fn about(runs: &[usize], all: usize) -> String {
    match named(runs, all) {
        name if name.is_empty() => name,
        name => format!("{name}: "),
    }
}

/// `1 flow`, `64 flows`.
pub fn flows(n: u32) -> String {
    many(n as usize, "flow")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::TextStyle;

    fn aspects() -> Vec<Aspect<(u32, u32)>> {
        vec![
            Aspect { head: "A", cell: |r| r.0.to_string(), said: |r| format!("a is {}", r.0) },
            Aspect { head: "B", cell: |r| r.1.to_string(), said: |r| format!("b is {}", r.1) },
        ]
    }

    #[test]
    fn what_is_alike_is_said_and_what_differs_is_a_column() {
        let (apart, said) = tell_apart(&[(1, 5), (2, 5)], aspects());
        assert_eq!(apart.iter().map(|a| a.head).collect::<Vec<_>>(), ["A"]);
        assert_eq!(said, ["b is 5"]);
        assert_eq!(tell_apart(&[(1, 5)], aspects()).1.len(), 2);
        assert!(tell_apart(&[], aspects()).1.is_empty());
    }

    #[test]
    fn a_table_too_wide_becomes_two_that_name_the_runs() {
        let runs = [(1, 5), (2, 5)];
        let (apart, _) = tell_apart(&runs, aspects());
        let long: fn(&(u32, u32)) -> Line = |_| Line::plain("0123456789012345678");
        let values = [Value { head: "X", cell: long }, Value { head: "Y", cell: long }];
        let groups: [&[Value<(u32, u32)>]; 1] = [&values];
        let at = |width| {
            let mut page = Page::new(TextStyle { width, ..TextStyle::default() });
            table(&mut page, &runs, &apart, &groups);
            page.finish()
        };
        assert_eq!(at(80).lines().count(), 3);
        let narrow = at(40);
        assert_eq!(narrow.lines().filter(|l| l.starts_with("RUN  A")).count(), 2, "{narrow}");
        assert!(narrow.lines().all(|l| l.len() <= 40), "{narrow}");
        assert_eq!(at(5).lines().filter(|l| l.starts_with("RUN")).count(), 2, "still all of it");
    }

    #[test]
    fn groups_stay_together_where_they_can() {
        let runs = [(1, 5), (2, 5)];
        let (apart, _) = tell_apart(&runs, aspects());
        let cell: fn(&(u32, u32)) -> Line = |_| Line::plain("012345678");
        let [a, b, c] = ["X", "Y", "Z"].map(|head| Value { head, cell });
        let mut page = Page::new(TextStyle { width: 30, ..TextStyle::default() });
        table(&mut page, &runs, &apart, &[&[a], &[b, c]]);
        let heads = page.finish();
        let heads: Vec<&str> = heads.lines().filter(|l| l.starts_with("RUN")).collect();
        assert_eq!(heads, ["RUN  A          X", "RUN  A          Y          Z"]);
    }

    #[test]
    fn remarks_are_said_once() {
        let found = alike([(1, "x"), (2, "y"), (3, "x")]);
        assert_eq!(found, [("x", vec![1, 3]), ("y", vec![2])]);
        assert_eq!(named(&[1, 2, 3], 5), "runs 1-3");
        assert_eq!(named(&[2], 5), "run 2");
        assert_eq!(named(&[1], 1), "");
    }
}
