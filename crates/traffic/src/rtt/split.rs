//! The wait split: how much of a round trip is the stack, and how much is waking up.
//!
//! Both ends spinning on two CPUs wake nobody: what remains is the stack (and the wire). Both
//! blocking on two CPUs is the same and two wake-ups of an idle CPU. Both on one CPU switch
//! tasks, but no CPU has to leave idle. Medians, since they hold still.

use model::{
    CpuId, CpuSet, Nanos,
    measure::{Pin, RttRun, RttSpec, Wait, WaitSplit, WaitVariant},
};

/// A variant of the request.
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// The request.
    pub spec: RttSpec,
    /// Why both ends are where they are, where the variant and nobody else wants it.
    pub why: Option<&'static str>,
}

/// The variants of a request whose near thread runs on `near`.
pub fn variants(spec: &RttSpec, near: Option<CpuId>, same_host: bool) -> Vec<Variant> {
    let with = |name, wait, one_cpu: bool| {
        let mut spec = spec.clone();
        (spec.common.wait, spec.common.peer_wait) = (wait, wait);
        if let (true, Some(cpu)) = (one_cpu, near) {
            let one: CpuSet = [cpu].into_iter().collect();
            (spec.common.pin, spec.common.peer_pin) = (Pin::List(one.clone()), Pin::List(one));
        }
        let why = (one_cpu && near.is_some()).then_some("both ends on one CPU, for this variant");
        Variant { name, spec, why }
    };
    let mut all = vec![with(BLOCKING, Wait::Block, false), with(SPINNING, Wait::Spin, false)];
    if same_host && near.is_some() {
        all.push(with(ONE_CPU, Wait::Block, true));
    }
    all
}

const BLOCKING: &str = "two CPUs, blocking";
const SPINNING: &str = "two CPUs, spinning";
const ONE_CPU: &str = "one CPU, blocking";

/// Whether a run's ends were on CPUs of their own, as the two first variants mean it.
fn apart(run: &RttRun) -> bool {
    let (here, there) = (&run.placement.local.pinned, &run.placement.peer.pinned);
    !run.placement.same_host || !here.iter().any(|c| there.contains(c))
}

/// What the variants say together.
pub fn split(variants: Vec<WaitVariant>) -> WaitSplit {
    let median = |name: &str, needs_two: bool| {
        let found = variants.iter().find(|v| v.name == name)?;
        let real = found.run.transactions > 0 && (!needs_two || apart(&found.run));
        real.then_some(found.run.rtt_ns.p50)
    };
    let blocking = median(BLOCKING, true);
    let stack = median(SPINNING, true);
    let one = median(ONE_CPU, false);
    let waking = blocking.zip(stack).map(|(b, s)| b.saturating_sub(s));
    let mut says = match (blocking, stack, waking) {
        (Some(b), Some(s), Some(w)) => format!(
            "of {} blocking on two CPUs, {} are the stack and {} ({:.0}%) waking up",
            Nanos(b),
            Nanos(s.min(b)),
            Nanos(w),
            100.0 * w as f64 / b.max(1) as f64
        ),
        _ => "this host gives both ends one CPU only: the stack alone cannot be told".to_owned(),
    };
    if let Some(one) = one {
        says += &format!("; on one CPU it takes {}", Nanos(one));
    }
    WaitSplit {
        stack_ns: stack.map(Nanos),
        waking_ns: waking.map(Nanos),
        one_cpu_ns: one.map(Nanos),
        says,
        variants,
    }
}
