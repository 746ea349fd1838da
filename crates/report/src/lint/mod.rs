//! Lines of settings with their verdicts: as text, and as SARIF.

mod sarif;
#[cfg(test)]
mod tests;

use model::lint::{LineVerdict, LintDocument, LintHost, LintLine};

pub use sarif::sarif;

use crate::{
    inspect::dotted,
    text::{Ink, Line, Page, Table, TextStyle},
    words::many,
};

/// All lines, by file; the answer first.
pub fn text(document: &LintDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    page.line(answer(document), 2);
    page.line(host(&document.host), 2);
    let mut rest = document.lines.as_slice();
    while let Some(first) = rest.first() {
        let of_file = rest.iter().take_while(|l| l.file == first.file).count();
        let (lines, others) = rest.split_at(of_file);
        page.heading(&first.file);
        page.table(&table(lines, look.verbose), 0);
        rest = others;
    }
    if !document.not_followed.is_empty() {
        page.heading("NOT FOLLOWED");
        for one in &document.not_followed {
            let place = format!("  {}:{}  ", one.file, one.line);
            page.line(Line::new().ink(Ink::Faint, place).text(&one.what), 4);
        }
    }
    page.caveats(document.notes.iter().map(Line::plain));
    page.finish()
}

/// `13 lines: 9 harmful, 1 dangerous, 3 no effect`.
fn answer(document: &LintDocument) -> Line {
    let mut line = Line::new().ink(Ink::Strong, many(document.lines.len(), "line"));
    for (i, verdict) in LineVerdict::ALL.into_iter().filter(|v| document.count(*v) > 0).enumerate()
    {
        line = line.text(if i == 0 { ": " } else { ", " });
        line = line.ink(ink(verdict), format!("{} {}", document.count(verdict), plain(verdict)));
    }
    if document.lines.is_empty() {
        line = line.text(": no file sets anything that netwright reads");
    }
    if !document.not_followed.is_empty() {
        line = line.text(format!("; {} not followed", document.not_followed.len()));
    }
    line
}

fn plain(verdict: LineVerdict) -> String {
    match verdict {
        LineVerdict::BelowDefault => "below this kernel's default".into(),
        other => other.to_string(),
    }
}

fn host(host: &LintHost) -> Line {
    let given = |what: &str| if host.given.iter().any(|g| g == what) { " (given)" } else { "" };
    let mut parts = vec![Line::plain(host.name.get().unwrap_or_else(|| "unnamed host".into()))];
    match host.kernel.known() {
        Some(kernel) => parts.push(Line::plain(format!("Linux {kernel}{}", given("kernel")))),
        None => parts.push(Line::plain("kernel not known")),
    }
    match host.memory_bytes.known() {
        Some(memory) => parts.push(Line::plain(format!("{memory}{}", given("memory")))),
        None => parts.push(Line::plain("memory not known")),
    }
    if let Some(speed) = host.nic_speed_bps.known() {
        parts.push(Line::plain(format!("{speed}{}", given("nic_speed"))));
    }
    parts.push(Line::plain("lint"));
    parts.push(Line::plain("nothing was changed"));
    dotted(parts)
}

fn table(lines: &[LintLine], verbose: bool) -> Table {
    let mut table = Table::new().right("LINE").wrapping("SETTING").left("VERDICT").wrapping("WHY");
    for line in lines {
        table.row([
            Line::plain(line.line),
            Line::plain(set(line)),
            Line::new().ink(ink(line.verdict), line.verdict),
            why(line, verbose),
        ]);
    }
    table
}

/// The setting and value as a sysctl file has them: `net.ipv4.tcp_sack = 0`.
fn set(line: &LintLine) -> String {
    let name = line.setting.strip_prefix("sysctl.").unwrap_or(&line.setting);
    let value: String = line.value.chars().take(120).collect();
    let value = if value.is_empty() { "(empty)" } else { &value };
    format!("{name} = {value}")
}

fn why(line: &LintLine, verbose: bool) -> Line {
    let mut text = Line::plain(&line.why);
    if !line.find_out.is_empty() {
        text = text.text("; find out: ").text(&line.find_out);
    }
    if verbose && let Some(default) = line.default.known() {
        let unit = if line.unit.is_empty() { String::new() } else { format!(" {}", line.unit) };
        text = text.ink(Ink::Faint, format!(" [default {default}{unit}]"));
    }
    if verbose && !line.source.is_empty() {
        text = text.ink(Ink::Faint, format!(" [{}]", line.source));
    }
    text
}

fn ink(verdict: LineVerdict) -> Ink {
    match verdict {
        v if v.is_bad() => Ink::Bad,
        v if v.should_go() => Ink::Warn,
        LineVerdict::Good => Ink::Good,
        LineVerdict::Unknown => Ink::Faint,
        _ => Ink::Plain,
    }
}
