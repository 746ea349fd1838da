//! An interval of `watch` as lines of text, where there is no terminal to draw on.

use std::fmt::Write;

use model::watch::{ByContext, CpuWatch, VectorNs, WatchInterval};

/// One table a interval: a line a CPU.
pub fn text(interval: &WatchInterval) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{:>5} {:>8} {:>8} {:>8} {:>8} {:>8}  {:>8} {:>7}  (ms of softirq in {:.1} s)",
        "CPU",
        "SYSCALL",
        "ON-TASK",
        "IDLE",
        "KSOFTIRQ",
        "ALL",
        "/PROC SI",
        "SQUEEZE",
        interval.interval_s
    );
    for cpu in &interval.cpus {
        let _ = writeln!(out, "{}", line(cpu));
    }
    out
}

fn line(cpu: &CpuWatch) -> String {
    let of = |f: fn(&ByContext) -> VectorNs| match &cpu.softirq_ns {
        model::Reading::Known(c) => ms(f(c).total()),
        _ => "-".into(),
    };
    let all = cpu.softirq_ns.known().map_or_else(|| "-".into(), |c| ms(c.softirq_ns()));
    let claimed =
        cpu.proc_stat.known().and_then(|p| p.softirq.get()).map_or_else(|| "-".into(), ms);
    let squeeze = cpu.time_squeeze.get().map_or_else(|| "-".into(), |n| n.to_string());
    format!(
        "{:>5} {:>8} {:>8} {:>8} {:>8} {all:>8}  {claimed:>8} {squeeze:>7}",
        cpu.id.0,
        of(|c| c.syscall),
        of(|c| c.irq_on_task),
        of(|c| c.idle),
        of(|c| c.ksoftirqd),
    )
}

fn ms(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e6)
}
