//! The sizes of the drawing: few CPUs are large with every interrupt's number, many are small cells
//! with marks.

use super::tree::BoxKind;

/// Sizes in px at natural size. No text is below 8 px.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub cell: (f64, f64),
    pub cpu_font: f64,
    /// An interrupt's number; zero draws a plain mark instead.
    pub irq_font: f64,
    pub disc: f64,
    /// Between hardware threads of a core.
    pub thread_gap: f64,
    /// Around the threads of a core.
    pub core_pad: f64,
    pub nic: (f64, f64),
    pub nic_gap: f64,
}

impl Scale {
    /// The scale for this many CPUs with this highest number.
    pub fn for_cpus(n: usize, highest: u32) -> Self {
        // A disc beside a four-digit number needs more room.
        let base = Self {
            cell: (if highest > 999 { 44.0 } else { 37.0 }, 30.0),
            cpu_font: 9.0,
            irq_font: 0.0,
            disc: 5.5,
            thread_gap: 1.0,
            core_pad: 2.0,
            nic: (170.0, 34.0),
            nic_gap: 6.0,
        };
        match n {
            0..=16 => Self {
                cell: (104.0, 64.0),
                cpu_font: 14.0,
                irq_font: 10.0,
                disc: 8.0,
                thread_gap: 3.0,
                core_pad: 5.0,
                ..base
            },
            17..=72 => Self {
                cell: (56.0, 44.0),
                cpu_font: 11.0,
                irq_font: 9.0,
                disc: 6.5,
                thread_gap: 2.0,
                core_pad: 3.0,
                ..base
            },
            _ => base,
        }
    }

    /// Between a box's border and its content.
    pub fn pad(&self, kind: BoxKind) -> f64 {
        match kind {
            BoxKind::Package(_) => 12.0,
            BoxKind::Node(_) => 10.0,
            BoxKind::L3(_) => 5.0,
            BoxKind::Core(_) => self.core_pad,
        }
    }

    /// Height of a box's label line.
    pub fn head(&self, kind: BoxKind) -> f64 {
        self.label(kind) + 9.0
    }

    /// Height of a box's label.
    pub fn label(&self, kind: BoxKind) -> f64 {
        match kind {
            BoxKind::Package(_) => 13.0,
            BoxKind::Node(_) => 12.0,
            BoxKind::L3(_) | BoxKind::Core(_) => 9.0,
        }
    }

    /// Between the boxes within.
    pub fn gap(&self, kind: BoxKind) -> f64 {
        match kind {
            BoxKind::Package(_) => 12.0,
            BoxKind::Node(_) => 8.0,
            BoxKind::L3(_) | BoxKind::Core(_) => {
                if self.irq_font > 0.0 {
                    4.0
                } else {
                    2.0
                }
            }
        }
    }
}
