//! `/proc/vmstat`: memory counters and gauges, one a line. **Source**: `mm/vmstat.c`.

use std::collections::BTreeMap;

use crate::{ParseError, text};

/// All values by name. Names that begin with `nr_` are gauges (pages now), with few exceptions.
///
/// # Errors
/// When there is no such line.
pub fn parse(bytes: &[u8]) -> Result<BTreeMap<String, u64>, ParseError> {
    let values: BTreeMap<_, _> = text::lines(bytes)
        .filter_map(|(_, line)| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        })
        .collect();
    if values.is_empty() { Err(ParseError::new(1, "nr_free_pages 0", bytes)) } else { Ok(values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines() {
        let v = parse(b"nr_free_pages 6000000\nnuma_hint_faults 12\nodd\nneg -1\n").unwrap();
        assert_eq!(v.get("numa_hint_faults"), Some(&12));
        assert_eq!(v.len(), 2);
        assert!(parse(b"").is_err());
    }
}
