//! When a change is written within a plan.

/// In the order in which a plan writes, and against which undoing goes: who would overwrite a value is
/// told first, queues are there before they are set up, and what resets an interface comes before what a
/// reset takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// How irqbalance runs: its start, its policy.
    IrqbalanceRun,
    /// What irqbalance leaves alone.
    IrqbalanceBans,
    /// That irqbalance pauses, which is told to it by the bans.
    IrqbalancePause,
    /// Kernel settings.
    Sysctl,
    /// PCI registers.
    Pci,
    /// Frequency and idle states of CPUs.
    Cpu,
    /// How many queues a NIC has: most drivers make them anew.
    Channels,
    /// Their rings.
    Rings,
    /// Their queueing disciplines.
    Qdisc,
    /// MTU, for which some drivers reset the interface.
    Mtu,
    /// Offloads, for which some do.
    Features,
    /// What is set of an interface as a whole: coalescing, pause frames, deferral.
    Nic,
    /// What is set of its NAPIs and of its spreading over queues.
    Spread,
    /// What is set of one queue: RPS, RFS, XPS.
    Queue,
    /// Where interrupts go.
    Irq,
    /// Where a process may run.
    Process,
    /// Where a control group may run and have memory.
    Cgroup,
}
