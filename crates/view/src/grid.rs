//! The grid of CPUs by node, each with a bar split by softirq context. More CPUs get less room
//! each.

use std::collections::BTreeMap;

use model::{
    CpuSet,
    watch::{CpuWatch, WatchHost, WatchInterval},
};
use ratatui::text::{Line, Span};
use report::watch::contexts::{self, Context};

use super::palette::Palette;

/// The room of each CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellFormat {
    /// A whole line for each CPU.
    Line,
    /// A short bar, several on a line.
    Bar,
    /// A letter and a digit.
    Two,
    One,
}

const BAR_CELL: usize = 21;

struct Grid<'a> {
    interval: &'a WatchInterval,
    measured: bool,
    scale: f64,
    palette: Palette,
    width: usize,
}

type Nodes<'a> = BTreeMap<Option<u32>, Vec<&'a CpuWatch>>;

/// The grid, at most `height` lines of `width` columns.
pub fn lines(
    interval: &WatchInterval,
    host: &WatchHost,
    palette: Palette,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let mut nodes: Nodes<'_> = BTreeMap::new();
    for cpu in &interval.cpus {
        nodes.entry(host.node_of(cpu.id).map(|n| n.0)).or_default().push(cpu);
    }
    let grid = Grid {
        interval,
        measured: contexts::measured(interval),
        scale: contexts::scale(interval),
        palette,
        width,
    };
    let rooms = [CellFormat::Line, CellFormat::Bar, CellFormat::Two, CellFormat::One];
    let fits = |room: &CellFormat| grid.height(&nodes, *room) <= height;
    let room = rooms.into_iter().find(fits).unwrap_or(CellFormat::One);
    let mut lines: Vec<Line<'static>> = vec![];
    for (node, cpus) in &nodes {
        if nodes.len() > 1 && matches!(room, CellFormat::Line | CellFormat::Bar) {
            lines.push(grid.heading(*node, cpus));
        }
        let per_line = grid.per_line(room);
        for row in cpus.chunks(per_line) {
            lines.push(grid.row(*node, row, room));
        }
    }
    if lines.len() > height {
        lines.truncate(height.saturating_sub(1));
        lines.push(Line::from("... more CPUs than fit; f cpu:0-63 shows some"));
        lines.truncate(height);
    }
    lines
}

impl Grid<'_> {
    fn height(&self, nodes: &Nodes<'_>, room: CellFormat) -> usize {
        let headings = nodes.len() > 1 && matches!(room, CellFormat::Line | CellFormat::Bar);
        let rows = |cpus: &Vec<&CpuWatch>| cpus.len().div_ceil(self.per_line(room));
        nodes.values().map(rows).sum::<usize>() + if headings { nodes.len() } else { 0 }
    }

    /// CPUs on a line; rounded to a convenient number where each is a letter.
    fn per_line(&self, room: CellFormat) -> usize {
        let room_for = |each: usize| self.width.saturating_sub(PREFIX) / each;
        let round = |n: usize| if n >= 16 { n / 16 * 16 } else { n };
        match room {
            CellFormat::Line => 1,
            CellFormat::Bar => self.width / BAR_CELL,
            CellFormat::Two => round(room_for(3)),
            CellFormat::One => round(room_for(1)),
        }
        .max(1)
    }

    fn heading(&self, node: Option<u32>, cpus: &[&CpuWatch]) -> Line<'static> {
        let set: CpuSet = cpus.iter().map(|c| c.id).collect();
        Line::from(Span::styled(format!("{}  CPUs {set}", name(node)), self.palette.strong()))
    }

    fn row(&self, node: Option<u32>, cpus: &[&CpuWatch], room: CellFormat) -> Line<'static> {
        let mut spans: Vec<Span<'static>> = vec![];
        match room {
            CellFormat::Line => cpus.iter().for_each(|cpu| self.line(cpu, &mut spans)),
            CellFormat::Bar => cpus.iter().for_each(|cpu| self.bar_cell(cpu, &mut spans)),
            CellFormat::Two | CellFormat::One => {
                let first = cpus.first().map_or(0, |c| c.id.0);
                let prefix = format!("{:<7} {first:>5} ", name(node));
                spans.push(Span::styled(prefix, self.palette.faint()));
                cpus.iter().for_each(|cpu| self.letter(cpu, room, &mut spans));
            }
        }
        Line::from(spans)
    }

    fn shares(&self, cpu: &CpuWatch) -> Vec<(Context, f64)> {
        contexts::shares(cpu, self.interval.interval_s, self.measured)
    }

    fn line(&self, cpu: &CpuWatch, spans: &mut Vec<Span<'static>>) {
        let claimed = cpu.proc_stat.known().and_then(|p| p.softirq.get());
        let claimed = claimed.map_or_else(|| "-".into(), |ns| self.claimed(cpu, ns));
        let squeezed = cpu.time_squeeze.get().filter(|n| *n > 0);
        let squeezed = squeezed.map_or_else(String::new, |n| format!(" sq {n}"));
        let behind = format!("  /proc si {claimed:>6}{squeezed:<9}");
        spans.push(Span::raw(format!("{:>4} ", cpu.id.0)));
        let room = self.width.saturating_sub(5 + 7 + behind.chars().count());
        self.bar(cpu, room, spans);
        spans.push(Span::raw(format!(" {:>6}", self.total(cpu))));
        spans.push(Span::styled(behind, self.palette.faint()));
    }

    fn bar_cell(&self, cpu: &CpuWatch, spans: &mut Vec<Span<'static>>) {
        spans.push(Span::styled(format!("{:>4} ", cpu.id.0), self.palette.faint()));
        self.bar(cpu, BAR_CELL - 14, spans);
        spans.push(Span::raw(format!(" {:>6} ", self.total(cpu))));
    }

    fn bar(&self, cpu: &CpuWatch, width: usize, spans: &mut Vec<Span<'static>>) {
        let mut used = 0;
        for (context, cells) in contexts::cells(&self.shares(cpu), self.scale, width) {
            let text = context.letter().to_string().repeat(cells);
            spans.push(Span::styled(text, self.palette.context(context)));
            used += cells;
        }
        spans.push(Span::styled(".".repeat(width.saturating_sub(used)), self.palette.faint()));
    }

    fn letter(&self, cpu: &CpuWatch, room: CellFormat, spans: &mut Vec<Span<'static>>) {
        let shares = self.shares(cpu);
        let total: f64 = shares.iter().map(|s| s.1).sum();
        let most = shares.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|s| s.0);
        let (least, much) = if self.measured { (0.01, 0.1) } else { (0.05, 0.5) };
        let (letter, style) = match most {
            None => ('?', self.palette.faint()),
            Some(_) if total < least => ('.', self.palette.faint()),
            Some(c) if total < much => (c.letter().to_ascii_lowercase(), self.palette.context(c)),
            Some(c) => (c.letter().to_ascii_uppercase(), self.palette.context(c)),
        };
        let text = match room {
            CellFormat::Two if total >= least => {
                format!("{letter}{} ", (total * 10.0).min(9.0) as u32)
            }
            CellFormat::Two => format!("{letter}  "),
            _ => letter.to_string(),
        };
        spans.push(Span::styled(text, style));
    }

    fn total(&self, cpu: &CpuWatch) -> String {
        let shares = self.shares(cpu);
        if shares.is_empty() {
            return "-".into();
        }
        format!("{:.1}%", shares.iter().map(|s| s.1).sum::<f64>() * 100.0)
    }

    /// The softirq share by `/proc/stat`, of the same total as the table below.
    fn claimed(&self, cpu: &CpuWatch, ns: u64) -> String {
        let whole_ns = contexts::whole_ns(&cpu.proc_stat, self.interval.interval_s).max(1.0);
        format!("{:.1}%", ns as f64 / whole_ns * 100.0)
    }
}

/// Columns before the letters: the node and the first CPU.
const PREFIX: usize = 14;

fn name(node: Option<u32>) -> String {
    node.map_or_else(|| "node ?".into(), |n| format!("node {n}"))
}
