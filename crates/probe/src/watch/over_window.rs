//! Softirq time and drops over one window, for those who take samples and do not watch.

use std::time::Instant;

use model::{
    Reading, Samples,
    watch::{ByContext, PacketDrops},
};

use super::{
    ObserveWhen,
    movement::drops::{DropCounts, DropsPart},
    permission::asked,
    possible,
    softirq::SoftirqPart,
};
use crate::{Root, facts};

const ALWAYS: (ObserveWhen, ObserveWhen) = (ObserveWhen::Always, ObserveWhen::Always);

/// The programs of softirqs and of drops, attached for a window.
pub struct OverWindow {
    part: Option<(SoftirqPart, DropsPart)>,
    since: Instant,
    /// What was dropped within the window, once it is over; and whether it began.
    drops: (Option<Reading<DropCounts>>, bool),
}

impl OverWindow {
    /// Attaches them where they are wanted, and the host is the running one and lets us; costs some
    /// 100 ns a softirq.
    pub fn begin(root: &Root, wanted: bool) -> Self {
        let part = root.is_live().then(|| {
            let (asked, possible) = (asked(root, wanted), possible(root));
            let mut softirqs = SoftirqPart::attach(&asked, ALWAYS, root, &possible);
            let mut drops = DropsPart::attach(&asked, &possible);
            softirqs.look(None);
            drops.begin();
            (softirqs, drops)
        });
        Self { part, since: Instant::now(), drops: (None, false) }
    }

    /// Hears which share of the window has passed, as [`crate::samples::take`] tells it: drops are
    /// counted from the first word to the last, for as long as the counters are.
    pub fn passed(&mut self, share: f64) {
        let Some((_, drops)) = &mut self.part else { return };
        if !std::mem::replace(&mut self.drops.1, true) {
            drops.begin();
        } else if share >= 1.0 && self.drops.0.is_none() {
            self.drops.0 = Some(drops.take());
        }
    }

    /// Puts what they measured, or why they did not, into the window's samples.
    pub fn end(mut self, samples: Samples) -> Samples {
        self.part(samples)
    }

    /// The same of a part of the window, which ends now; the next one begins.
    ///
    /// The programs run from before the window's first reading until after its last one, which on a slow
    /// host is seconds longer than the window: the samples get the window's share of their time.
    pub fn part(&mut self, mut samples: Samples) -> Samples {
        let Some((softirqs, drops)) = &mut self.part else { return samples };
        let counted = self.drops.0.take().unwrap_or_else(|| drops.take());
        samples.drops = in_this_namespace(drops.named(&Root::live(), counted));
        let look = softirqs.look(None);
        let ran = std::mem::replace(&mut self.since, Instant::now()).elapsed();
        let share = samples.window_ns.0 as f64 / ran.as_nanos().max(1) as f64;
        for cpu in &mut samples.cpus {
            let (measured, _) = look.of(cpu.id);
            cpu.softirq_ns = measured.map(|by| by.times(share.min(1.0)));
        }
        samples
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
