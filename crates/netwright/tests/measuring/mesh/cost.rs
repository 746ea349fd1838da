//! What a mesh costs each host.

use std::{thread, time::Duration};

use super::list;
use crate::support::{
    exporter::{Exporter, value},
    serve::Serve,
};

/// `make bench BENCHES=mesh` prints the table of docs/mesh.md. Each host is an address of
/// loopback; one of them measures, all of them answer.
#[test]
#[ignore = "two minutes of cost, for docs/mesh.md"]
fn cost_of_a_host_among_10_100_and_1000() {
    const ROUNDS: f64 = 5.0;
    let serve = Serve::start(&["--bind", "0.0.0.0", "--open"]);
    let port = serve.target().rsplit(':').next().unwrap();
    println!("| hosts | CPU time for each round | memory | series |\n|---|---|---|---|");
    let cost = [10, 100, 1000].map(|hosts| {
        let folder = tempfile::tempdir().unwrap();
        let peers: Vec<String> =
            (1..=hosts).map(|n| format!("127.9.{}.{}:{port}", n / 250, n % 250)).collect();
        let file = list(folder.path(), &peers.iter().map(String::as_str).collect::<Vec<_>>());
        let args = ["--peers", file.to_str().unwrap(), "--self", &peers[0], "--every", "6s"];
        let mesh = Exporter::of("mesh", &args);
        let succeeded = |page: &str| {
            let of = |l: &str| l.starts_with("netwright_probes_total") && l.contains("success");
            let counts = page.lines().filter(|l| of(l)).map(|l| l.rsplit(' ').next().unwrap());
            counts.map(|n| n.parse::<f64>().unwrap()).sum::<f64>()
        };
        let figures = |probes: f64| loop {
            let page = mesh.page();
            let done = succeeded(&page);
            if done >= probes {
                return (done, value(&page, "process_cpu_seconds_total").unwrap(), page);
            }
            thread::sleep(Duration::from_millis(500));
        };
        let (first, before, _) = figures(3.0);
        let (last, after, page) = figures(3.0 + 3.0 * ROUNDS);
        let cpu_s = (after - before) / (last - first) * 3.0;
        let memory = value(&page, "process_resident_memory_bytes").unwrap() / 1e6;
        let series = page.lines().filter(|l| !l.starts_with('#')).count();
        println!("| {hosts} | {:.0} ms | {memory:.1} MB | {series} |", cpu_s * 1e3);
        (cpu_s, series)
    });
    assert!(cost.iter().all(|(_, series)| *series == cost[0].1), "{cost:?}");
    assert!(cost[2].0 < 2.0 * cost[0].0, "{cost:?}");
}
