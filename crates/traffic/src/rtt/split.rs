//! The wait split: network stack time against wake-up latency in a round trip.
//!
//! With both ends spinning on two CPUs there are no wake-ups: the rest is the stack (and the wire).
//! Both blocking on two CPUs adds two wake-ups of an idle CPU. Both on one CPU switch tasks, but no
//! CPU has to leave idle. The split compares medians, which are stable.

use model::{
    CpuId, CpuSet, Nanos,
    measure::{Pin, Placement, RttSpec, SplitAnswer, Wait, WaitSplit, WaitVariant},
};

/// A variant of the measurement.
pub struct Variant {
    pub name: &'static str,
    pub spec: RttSpec,
    /// Reason of the placement, if the variant requires it.
    pub why: Option<&'static str>,
}

/// The variants of a measurement with its client thread on CPU `local`.
pub fn variants(spec: &RttSpec, local: Option<CpuId>, same_host: bool) -> Vec<Variant> {
    let with = |name, wait, one_cpu: bool| {
        let mut spec = spec.clone();
        (spec.common.wait, spec.common.peer_wait) = (wait, wait);
        if let (true, Some(cpu)) = (one_cpu, local) {
            let one: CpuSet = [cpu].into_iter().collect();
            (spec.common.pin, spec.common.peer_pin) = (Pin::List(one.clone()), Pin::List(one));
        }
        let why = (one_cpu && local.is_some()).then_some("both ends on one CPU, for this variant");
        Variant { name, spec, why }
    };
    let mut all = vec![with(BLOCKING, Wait::Block, false), with(SPINNING, Wait::Spin, false)];
    if same_host && local.is_some() {
        all.push(with(ONE_CPU, Wait::Block, true));
    }
    all
}

const BLOCKING: &str = "two CPUs, blocking";
const SPINNING: &str = "two CPUs, spinning";
const ONE_CPU: &str = "one CPU, blocking";

/// A run's median with the bounds of its interval, if there is one.
#[derive(Debug, Clone, Copy)]
struct Median {
    ns: u64,
    low: f64,
    high: f64,
}

/// The median of a variant by name, or why there is none.
fn median(variants: &[WaitVariant], name: &str) -> Result<Median, SplitAnswer> {
    let run = variants.iter().find(|v| v.name == name).map(|v| &v.run);
    let Some(run) = run.filter(|r| r.transactions > 0) else {
        return Err(SplitAnswer::NotMeasured { variant: name.to_owned() });
    };
    let ns = run.rtt_ns.p50;
    let (low, high) = match &run.rtt_p50_interval_ns {
        Some(reach) => (reach.low, reach.high),
        None => (ns as f64, ns as f64),
    };
    Ok(Median { ns, low, high })
}

/// Checks that the ends ran on separate CPUs, as the first two variants require; else returns why
/// not.
fn apart(at: &Placement) -> Result<(), SplitAnswer> {
    let (here, there) = (&at.local.pinned, &at.peer.pinned);
    let shared: CpuSet = here.iter().copied().filter(|c| there.contains(c)).collect();
    if !at.same_host || shared.is_empty() {
        return Ok(());
    }
    let all = at.local.allowed.iter().chain(at.peer.allowed.iter()).collect::<CpuSet>();
    if all.len() <= 1 {
        return Err(SplitAnswer::OneCpuOnly);
    }
    Err(SplitAnswer::SharedCpus { cpus: shared, server_why: at.peer.why.clone() })
}

/// Extra time of blocking over spinning, or why it is not reported.
fn waking(blocking: Median, spinning: Median) -> Result<Nanos, SplitAnswer> {
    let (blocking_ns, spinning_ns) = (Nanos(blocking.ns), Nanos(spinning.ns));
    if spinning.ns >= blocking.ns {
        return Err(SplitAnswer::SpinningNotShorter { spinning_ns, blocking_ns });
    }
    if spinning.high >= blocking.low {
        return Err(SplitAnswer::IntervalsOverlap { spinning_ns, blocking_ns });
    }
    Ok(Nanos(blocking.ns - spinning.ns))
}

/// The split computed from all variants.
pub fn split(variants: Vec<WaitVariant>) -> WaitSplit {
    let of = |name: &str| {
        let seen = median(&variants, name)?;
        let at = variants.iter().find(|v| v.name == name).map(|v| &v.run.placement);
        at.map_or(Ok(()), apart).map(|()| seen)
    };
    let reported = of(BLOCKING).and_then(|blocking| {
        let spinning = of(SPINNING)?;
        let waking_ns = waking(blocking, spinning)?;
        Ok((Nanos(blocking.ns), Nanos(spinning.ns), waking_ns))
    });
    WaitSplit {
        stack_ns: reported.as_ref().ok().map(|(_, stack, _)| *stack),
        waking_ns: reported.as_ref().ok().map(|(.., waking)| *waking),
        one_cpu_ns: median(&variants, ONE_CPU).ok().map(|m| Nanos(m.ns)),
        says: match reported {
            Ok((blocking_ns, stack_ns, waking_ns)) => {
                SplitAnswer::Split { blocking_ns, stack_ns, waking_ns }
            }
            Err(why) => why,
        },
        variants,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use model::measure::EndPlacement;

    use super::*;

    fn median(ns: u64, share: f64) -> Median {
        let reach = ns as f64 * share;
        Median { ns, low: ns as f64 - reach, high: ns as f64 + reach }
    }

    #[test]
    fn waking_up_is_reported_only_where_it_shows() {
        assert_eq!(waking(median(53_100, 0.008), median(7_200, 0.008)), Ok(Nanos(45_900)));
        let why = waking(median(377_000, 0.1), median(448_000, 7.65)).unwrap_err();
        assert_eq!(
            why.to_string(),
            "stack and wake-up latency are not reported separately: spinning on two CPUs took 448 \
             µs, no less than blocking, 377 µs, as where something else runs on the CPUs"
        );
        let why = waking(median(53_100, 0.008), median(50_000, 0.2)).unwrap_err();
        assert!(matches!(why, SplitAnswer::IntervalsOverlap { .. }), "{why}");
        let said = SplitAnswer::Split {
            blocking_ns: Nanos(53_100),
            stack_ns: Nanos(7_200),
            waking_ns: Nanos(45_900),
        };
        assert_eq!(
            said.to_string(),
            "of 53.1 µs blocking on two CPUs, 7.20 µs are the stack and 45.9 µs (86%) waking up"
        );
    }

    #[test]
    fn a_host_of_two_cpus_is_not_said_to_have_one() {
        let end = |allowed: &str, pinned: u32, why: &str| EndPlacement {
            pinned: vec![CpuId(pinned)],
            why: why.into(),
            allowed: allowed.parse().unwrap(),
            ..EndPlacement::default()
        };
        let at = |local, peer| Placement { local, peer, same_host: true };
        assert_eq!(apart(&at(end("0-1", 1, ""), end("0-1", 0, ""))), Ok(()));
        let why = apart(&at(end("0", 0, ""), end("0", 0, ""))).unwrap_err();
        assert_eq!(why, SplitAnswer::OneCpuOnly);
        let peer = end("0-1", 1, "not CPU 0, which other sessions use");
        let why = apart(&at(end("0-1", 1, ""), peer)).unwrap_err().to_string();
        assert!(why.contains("both ends ran on CPU 1 (the server: not CPU 0, which"), "{why}");
        assert!(why.contains("until other sessions are over") && !why.contains("one CPU only"));
    }
}
