//! Names of Linux capabilities, from the bits of a mask.

use model::host::CAPABILITIES;

/// The names of a mask's capabilities, ascending; bits of a newer kernel are `cap_41` and so on.
pub(super) fn names(bits: u64) -> Vec<String> {
    let mut names: Vec<String> = (0..64)
        .filter(|bit| bits >> bit & 1 == 1)
        .map(|bit| CAPABILITIES.get(bit).map_or_else(|| format!("cap_{bit}"), |n| (*n).to_owned()))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_bit() {
        assert_eq!(names(0), [""; 0]);
        assert_eq!(names(0x3000), ["cap_net_admin", "cap_net_raw"]);
        assert_eq!(names(0x1ff_ffff_ffff).len(), 41);
        assert_eq!(names(1 << 63), ["cap_63"]);
        assert_eq!(names(0x180_0000_0000), ["cap_bpf", "cap_checkpoint_restore"]);
    }
}
