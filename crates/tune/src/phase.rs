//! The order in which a plan's changes are written.

/// A plan writes in this order, and undoing runs in reverse. Programs that would overwrite a value
/// are stopped first, queues are created before they are configured, and changes that reset an
/// interface come before settings that a reset loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// irqbalance's start and policy script.
    IrqbalanceRun,
    /// CPUs and interrupts that irqbalance must leave alone.
    IrqbalanceBans,
    /// Pausing irqbalance, after the bans: a paused one accepts none.
    IrqbalancePause,
    /// Huge pages, which move a setting under `/proc/sys` along.
    Memory,
    /// Kernel settings under `/proc/sys`.
    Sysctl,
    /// PCI registers: memory read request sizes.
    Pci,
    /// Frequency and idle states of CPUs.
    Cpu,
    /// Number of a NIC's queues: most drivers recreate them.
    Channels,
    /// Ring sizes of the queues.
    Rings,
    /// Queueing disciplines of the queues.
    Qdisc,
    /// MTU; some drivers reset the interface for it.
    Mtu,
    /// Offloads; some drivers reset the interface for them.
    Features,
    /// Settings of a whole interface: coalescing, pause frames, deferral.
    Nic,
    /// Settings of its NAPI instances and of RSS.
    Spread,
    /// Settings of one queue: RPS, RFS, XPS.
    Queue,
    /// Metrics of routes, which the MTU and the interface's state may have changed.
    Route,
    /// CPU affinities of interrupts.
    Irq,
    /// CPU affinity of processes.
    Process,
    /// CPUs, memory nodes and quotas of control groups.
    Cgroup,
}
