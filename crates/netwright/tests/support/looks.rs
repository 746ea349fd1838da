//! Figures on the wall clock of a shared machine: not the best of several looks decides, but most of them.

/// The most looks that are made.
const LOOKS: usize = 5;

/// Whether most looks are good: the first two, or else three of five. Other work on the machine may spoil
/// one or two; what is wrong half of the time fails half of the runs.
pub fn in_most_looks(mut look: impl FnMut() -> bool) -> bool {
    let mut good = 0;
    for made in 1..=LOOKS {
        good += usize::from(look());
        let bad = made - good;
        if (made, good) == (2, 2) || good > LOOKS / 2 {
            return true;
        }
        if bad > LOOKS / 2 {
            break;
        }
    }
    false
}

/// As [`in_most_looks`]; fails with what was wrong with the bad ones.
#[track_caller]
pub fn hold_in_most_looks(mut look: impl FnMut() -> Result<(), String>) {
    let mut whys = vec![];
    let held = in_most_looks(|| look().map_err(|why| whys.push(why)).is_ok());
    assert!(held, "{whys:#?}");
}
