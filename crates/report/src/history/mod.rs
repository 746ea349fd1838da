//! Runs that were made before: their list, and each as its command printed it.

mod diff;
mod headline;
mod page;
#[cfg(test)]
mod tests;

use model::history::{HistoryList, HistoryRun};

pub use diff::diff;
pub use headline::headline;
pub use page::page;

use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    tune::utc,
    words::{many, one_line},
};

/// The runs, a line each, the newest first.
pub fn list(d: &HistoryList, look: TextStyle) -> String {
    let mut page = Page::new(look);
    if d.runs.is_empty() {
        page.line(Line::plain(format!("No such run in {}.", d.store)), 2);
        return page.finish();
    }
    let hosts = d.runs.iter().any(|r| Some(&r.host) != d.runs.first().map(|f| &f.host));
    let tags = d.runs.iter().any(|r| !r.tag.is_empty());
    let mut table = Table::new().right("ID").left("TIME (UTC)");
    if hosts {
        table = table.left("HOST");
    }
    table = table.left("KIND");
    if tags {
        table = table.left("TAG");
    }
    table = table.wrapping("RESULT");
    for run in &d.runs {
        let time = utc(run.ended_unix_ms);
        // A list is read for its minutes.
        let minute = time.get(..16).unwrap_or(&time).to_owned();
        let mut row = vec![Line::plain(run.id), Line::plain(minute)];
        if hosts {
            row.push(Line::plain(&run.host));
        }
        row.push(Line::plain(&run.kind));
        if tags {
            row.push(Line::plain(&run.tag));
        }
        row.push(Line::plain(&run.headline));
        table.row(row);
    }
    page.table(&table, 0);
    if look.verbose {
        page.gap();
        page.line(Line::plain(format!("{} in {}", many(d.runs.len(), "run"), d.store)), 2);
    }
    page.finish()
}

/// What stands above the page of a run: which it was, and with `-v` how it was made.
pub fn head(run: &HistoryRun, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let title = format!("Run {} · {} · {}", run.id, utc(run.ended_unix_ms), run.kind);
    let tag = if run.tag.is_empty() { String::new() } else { format!(" · {}", run.tag) };
    page.line(Line::new().ink(Ink::Faint, title + &tag), 2);
    if look.verbose {
        let command = one_line(&format!("netwright {}", run.command.join(" ")));
        page.line(
            Line::new().ink(Ink::Faint, format!("{command} (exit code {})", run.exit_code)),
            2,
        );
        let versions = format!("{} · Linux {} · netwright {}", run.host, run.kernel, run.netwright);
        page.line(Line::new().ink(Ink::Faint, versions), 2);
        if let Some(change) = run.change {
            let change = format!("change {change} of the journal: netwright tune log");
            page.line(Line::new().ink(Ink::Faint, change), 2);
        }
    }
    page.gap();
    page.finish()
}
