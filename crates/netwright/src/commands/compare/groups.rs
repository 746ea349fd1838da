//! Which files are the group before, and which the group after.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ::compare::Group;
use model::{compare::BenchmarkRun, quote};
use parse::{benchmark, number_table};
use probe::given;

use super::args::CompareArgs;
use crate::{commands::history::chosen, failure::Failure};

/// The largest file that is read.
const MOST_BYTES: u64 = 256 << 20;

/// The column of `--group` for files that are no tables.
const CASE: &str = "case";

/// Both groups; `None` where only a noise floor is wanted.
pub fn of(args: &CompareArgs) -> Result<Option<(Group, Group)>, Failure> {
    if let Some(column) = &args.group {
        return by_column(args, column).map(Some);
    }
    let (before, after) = match (args.before.as_slice(), args.after.as_slice()) {
        ([], []) if !args.noise_floor.is_empty() => return Ok(None),
        ([first, second], []) => (vec![first.clone()], vec![second.clone()]),
        (files, []) => by_folder(files)?,
        ([], _) => return Err(Failure::Usage("no runs before `--`: BEFORE… -- AFTER…".into())),
        (before, after) => (before.to_vec(), after.to_vec()),
    };
    let group = |paths: &[PathBuf], or: &str| {
        let (files, runs) = runs(paths)?;
        Ok::<Group, Failure>(Group { name: name(paths, or), files, runs })
    };
    let (mut first, mut second) = (group(&before, "before")?, group(&after, "after")?);
    if first.name == second.name {
        (first.name, second.name) = ("before".into(), "after".into());
    }
    Ok(Some((first, second)))
}

/// A shell makes one list of two patterns: files in two folders are two groups.
fn by_folder(files: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    let folder = |p: &PathBuf| p.parent().map(Path::to_owned);
    let of_first = files.iter().take_while(|f| folder(f) == files.first().and_then(folder));
    let (before, after) = files.split_at(of_first.count());
    let alike = after.iter().all(|f| folder(f) == after.first().and_then(folder));
    match before.is_empty() || after.is_empty() || !alike {
        true => Err(Failure::Usage(
            "which runs are before and which after? BEFORE… -- AFTER…; or two files, two folders, \
             files in two folders, or --group COLUMN"
                .into(),
        )),
        false => Ok((before.to_vec(), after.to_vec())),
    }
}

/// A folder's or a file's name, or the common folder of several.
fn name(paths: &[PathBuf], or: &str) -> String {
    let parent = |p: &PathBuf| p.parent().map(|p| p.display().to_string());
    let folder = paths.first().and_then(parent).filter(|f| !f.is_empty());
    match paths {
        [one] => Some(one.display().to_string()),
        several if several.iter().all(|p| parent(p) == folder) => folder,
        _ => None,
    }
    .unwrap_or_else(|| or.to_owned())
}

/// The number of files of these paths, and their runs. A folder stands for its files, without hidden
/// ones, in the order of their names.
pub fn runs(paths: &[PathBuf]) -> Result<(usize, Vec<BenchmarkRun>), Failure> {
    let files = files(paths)?;
    let (mut read, mut all) = (0, Vec::new());
    for file in &files {
        for document in documents(file)? {
            all.extend(benchmark::parse(&document).map_err(|e| unusable(file, &e))?);
            read += 1;
        }
    }
    Ok((read, all))
}

/// A file; or of `history:ID` and `tag:WORD` the documents in the history, the oldest first. A file
/// of such a name comes first.
fn documents(file: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let Some(wanted) = chosen::named(file)? else {
        let bytes = given::read(file, MOST_BYTES).map_err(|e| Failure::io(file, &e))?;
        return Ok(vec![bytes]);
    };
    let runs = chosen::of_usual_store(&wanted)?;
    Ok(runs.into_iter().rev().map(|(_, record)| record.document.into_bytes()).collect())
}

fn unusable(file: &Path, why: &impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {why}", file.display()))
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).map_err(|e| Failure::io(path, &e))?;
        let mut own = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| Failure::io(path, &e))?;
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if !hidden && !entry.path().is_dir() {
                own.push(entry.path());
            }
        }
        if own.is_empty() {
            return Err(unusable(path, &"holds no file"));
        }
        // `run-2` before `run-10`.
        own.sort_by_key(|p| (p.as_os_str().len(), p.clone()));
        all.extend(own);
    }
    Ok(all)
}

/// The groups by the values of a column, of tables, or by the cases of other files.
fn by_column(args: &CompareArgs, column: &str) -> Result<(Group, Group), Failure> {
    let files = files(&args.before)?;
    let mut all = Vec::new();
    for file in &files {
        let bytes = given::read(file, MOST_BYTES).map_err(|e| Failure::io(file, &e))?;
        let table = number_table::table(&String::from_utf8_lossy(&bytes));
        let at = table.as_ref().and_then(|t| t.names.iter().position(|n| n == column));
        match (table, at) {
            (Some(table), Some(at)) => all.extend(number_table::runs(&table, Some(at))),
            (Some(table), None) => {
                let names = table.names.join(", ");
                return Err(unusable(file, &format!("has no column {column}; it has {names}")));
            }
            (None, _) if column == CASE => {
                all.extend(benchmark::parse(&bytes).map_err(|e| unusable(file, &e))?);
            }
            (None, _) => {
                return Err(unusable(file, &"is no table: its groups are those of --group case"));
            }
        }
    }
    let mut values: Vec<&str> = Vec::new();
    for run in &all {
        if !values.contains(&run.case.as_str()) {
            values.push(&run.case);
        }
    }
    let (before, after) = two(args, column, &values)?;
    let group = |value: &str| {
        let own = all.iter().filter(|r| r.case == value);
        let runs = own.map(|r| BenchmarkRun { case: String::new(), ..r.clone() }).collect();
        Group { name: value.to_owned(), files: files.len(), runs }
    };
    Ok((group(&before), group(&after)))
}

/// The values of both groups: those of the options, or the two that there are.
fn two(args: &CompareArgs, column: &str, values: &[&str]) -> Result<(String, String), Failure> {
    let asked = [&args.before_value, &args.after_value];
    if let Some(missing) = asked.iter().copied().flatten().find(|v| !values.contains(&v.as_str())) {
        let missing = quote::shown(missing);
        return Err(Failure::Usage(format!("{column}: no run has the value {missing}")));
    }
    let other = |than: &str| -> String { values.iter().copied().filter(|v| *v != than).collect() };
    match (&args.before_value, &args.after_value) {
        (Some(before), Some(after)) => Ok((before.clone(), after.clone())),
        (Some(before), None) if values.len() == 2 => Ok((before.clone(), other(before))),
        (None, Some(after)) if values.len() == 2 => Ok((other(after), after.clone())),
        (None, None) if values.len() == 2 => {
            Ok((values.iter().take(1).copied().collect(), values.iter().skip(1).copied().collect()))
        }
        _ => Err(Failure::Usage(format!(
            "{column} has {} values, two are compared: --before VALUE --after VALUE of {}",
            values.len(),
            values.join(", ")
        ))),
    }
}
