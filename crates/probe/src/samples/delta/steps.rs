//! The number of steps of the window in which a counter grew: few for a burst, all for a lasting
//! state.

use std::collections::BTreeMap;

use crate::samples::raw::Raw;

/// Counters of protocols and of `softnet_stat`, those alone that grew at all.
pub(super) fn grew_in(readings: &[Raw]) -> BTreeMap<String, u32> {
    let mut steps: BTreeMap<String, u32> = BTreeMap::new();
    for pair in readings.windows(2) {
        let [before, after] = pair else { continue };
        let mut count = |name: String, grew: bool| {
            if grew {
                *steps.entry(name).or_default() += 1;
            }
        };
        if let (Some(old), Some(new)) = (before.protocols.known(), after.protocols.known()) {
            for (name, value) in new {
                count(name.clone(), old.get(name).is_some_and(|old| value > old));
            }
        }
        if let (Some(old), Some(new)) = (before.softnet.known(), after.softnet.known()) {
            for (cpu, row) in new {
                let Some(old) = old.get(cpu) else { continue };
                count(format!("softnet.{cpu}.dropped"), row.dropped > old.dropped);
                count(format!("softnet.{cpu}.time_squeeze"), row.time_squeeze > old.time_squeeze);
            }
        }
    }
    steps
}
