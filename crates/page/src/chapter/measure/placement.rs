//! Where both ends ran and received, as a heat map by CPU.

use crate::{
    block::{Cell, Chapter, Table, Text, Tone},
    chart::Heat,
    document::Document,
    unit::Unit,
};

/// The most runs on one map.
const MOST: usize = 6;

/// The most CPUs on one map.
const MOST_CPUS: usize = 128;

const ROWS: [(&str, &str); 4] = [
    ("local/ran_on", "client ran"),
    ("local/received_on", "client received"),
    ("peer/ran_on", "server ran"),
    ("peer/received_on", "server received"),
];

pub fn show(d: &Document, names: &[String], chapter: &mut Chapter) {
    let runs = names.len().min(MOST);
    let at = |run: usize, key: &str| format!("/runs/{run}/placement/{key}");
    let mut cpus: Vec<u64> = (0..runs)
        .flat_map(|run| ROWS.iter().flat_map(move |(key, _)| d.keys(&at(run, key))))
        .filter_map(|cpu| cpu.parse().ok())
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() {
        return;
    }
    chapter.heading("Placement");
    let title = "Samples by CPU: where each end's threads ran, and where its packets were received";
    let mut table =
        cpus.iter().fold(Table::new(title).words("end"), |t, cpu| t.figures(format!("CPU {cpu}")));
    let mut rows = vec![];
    for run in 0..runs {
        for (key, what) in ROWS {
            if d.keys(&at(run, key)).is_empty() {
                continue;
            }
            let label = match (names.get(run), names.len()) {
                (Some(name), 2..) => format!("{name}, {what}"),
                _ => what.to_owned(),
            };
            let cell = |cpu: &u64| format!("{}/{cpu}", at(run, key));
            let cells = cpus.iter().map(|cpu| d.cell(&cell(cpu), Unit::Count));
            table.row([Cell::text(&label)].into_iter().chain(cells));
            let counts = cpus.iter().take(MOST_CPUS).map(|cpu| d.number(&cell(cpu))).collect();
            rows.push((label, counts));
        }
    }
    let mut about = "Share of each end's samples by CPU; darker is more".to_owned();
    if names.len() > MOST {
        about += &format!("; the first {MOST} of {} runs", names.len());
    }
    if cpus.len() > MOST_CPUS {
        about += &format!("; the first {MOST_CPUS} of {} CPUs", cpus.len());
    }
    let columns = cpus.iter().take(MOST_CPUS).map(u64::to_string).collect();
    let chart = Heat { about: format!("{about}."), across: "CPU".into(), columns, rows };
    chapter.figure(chart, table);
    reasons(d, names, chapter);
}

/// Why the threads were there, and how often they migrated: once where all runs agree.
fn reasons(d: &Document, names: &[String], chapter: &mut Chapter) {
    let mut said: Vec<Text> = vec![];
    for (n, name) in names.iter().enumerate().take(MOST) {
        for (end, title) in [("local", "Client"), ("peer", "Server")] {
            let at = |key: &str| format!("/runs/{n}/placement/{end}/{key}");
            let why = d.text(&at("why"));
            let migrations = d.cell(&at("migrations"), Unit::Count);
            let migrations = match migrations.missing {
                Some(why) => format!("migrations not known ({why})"),
                None => format!("{} migrations", migrations.text),
            };
            let run =
                if names.len() > 1 { format!("{title} ({name}): ") } else { format!("{title}: ") };
            let why = if why.is_empty() { why } else { format!("{why}; ") };
            said.push(Text::default().then(Tone::Strong, run).and(format!("{why}{migrations}.")));
        }
    }
    chapter.list(said);
}
