//! What many hosts cost a Prometheus and `doctor --fleet`.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use super::{KNOB, finding, scraped};
use crate::support::{
    NETWRIGHT,
    exporter::Prometheus,
    fleet::{Planted, Simulated, SimulatedFleet},
};

/// What 1, 10, 100 and 500 hosts cost: `make bench BENCHES=fleet` prints the table of docs/doctor-fleet.md.
#[test]
#[ignore = "a benchmark of two minutes"]
fn cost_of_many_hosts() {
    println!(
        "{:>6} {:>8} {:>12} {:>14} {:>13} {:>12} {:>12} {:>11}",
        "hosts",
        "series",
        "scrape",
        "Prometheus CPU",
        "its memory",
        "doctor wall",
        "doctor CPU",
        "its memory"
    );
    for hosts in [1, 10, 100, 500] {
        let all = (0..hosts)
            .map(|n| {
                let mut findings =
                    vec![finding("accept_queue_overflow", "warning", Some((KNOB, "8192")))];
                findings.extend((0..n % 5).map(|i| Planted {
                    subject: format!("eth{i}"),
                    ..finding("few_channels", "warning", Some(("nic.eth0.channels", "8")))
                }));
                Simulated { findings, dc: "ams", ..Simulated::default() }
            })
            .collect();
        let fleet = SimulatedFleet::start(all);
        let prometheus = Prometheus::start(&fleet.config("5s"), "");
        scraped(&prometheus, hosts, 0);
        std::thread::sleep(Duration::from_secs(5));
        let before = ticks(prometheus.pid());
        let begun = Instant::now();
        std::thread::sleep(Duration::from_secs(15));
        let cpu = (ticks(prometheus.pid()) - before) / begun.elapsed().as_secs_f64();
        let series = prometheus.number("count({__name__=~\".+\",job=\"netwright\"})");
        let scrape = prometheus.number("avg(scrape_duration_seconds)");
        let memory = peak_mib(&format!("/proc/{}/status", prometheus.pid()));
        let mut runs: Vec<(f64, f64, f64)> =
            (0..5).map(|_| one_run(&prometheus.url(), hosts)).collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (wall, doctor_cpu, doctor_memory) = runs[2];
        println!(
            "{hosts:>6} {series:>8} {:>9.1} ms {:>12.1} % {memory:>9.0} MiB {wall:>10.2} s {doctor_cpu:>10.2} s {doctor_memory:>7.0} MiB",
            scrape * 1e3,
            cpu * 100.0
        );
    }
}

/// CPU time of a process so far, seconds.
fn ticks(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<f64> = fields.split(' ').skip(11).take(2).map(|f| f.parse().unwrap()).collect();
    (fields[0] + fields[1]) / 100.0
}

/// The highest resident memory of a process so far.
fn peak_mib(status: &str) -> f64 {
    let status = fs::read_to_string(status).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

/// Wall time, CPU time and memory of one `doctor --fleet`, by its resource usage.
#[allow(clippy::zombie_processes, reason = "wait4 waits for it and has its usage")]
fn one_run(url: &str, hosts: usize) -> (f64, f64, f64) {
    let begun = Instant::now();
    let mut command = Command::new(NETWRIGHT);
    command.args(["doctor", "--fleet", url]).stdout(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = child.id() as i32;
    // SAFETY: a structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    let mut page = String::new();
    std::io::Read::read_to_string(&mut child.stdout.unwrap(), &mut page).unwrap();
    // SAFETY: both pointers are to values of their type that outlive the call; the child is not waited
    // for elsewhere.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!((waited, status), (pid, 0), "{page}");
    assert!(page.starts_with(&format!("{hosts} of {hosts} host")), "{page}");
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    let cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    (begun.elapsed().as_secs_f64(), cpu, usage.ru_maxrss as f64 / 1024.0)
}
