//! Normalising constants by convolution, as logarithms.
//!
//! Buzen (CACM 16, 1973); for load-dependent stations Bruell and Balbo (Computational Algorithms
//! for Closed Queueing Networks, 1980). The load-dependent form of mean value analysis (Reiser
//! and Lavenberg, JACM 27, 1980) subtracts and loses all its digits with many clients (Casale,
//! Computer Performance Evaluation 2011, shows where); here only positive terms are added, and
//! logarithms never overflow.

use super::station::{Station, StationKind};

/// `ln(e^a + e^b)` without overflow.
fn add(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// The same for many.
fn sum(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let highest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if highest == f64::NEG_INFINITY {
        return highest;
    }
    highest + terms.map(|t| (t - highest).exp()).sum::<f64>().ln()
}

/// `ln k!` for k from 0 to `n`.
fn factorials(n: usize) -> Vec<f64> {
    let mut all = vec![0.0; n + 1];
    let mut so_far = 0.0;
    for (k, slot) in all.iter_mut().enumerate().skip(1) {
        so_far += (k as f64).ln();
        *slot = so_far;
    }
    all
}

/// `ln f(k)` for k from 0 to `n`: how likely `k` clients at the station are, before normalising.
/// `f(k)` is the product of demand by rate with 1 to `k` clients. Times count in units of
/// `unit_ns`, here and in [`constants`]: with that of the slowest station the logarithms stay
/// small and keep their digits.
pub fn factors(station: &Station, n: usize, unit_ns: f64) -> Vec<f64> {
    let demand = (station.demand_ns / unit_ns).ln();
    let rate = |k: usize| match &station.kind {
        StationKind::Delay => k as f64,
        StationKind::Servers(c) => (k as f64).min(f64::from(*c)),
        StationKind::Rates(r) => r.get(k - 1).or(r.last()).copied().unwrap_or(1.0),
    };
    let mut all = vec![0.0; n + 1];
    let mut so_far = 0.0;
    for (k, slot) in all.iter_mut().enumerate().skip(1) {
        so_far += demand - rate(k).ln();
        *slot = so_far;
    }
    all
}

/// `ln G(k)` for k from 0 to `n` clients in these stations.
pub fn constants<'a>(
    stations: impl Iterator<Item = &'a Station> + Clone,
    n: usize,
    unit_ns: f64,
) -> Vec<f64> {
    let taking = stations.filter(|s| s.demand_ns > 0.0);
    let delays = taking.clone().filter(|s| s.kind == StationKind::Delay).map(|s| s.demand_ns);
    let delay = delays.sum::<f64>() / unit_ns;
    // Delays are one: everybody is at any of them alone.
    let mut g: Vec<f64> = match delay > 0.0 {
        true => {
            let all = factorials(n);
            all.iter().enumerate().map(|(k, f)| k as f64 * delay.ln() - f).collect()
        }
        false => (0..=n).map(|k| if k == 0 { 0.0 } else { f64::NEG_INFINITY }).collect(),
    };
    for station in taking {
        g = match &station.kind {
            StationKind::Delay => g,
            StationKind::Servers(c) => with_servers(&g, station.demand_ns / unit_ns, *c),
            StationKind::Rates(_) => with_any(&g, &factors(station, n, unit_ns)),
        };
    }
    g
}

/// Adds a station of any rates: the sum over how many are there.
fn with_any(g: &[f64], f: &[f64]) -> Vec<f64> {
    let at = |n: usize| sum(f.iter().zip(g.iter().take(n + 1).rev()).map(|(f, g)| f + g));
    (0..g.len()).map(at).collect()
}

/// Adds `c` servers. From `c` clients on `f` is geometric with ratio D/c, so that
/// `G'(n) = D/c G'(n-1) + sum over k < c of D^k/k! (1 - k/c) G(n-k)`: c terms instead of n, all
/// of them positive.
fn with_servers(g: &[f64], demand: f64, c: u32) -> Vec<f64> {
    let terms = (c as usize).min(g.len());
    let factorial = factorials(terms);
    let head: Vec<f64> = (0..terms)
        .zip(&factorial)
        .map(|(k, f)| k as f64 * demand.ln() - f + (-(k as f64) / f64::from(c)).ln_1p())
        .collect();
    let ratio = demand.ln() - f64::from(c).ln();
    let mut all = Vec::with_capacity(g.len());
    let mut before = f64::NEG_INFINITY;
    for n in 0..g.len() {
        let fresh = sum(head.iter().zip(g.iter().take(n + 1).rev()).map(|(h, g)| h + g));
        before = add(ratio + before, fresh);
        all.push(before);
    }
    all
}
