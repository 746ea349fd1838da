//! Lists and sweeps of sizes and counts as they are typed.

use std::str::FromStr;

use model::units::{count, size, sweep};

/// Sizes in bytes: the unit is the flag's, so a bare number is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(pub Vec<u64>);

/// One size in bytes; a bare number is taken here too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneSize(pub u64);

/// Counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts(pub Vec<u32>);

/// Per mille, typed as percent.
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
        let narrow = |n: u64| u32::try_from(n).map_err(|_| format!("{n} is too many"));
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
