//! Tests of the helper that decides how many looks must be good.

use crate::support::looks::in_most_looks;

#[test]
fn the_first_two_or_three_of_five_decide() {
    let decided = |looks: &str| {
        let mut looks = looks.bytes();
        let good = in_most_looks(|| looks.next() == Some(b'+'));
        assert_eq!(looks.next(), None, "looks are left over");
        good
    };
    for good in ["++", "+-++", "-+++", "--+++", "+-+-+"] {
        assert!(decided(good), "{good}");
    }
    for bad in ["---", "+---", "-+--", "+-+--", "--++-"] {
        assert!(!decided(bad), "{bad}");
    }
}
