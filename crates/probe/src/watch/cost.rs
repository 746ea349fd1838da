//! The CPU time of the eBPF programs, by program and CPU.

use std::os::fd::OwnedFd;

use model::{
    Nanos, Reading,
    watch::{Observer, ProgramStatus},
};

use crate::bpf::run_stats;

/// For how long the kernel counts our programs' time; the counting costs as much as they do.
pub const LOOK_NS: u64 = 20_000_000;

/// The costs are measured in one interval of this many.
const EVERY: u32 = 10;

/// CPU time of this process, and the interval's number.
#[derive(Debug)]
pub struct Cost {
    process_ns: u64,
    interval: u32,
}

impl Cost {
    pub fn begin() -> Self {
        Self { process_ns: process_ns(), interval: 0 }
    }

    /// Has the kernel count while the descriptor lives, if it is time to and permitted.
    pub fn turn(&mut self) -> Option<OwnedFd> {
        let turn = self.interval.is_multiple_of(EVERY);
        self.interval = self.interval.wrapping_add(1);
        if turn { run_stats::on().ok() } else { None }
    }

    /// The cost of the interval that ends now, of `window_ns` on `cpus` CPUs.
    pub fn observer(
        &mut self,
        programs: Vec<ProgramStatus>,
        (window_ns, cpus): (u64, usize),
        attach_ns: u64,
    ) -> Observer {
        let now = process_ns();
        let process = now.saturating_sub(self.process_ns);
        self.process_ns = now;
        let ran = programs.iter().filter_map(|p| p.ran.known());
        let (timed, untimed): (Vec<_>, Vec<_>) =
            ran.map(|r| r.time_ns.get()).partition(Option::is_some);
        let programs_ns = timed.into_iter().flatten().sum();
        let whole = window_ns as f64 * cpus as f64;
        Observer {
            programs,
            programs_ns: Nanos(programs_ns),
            programs_untimed: u32::try_from(untimed.len()).unwrap_or(u32::MAX),
            process_ns: Reading::Known(Nanos(process)),
            share_of_host: match whole > 0.0 {
                true => Reading::Known((programs_ns + process) as f64 / whole),
                false => Reading::absent("no CPU was seen over the whole interval"),
            },
            attach_ns: Reading::Known(Nanos(attach_ns)),
        }
    }
}

/// CPU time of this process, all threads.
fn process_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use model::watch::Ran;

    use super::*;

    fn program(ran: Reading<Ran>) -> ProgramStatus {
        ProgramStatus { object: "o".into(), program: "p".into(), gives: String::new(), ran }
    }

    #[test]
    fn a_program_of_unknown_cost_is_counted_as_such() {
        let ran = |time_ns| {
            Reading::Known(Ran {
                runs: Reading::Known(1),
                ns_per_run: Reading::absent(""),
                time_ns,
            })
        };
        let programs = vec![
            program(ran(Reading::Known(700))),
            program(ran(Reading::absent("it did not run while it was timed"))),
            program(Reading::absent("not attached: it costs nothing")),
            program(ran(Reading::Known(300))),
        ];
        let observer = Cost::begin().observer(programs, (1_000_000_000, 2), 5);
        assert_eq!((observer.programs_ns, observer.programs_untimed), (Nanos(1000), 1));
    }
}
