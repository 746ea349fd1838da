//! Softirq time over one window, for those who take samples and do not watch.

use model::Samples;

use super::{possible, softirq::Part};
use crate::Root;

/// The softirq programs, attached for a window.
pub struct OverWindow(Option<Part>);

impl OverWindow {
    /// Attaches them where the host is the running one and lets us; costs some 100 ns a softirq.
    pub fn begin(root: &Root) -> Self {
        let part = root.is_live().then(|| {
            let mut part = Part::attach(true, root, &possible(root));
            part.look();
            part
        });
        Self(part)
    }

    /// Puts what they measured, or why they did not, into the window's samples.
    pub fn end(self, mut samples: Samples) -> Samples {
        let Some(mut part) = self.0 else { return samples };
        let look = part.look();
        for cpu in &mut samples.cpus {
            (cpu.softirq_ns, _) = look.of(cpu.id);
        }
        samples
    }
}
