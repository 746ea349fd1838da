//! Tests of wall-clock figures on a shared machine: most of several looks must be good, not the
//! best one.

/// The most looks per test.
const LOOKS: usize = 5;

/// Whether most looks are good: the first two, or three of five. Other load may spoil one or two. A
/// figure that is wrong half of the time fails half of the runs.
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

/// The same; fails with the errors of the bad looks.
#[track_caller]
pub fn hold_in_most_looks(mut look: impl FnMut() -> Result<(), String>) {
    let mut whys = vec![];
    let held = in_most_looks(|| look().map_err(|why| whys.push(why)).is_ok());
    assert!(held, "{whys:#?}");
}
