//! Compares predictions with measurements.

use stats::paired::median;

/// One delay, number of clients and workload.
pub struct Cell {
    pub work: &'static str,
    pub delay: String,
    pub clients: u32,
    /// Transactions a second over loopback.
    pub here: f64,
    pub predicted: f64,
    pub range: (f64, f64),
    pub inconclusive: bool,
    pub naive: f64,
    /// Transactions per second over the link, pass by pass: as many before the prediction as after.
    pub measured: Vec<f64>,
}

impl Cell {
    fn measured(&self) -> f64 {
        median(&self.measured)
    }

    /// The prediction's error, as a share.
    fn error(&self) -> f64 {
        self.predicted / self.measured() - 1.0
    }

    /// Whether the measurement is within the prediction's interval.
    fn holds(&self) -> bool {
        (self.range.0..=self.range.1).contains(&self.measured())
    }

    fn by_hand(&self) -> f64 {
        self.naive / self.measured() - 1.0
    }

    /// The spread of the passes.
    fn spread(&self) -> f64 {
        let most = self.measured.iter().copied().fold(0.0, f64::max);
        let least = self.measured.iter().copied().fold(f64::INFINITY, f64::min);
        (most - least) / self.measured()
    }

    /// The difference between the measurements after and before: no prediction can be shown to be
    /// closer.
    fn again(&self) -> f64 {
        let (before, after) = self.measured.split_at(self.measured.len() / 2);
        median(after) / median(before) - 1.0
    }

    /// The cell as a row of a Markdown table.
    pub fn print(&self) {
        println!(
            "| {} | {} | {} | {:.0} | {:.0} | {:.0} to {:.0} | {:.0} | {:.0}% | {:+.1}% | {:+.1}% | {:+.1}% | {}{} |",
            self.work,
            self.delay,
            self.clients,
            self.here,
            self.predicted,
            self.range.0,
            self.range.1,
            self.measured(),
            self.spread() * 100.0,
            self.again() * 100.0,
            self.error() * 100.0,
            self.by_hand() * 100.0,
            if self.holds() { "holds" } else { "**misses**" },
            if self.inconclusive { ", inconclusive" } else { "" },
        );
    }
}

/// All cells, and their summary.
pub fn table(cells: &[Cell]) {
    println!(
        "\n| workload | one way | clients | loopback /s | predicted there | range | measured there | passes apart | again | error | by hand | interval |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    cells.iter().for_each(Cell::print);
    let errors = |of: fn(&Cell) -> f64| cells.iter().map(|c| of(c).abs()).collect::<Vec<_>>();
    let sum = |all: &[f64]| (median(all) * 100.0, all.iter().copied().fold(0.0, f64::max) * 100.0);
    let (ours, hand) = (sum(&errors(Cell::error)), sum(&errors(Cell::by_hand)));
    let again = sum(&errors(Cell::again));
    let apart = median(&cells.iter().map(Cell::spread).collect::<Vec<_>>()) * 100.0;
    println!("\n{} cells: median error {:.1}%, worst {:.1}%", cells.len(), ours.0, ours.1);
    println!("by hand: median error {:.1}%, worst {:.1}%", hand.0, hand.1);
    println!("measured again: median {:.1}%, worst {:.1}%", again.0, again.1);
    let (held, sure): (Vec<&Cell>, Vec<&Cell>) = (
        cells.iter().filter(|c| c.holds()).collect(),
        cells.iter().filter(|c| !c.inconclusive).collect(),
    );
    println!(
        "intervals hold {} of {}; of {} conclusive ones {}",
        held.len(),
        cells.len(),
        sure.len(),
        sure.iter().filter(|c| c.holds()).count()
    );
    println!("passes of one cell lie {apart:.0}% apart in the median");
}
