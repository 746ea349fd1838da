//! Softirq time and drops over one window, for callers that sample and do not watch.

use std::{sync::atomic::AtomicBool, time::Instant};

use model::{
    Reading, Samples,
    watch::{ByContext, PacketDrops},
};

use super::{
    ObserveWhen, movement::drops::DropsPart, permission::asked, possible, softirq::SoftirqPart,
};
use crate::{
    ReadError, Root, facts,
    samples::{self, Options},
};

const ALWAYS: (ObserveWhen, ObserveWhen) = (ObserveWhen::Always, ObserveWhen::Always);

/// The programs of softirqs and of drops, attached for a window.
pub struct OverWindow {
    part: Option<(SoftirqPart, DropsPart)>,
    since: Instant,
}

impl OverWindow {
    /// Attaches them where they are wanted, and the host is the running one and lets us; costs some
    /// 100 ns a softirq.
    pub fn begin(root: &Root, wanted: bool) -> Self {
        let part = root.is_live().then(|| {
            let (asked, possible) = (asked(root, wanted), possible(root));
            let mut softirqs = SoftirqPart::attach(&asked, ALWAYS, root, &possible);
            let drops = DropsPart::attach(&asked, ObserveWhen::Always, &possible);
            softirqs.look(None);
            (softirqs, drops)
        });
        Self { part, since: Instant::now() }
    }

    /// Samples over a window, as [`samples::take`] gives them, with what the programs measured, or why
    /// they did not.
    ///
    /// # Errors
    /// As [`samples::take`].
    pub fn take(
        &mut self,
        root: &Root,
        options: &Options,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Samples, ReadError> {
        let Some((softirqs, drops)) = &mut self.part else {
            return samples::take(root, options, stop, progress);
        };
        // Drops are counted from where the counters begin to where they end; their names are read after
        // it, for that takes a while.
        let (mut began, mut counted) = (false, None);
        let mut passed = |share: f64| {
            if !began {
                began = true;
                drops.take();
            } else if share >= 1.0 && counted.is_none() {
                counted = Some(drops.take());
            }
            progress(share);
        };
        let mut samples = samples::take(root, options, stop, &mut passed)?;
        let counted = counted.unwrap_or_else(|| drops.take());
        samples.drops = in_this_namespace(drops.named(&Root::live(), counted));
        let look = softirqs.look(None);
        // The programs run from before the window's first reading until after its last one, which on a
        // slow host is seconds longer: the samples get the window's share of their time.
        let ran = std::mem::replace(&mut self.since, Instant::now()).elapsed();
        let share = samples.window_ns.0 as f64 / ran.as_nanos().max(1) as f64;
        for cpu in &mut samples.cpus {
            let (measured, _) = look.of(cpu.id);
            cpu.softirq_ns = measured.map(|by| by.times(share.min(1.0)));
        }
        Ok(samples)
    }
}

/// The programs count those of all namespaces.
fn in_this_namespace(drops: Reading<Vec<PacketDrops>>) -> Reading<Vec<PacketDrops>> {
    let own = facts::process::net_namespace(&Root::live(), std::process::id());
    let here = |d: &PacketDrops| !d.net_namespace.is_known() || d.net_namespace == own;
    drops.map(|mut all| {
        if own.is_known() {
            all.retain(here);
        }
        all
    })
}

/// Softirq time of all CPUs since the programs were attached, for those who look at moments.
pub struct Running {
    part: SoftirqPart,
    sum: ByContext,
}

impl Running {
    /// Attaches them on the running host.
    ///
    /// # Errors
    /// Why they cannot be.
    pub fn begin() -> Reading<Self> {
        let root = Root::live();
        let mut part = SoftirqPart::attach(&asked(&root, true), ALWAYS, &root, &possible(&root));
        match part.look(None).all() {
            Reading::Known(_) => Reading::Known(Self { part, sum: ByContext::default() }),
            Reading::Absent(why) => Reading::Absent(why),
            Reading::Denied(why) => Reading::Denied(why),
        }
    }

    pub fn until_now(&mut self) -> Reading<ByContext> {
        self.part.look(None).all().map(|moved| {
            self.sum.add(&moved);
            self.sum.clone()
        })
    }
}
