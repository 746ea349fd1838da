//! Softirq time over one window, for those who take samples and do not watch.

use model::{Reading, Samples, watch::ByContext};

use super::{When, permission::asked, possible, softirq::Part};
use crate::Root;

/// Softirqs, and polls.
const ALWAYS: (When, When) = (When::Always, When::Always);

/// The softirq programs, attached for a window.
pub struct OverWindow(Option<Part>);

impl OverWindow {
    /// Attaches them where they are wanted, and the host is the running one and lets us; costs some
    /// 100 ns a softirq.
    pub fn begin(root: &Root, wanted: bool) -> Self {
        let part = root.is_live().then(|| {
            let mut part = Part::attach(&asked(root, wanted), ALWAYS, root, &possible(root));
            part.look(None);
            part
        });
        Self(part)
    }

    /// Puts what they measured, or why they did not, into the window's samples.
    pub fn end(mut self, samples: Samples) -> Samples {
        self.part(samples)
    }

    /// The same of a part of the window, which ends now; the next one begins.
    pub fn part(&mut self, mut samples: Samples) -> Samples {
        let Some(part) = &mut self.0 else { return samples };
        let look = part.look(None);
        for cpu in &mut samples.cpus {
            (cpu.softirq_ns, _) = look.of(cpu.id);
        }
        samples
    }
}

/// Softirq time of all CPUs since the programs were attached, for those who look at moments.
pub struct Running {
    part: Part,
    sum: ByContext,
}

impl Running {
    /// Attaches them on the running host.
    ///
    /// # Errors
    /// Why they cannot be.
    pub fn begin() -> Reading<Self> {
        let root = Root::live();
        let mut part = Part::attach(&asked(&root, true), ALWAYS, &root, &possible(&root));
        match part.look(None).all() {
            Reading::Known(_) => Reading::Known(Self { part, sum: ByContext::default() }),
            Reading::Absent(why) => Reading::Absent(why),
            Reading::Denied(why) => Reading::Denied(why),
        }
    }

    /// Until now.
    pub fn until_now(&mut self) -> Reading<ByContext> {
        self.part.look(None).all().map(|moved| {
            self.sum.add(&moved);
            self.sum.clone()
        })
    }
}
