//! Limits of series whose number does not follow from CPUs or queues.

use std::collections::{BTreeMap, BTreeSet};

/// The most findings with a series each, by rank; the number of all is a series for each severity.
pub const FINDINGS: usize = 100;
/// The longest value of a change that is a label, bytes; a mask of 2,048 CPUs is none.
pub const VALUE: usize = 128;
/// The most reasons of drops; the kernel of 2025 knows some 120, a host meets a few of them.
pub const REASONS: usize = 40;
/// The most values of applied changes with a series each.
pub const CHANGES: usize = 200;
/// The most interfaces with series; physical ones come first, then by name.
pub const NICS: usize = 32;
/// The label of all for which there was no room.
pub const OTHER: &str = "(other)";

/// Names that keep their series: the first ones that came. A name that comes when the room is used up
/// is [`OTHER`] for ever, so that no counter shrinks.
#[derive(Debug, Clone)]
pub struct Names {
    most: usize,
    known: BTreeSet<String>,
}

impl Names {
    /// Room for this many names.
    pub fn new(most: usize) -> Self {
        Self { most, known: BTreeSet::new() }
    }

    /// The label of a name.
    pub fn label(&mut self, name: &str) -> String {
        if !self.known.contains(name) {
            if self.known.len() >= self.most {
                return OTHER.to_owned();
            }
            self.known.insert(name.to_owned());
        }
        name.to_owned()
    }
}

/// The entry of a label, new where it is not there.
pub(crate) fn entry<'m, V: Default>(
    map: &'m mut BTreeMap<String, V>,
    names: &mut Names,
    name: &str,
) -> &'m mut V {
    map.entry(names.label(name)).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_keep_their_series() {
        let mut names = Names::new(2);
        let labels = ["b", "a", "c", "b", "c", "a"].map(|n| names.label(n));
        assert_eq!(labels, ["b", "a", OTHER, "b", OTHER, "a"]);
    }
}
