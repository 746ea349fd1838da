//! Helpers of the facts' unit tests.

use model::{
    Reading,
    host::{Host, KernelBuild, Reader},
};

/// A host of which nothing was read.
pub fn host() -> Host {
    fn none<T>() -> Reading<T> {
        Reading::absent("not read")
    }
    Host {
        name: none(),
        kernel: none(),
        kernel_version: none(),
        arch: none(),
        distribution: none(),
        hypervisor: none(),
        container: none(),
        lockdown: none(),
        cmdline: none(),
        machine: none(),
        cpu_model: none(),
        cpus_possible: none(),
        cpus_present: none(),
        cpus_online: none(),
        smt: none(),
        clocksource: none(),
        clocksources_available: none(),
        clock_read_ns: none(),
        sched_ext: none(),
        build: KernelBuild {
            hz: none(),
            cpu_accounting: none(),
            irq_time_accounting: none(),
            btf: none(),
            preempt: none(),
        },
        page_size_bytes: none(),
        clock_ticks_per_s: none(),
        uptime_s: none(),
        reader: Reader { euid: none(), capabilities: none() },
    }
}
