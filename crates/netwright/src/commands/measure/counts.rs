//! Parses sizes and counts, and lists and sweeps of them.

use std::str::FromStr;

use model::units::{count, size, sweep};

/// Parses sizes in bytes. The flag implies the unit, so a bare number is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(pub Vec<u64>);

/// Parses one size in bytes; a bare number is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneSize(pub u64);

/// Parses a rate per second; `k` and `M` are thousands and millions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerSecond(pub u64);

impl FromStr for PerSecond {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || format!("{text:?} is no number a second; write 20000 or 20k");
        let (digits, scale) = match text.strip_suffix(['k', 'M']) {
            Some(digits) if text.ends_with('k') => (digits, 1_000),
            Some(digits) => (digits, 1_000_000),
            None => (text, 1),
        };
        let n = count(digits).map_err(|_| wrong())?;
        match n.checked_mul(scale) {
            Some(0) => Err("0 a second is none; write 1 or more".into()),
            Some(n) => Ok(Self(n)),
            None => Err(wrong()),
        }
    }
}

/// A whole number from `LOW` to `HIGH`.
///
/// # Errors
/// The text is no whole number, or outside the range; one line for clap.
pub fn within<const LOW: u32, const HIGH: u32>(text: &str) -> Result<u32, String> {
    let n = text.trim().parse::<u32>().ok().filter(|n| (LOW..=HIGH).contains(n));
    n.ok_or_else(|| format!("write a whole number from {LOW} to {HIGH}"))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts(pub Vec<u32>);

/// Parses a percentage as per mille.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percent(pub u32);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        sweep(text, size).map(Self).map_err(|e| e.to_string())
    }
}

impl FromStr for OneSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = sweep(text, size).map_err(|e| e.to_string())?;
        match all[..] {
            [one] => Ok(Self(one)),
            _ => Err("one size only".into()),
        }
    }
}

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = sweep(text, count).map_err(|e| e.to_string())?;
        let narrow = |n: u64| match u32::try_from(n) {
            Ok(0) => Err("0 of them move nothing; write 1 or more".to_owned()),
            Ok(n) => Ok(n),
            Err(_) => Err(format!("{n} is too many")),
        };
        all.into_iter().map(narrow).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no percentage from 0.1% to 50%; write 2%");
        let number = text.trim().strip_suffix('%').ok_or_else(wrong)?;
        let percent: f64 = number.trim().parse().map_err(|_| wrong())?;
        match (percent * 10.0).round() {
            n if (1.0..=500.0).contains(&n) => Ok(Self(n as u32)),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_take_thousands_and_say_what_they_are() {
        for (text, n) in [("20000", 20_000), ("20k", 20_000), ("2M", 2_000_000)] {
            assert_eq!(text.parse(), Ok(PerSecond(n)));
        }
        for wrong in ["10Mbit", "1.5k", "k", "", "-1", "99999999999999999999", "99999999999999M"] {
            let why = wrong.parse::<PerSecond>().unwrap_err();
            assert!(why.ends_with("write 20000 or 20k"), "{why}");
        }
        assert!("0k".parse::<PerSecond>().unwrap_err().contains("1 or more"));
    }

    #[test]
    fn numbers_beyond_their_range_are_refused_with_the_range() {
        assert_eq!(within::<0, 63>("63"), Ok(63));
        for wrong in ["64", "-1", "ef"] {
            assert_eq!(within::<0, 63>(wrong).unwrap_err(), "write a whole number from 0 to 63");
        }
    }

    #[test]
    fn no_flow_is_none() {
        assert!("0".parse::<Counts>().unwrap_err().contains("1 or more"));
        assert!("1,0".parse::<Counts>().is_err());
    }
}
