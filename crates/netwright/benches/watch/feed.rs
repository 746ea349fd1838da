//! What showing and writing an interval of a large host takes: made-up ones, of 2 and 512 CPUs.

use std::{io, time::Instant};

use model::watch::{WatchRecord, generated};
use report::{Look, watch::Teller};

/// Intervals of each; the first, which shows more, counts as the others.
const TURNS: u64 = 20;

/// Prints the time of an interval as text and as JSON.
pub fn measure() -> io::Result<()> {
    println!();
    for cpus in [2, 512] {
        let mut teller = Teller::new(Look::default(), generated::host(cpus, 8));
        let (mut text, mut json) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            let record =
                WatchRecord { interval: generated::interval(cpus, turn), findings: vec![] };
            let begun = Instant::now();
            std::hint::black_box(teller.tell(&record));
            text.push(begun.elapsed().as_secs_f64() * 1e3);
            let begun = Instant::now();
            std::hint::black_box(serde_json::to_vec(&record).map_err(io::Error::other)?);
            json.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        println!(
            "an interval of {cpus} CPUs at 1 Hz: {} ms as text, {} ms as JSON (5% of a CPU is 50 ms)",
            super::user::spread(text),
            super::user::spread(json)
        );
    }
    Ok(())
}
