//! Several sizes or counts in one word: `64`, `1,8,64`, `8..64k*2`, `1..10+3`.

use super::{Bytes, NotAQuantity};

/// More than anybody waits for.
const MOST: usize = 1_000;

fn refused(text: &str, hint: impl Into<String>) -> NotAQuantity {
    NotAQuantity { what: "sweep", text: text.chars().take(60).collect(), hint: hint.into() }
}

/// The values of a sweep.
///
/// **Shape**: commas separate single values and ranges. `A..B*F` begins at A and multiplies by
/// F while the value is at most B; `A..B+S` adds S. In the order written, repeats kept, at most
/// 1,000. `item` reads one value ([`size`], [`count`]); also the step S of a range.
///
/// # Errors
/// What `item` refuses, a range without a step, with a step that does not move or
/// with its ends reversed, and too many values.
pub fn sweep(
    text: &str,
    item: impl Fn(&str) -> Result<u64, NotAQuantity>,
) -> Result<Vec<u64>, NotAQuantity> {
    let mut values = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((first, rest)) => range(part, first, rest, &item, &mut values)?,
            None => values.push(item(part)?),
        }
        if values.len() > MOST {
            return Err(refused(text, format!("at most {MOST} values")));
        }
    }
    Ok(values)
}

fn range(
    part: &str,
    first: &str,
    rest: &str,
    item: &impl Fn(&str) -> Result<u64, NotAQuantity>,
    values: &mut Vec<u64>,
) -> Result<(), NotAQuantity> {
    let Some(at) = rest.find(['*', '+']) else {
        return Err(refused(part, "say how it goes on: A..B*2 doubles, A..B+1 adds"));
    };
    let (last, step) = (&rest[..at], &rest[at + 1..]);
    let (from, to) = (item(first)?, item(last)?);
    if from > to {
        return Err(refused(part, "it begins above its end"));
    }
    let multiplies = rest[at..].starts_with('*');
    let step = if multiplies { count(step)? } else { item(step)? };
    if multiplies && (step < 2 || from == 0) {
        return Err(refused(part, "it does not move; multiply from 1 or more by 2 or more"));
    }
    if step == 0 {
        return Err(refused(part, "it does not move; add 1 or more"));
    }
    let next = |v: &u64| {
        let next = if multiplies { v.checked_mul(step) } else { v.checked_add(step) };
        next.filter(|v| *v <= to)
    };
    // One more than allowed shows that there are too many.
    values.extend(std::iter::successors(Some(from), next).take(MOST + 1));
    Ok(())
}

/// A size in bytes: `64`, `64B`, `64k`, `1M`. A bare number is one of bytes here, because the
/// option's name says so.
///
/// # Errors
/// Neither a whole number nor a number with a unit of bytes.
pub fn size(text: &str) -> Result<u64, NotAQuantity> {
    let bare = text.trim();
    if !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_digit()) {
        return whole("size", bare);
    }
    bare.parse::<Bytes>().map(|b| b.0)
}

/// A plain count: `64`.
///
/// # Errors
/// Anything but a whole number.
pub fn count(text: &str) -> Result<u64, NotAQuantity> {
    whole("count", text.trim())
}

fn whole(what: &'static str, text: &str) -> Result<u64, NotAQuantity> {
    let refused = |hint: &str| NotAQuantity {
        what,
        text: text.chars().take(60).collect(),
        hint: hint.into(),
    };
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(refused("write a whole number"));
    }
    text.parse().map_err(|_| refused("too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn takes_single_values_lists_and_ranges() {
        assert_eq!(sweep("64", size), Ok(vec![64]));
        assert_eq!(sweep("1, 8,64k", size), Ok(vec![1, 8, 65_536]));
        assert_eq!(
            sweep("8..64k*2", size).unwrap(),
            [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536]
        );
        assert_eq!(sweep("1..10+3", count), Ok(vec![1, 4, 7, 10]));
        assert_eq!(sweep("1..9+3", count), Ok(vec![1, 4, 7]));
        assert_eq!(sweep("0..8k+4k,1M", size), Ok(vec![0, 4096, 8192, 1 << 20]));
        assert_eq!(sweep("5..5*2,3", count), Ok(vec![5, 3]));
        // It stops where the next value would not fit.
        let top = format!("{}..{}*2", u64::MAX / 3, u64::MAX);
        assert_eq!(sweep(&top, count).unwrap(), [u64::MAX / 3, u64::MAX / 3 * 2]);
    }

    #[test]
    fn refuses_with_one_line_that_helps() {
        let says = |text| sweep(text, size).unwrap_err().to_string();
        assert_eq!(
            says("8..64"),
            "\"8..64\" is not a sweep: say how it goes on: A..B*2 doubles, A..B+1 adds"
        );
        assert_eq!(says("64..8*2"), "\"64..8*2\" is not a sweep: it begins above its end");
        assert_eq!(says("0..1000000+1"), "\"0..1000000+1\" is not a sweep: at most 1000 values");
        for still in ["8..64*1", "8..64*0", "0..64*2", "8..64+0"] {
            assert!(says(still).contains("it does not move"), "{still}");
        }
        for bad in [
            "",
            ",",
            "1,",
            "..",
            "1..",
            "..8*2",
            "1..8*",
            "1..8+",
            "8..64*2*2",
            "8..64*1.5",
            "-1",
            "8..64+-1",
            "1e3",
            "64 parsecs",
            "99999999999999999999",
            "1...8*2",
        ] {
            let line = says(bad);
            assert!(!line.contains('\n'), "{bad:?}: {line}");
        }
        assert!(sweep("64k", count).is_err(), "a count has no unit");
        let long = "1,".repeat(2_000) + "1";
        assert!(sweep(&long, count).is_err());
    }

    proptest! {
        #[test]
        fn any_text_ends_in_at_most_1000_values_or_one_short_line(text in "[0-9kM.,*+ -]{0,40}|\\PC{0,80}") {
            match sweep(&text, size) {
                Ok(values) => prop_assert!((1..=1_000).contains(&values.len())),
                Err(e) => prop_assert!(e.to_string().lines().count() <= 1 && e.to_string().len() < 1_000),
            }
        }
    }
}
