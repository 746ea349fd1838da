//! Quantities with their unit in the type, and the one parser for quantities with units.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod sweep;

pub use sweep::{count, size, sweep};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub u64);
    };
}

quantity! {
    /// A duration in nanoseconds.
    Nanos
}
quantity! {
    /// A size in bytes.
    Bytes
}
quantity! {
    /// A rate in bits per second (decimal prefixes: 10 Gbit/s is 10^10).
    BitsPerSec
}

/// Error for a text that is not a quantity, with the probable meaning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {what}: {hint}")]
pub struct NotAQuantity {
    /// Expected kind: `duration`, `size` or `rate`.
    pub what: &'static str,
    pub text: String,
    /// A spelling that would be understood.
    pub hint: String,
}

fn parse_with(
    what: &'static str,
    text: &str,
    units: &[(&str, u64)],
    likely: [&str; 2],
) -> Result<u64, NotAQuantity> {
    let refuse = |hint: String| NotAQuantity { what, text: text.chars().take(60).collect(), hint };
    let names = || units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
    let t = text.trim();
    let digits = t.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(t.len());
    let (number, unit) = t.split_at(digits);
    if number.is_empty() || number.starts_with('.') || number.ends_with('.') {
        return Err(refuse(format!("write a number and a unit ({})", names())));
    }
    if unit.is_empty() {
        return Err(refuse(format!(
            "a unit is missing; did you mean {number}{} or {number}{}?",
            likely[0], likely[1]
        )));
    }
    let unit = unit.trim();
    let scale = units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
    let scale = scale.ok_or_else(|| {
        let meant = meant(unit, units).map(|name| format!("did you mean {number}{name}? "));
        refuse(format!("{}unknown unit {unit:?}; units are {}", meant.unwrap_or_default(), names()))
    })?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let too_large = || refuse("too large".into());
    if fraction.contains('.') || fraction.len() > 9 {
        return Err(refuse("write a plain decimal number".into()));
    }
    // Integer arithmetic: 0.1s is exactly 100,000,000 ns.
    let whole: u128 = whole.parse().map_err(|_| too_large())?;
    let tenth_powers = 10u128.pow(fraction.len() as u32);
    let fraction: u128 =
        if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| too_large())? };
    let scaled = whole
        .checked_mul(tenth_powers)
        .and_then(|w| w.checked_add(fraction))
        .and_then(|n| n.checked_mul(u128::from(scale)))
        .ok_or_else(too_large)?;
    u64::try_from(scaled / tenth_powers).map_err(|_| too_large())
}

/// The unit that `M` is short for, as other tools take `500M` for bits.
fn meant<'a>(unit: &str, units: &[(&'a str, u64)]) -> Option<&'a str> {
    let prefix = match unit {
        "k" | "K" => "k",
        "M" | "G" | "T" => unit,
        _ => return None,
    };
    units.iter().map(|u| u.0).find(|name| name.len() > 1 && name.starts_with(prefix))
}

impl FromStr for Nanos {
    type Err = NotAQuantity;

    /// `250ms`, `1.5s`, `80us` (or `µs`), `10ns`, `2m`, `1h`.
    fn from_str(s: &str) -> Result<Self, NotAQuantity> {
        const UNITS: [(&str, u64); 7] = [
            ("ns", 1),
            ("us", 1_000),
            ("µs", 1_000),
            ("ms", 1_000_000),
            ("s", 1_000_000_000),
            ("m", 60_000_000_000),
            ("h", 3_600_000_000_000),
        ];
        parse_with("duration", s, &UNITS, ["s", "ms"]).map(Self)
    }
}

/// Parses a duration as typed: a number without a unit is seconds.
///
/// Not for the value of a setting, which may have another unit.
///
/// # Errors
/// The text is not a duration.
pub fn seconds(text: &str) -> Result<Nanos, NotAQuantity> {
    let bare = text.trim().ends_with(|c: char| c.is_ascii_digit());
    if bare { format!("{}s", text.trim()).parse() } else { text.parse() }
}

impl FromStr for Bytes {
    type Err = NotAQuantity;

    /// `64B`, `64k`, `64KiB`, `1M`, `2GiB`: binary, as everywhere in the kernel's memory
    /// settings.
    fn from_str(s: &str) -> Result<Self, NotAQuantity> {
        const UNITS: [(&str, u64); 13] = [
            ("B", 1),
            ("k", 1 << 10),
            ("K", 1 << 10),
            ("KiB", 1 << 10),
            ("m", 1 << 20),
            ("M", 1 << 20),
            ("MiB", 1 << 20),
            ("g", 1 << 30),
            ("G", 1 << 30),
            ("GiB", 1 << 30),
            ("t", 1 << 40),
            ("T", 1 << 40),
            ("TiB", 1 << 40),
        ];
        parse_with("size", s, &UNITS, ["B", "k"]).map(Self)
    }
}

impl FromStr for BitsPerSec {
    type Err = NotAQuantity;

    /// `10Gbit`, `100Mbit`, `1.5Gbit/s`, `500kbit`, `9600bit`: decimal.
    fn from_str(s: &str) -> Result<Self, NotAQuantity> {
        const UNITS: [(&str, u64); 5] = [
            ("bit", 1),
            ("kbit", 1_000),
            ("Mbit", 1_000_000),
            ("Gbit", 1_000_000_000),
            ("Tbit", 1_000_000_000_000),
        ];
        let bare = s.trim().strip_suffix("/s").unwrap_or(s);
        parse_with("rate", bare, &UNITS, ["Mbit", "Gbit"]).map(Self)
    }
}

/// A count as people read it: `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A figure as people read it: whole from 100 on, with thousands parted.
pub fn figure(x: f64) -> String {
    match x.abs() {
        a if (100.0..1e18).contains(&a) => {
            let sign = if x < 0.0 { "-" } else { "" };
            format!("{sign}{}", grouped(a.round() as u64))
        }
        // 0.99996 is 1.00, not 1.0000.
        a if a >= 0.999_95 => format!("{x:.2}"),
        _ => format!("{x:.4}"),
    }
}

/// Writes `n` with the largest of `units` of which there is a whole one, or nearly, in three
/// significant digits; a multiple of a unit is written exactly.
fn scaled(f: &mut fmt::Formatter<'_>, n: u64, units: &[(u64, &str)]) -> fmt::Result {
    let smaller = units.iter().skip(1).map(|u| u.0).chain([1]);
    for (&(scale, unit), smaller) in units.iter().zip(smaller) {
        if n >= scale || nearly(n, scale, smaller) {
            let value = n as f64 / scale as f64;
            let text = if n.is_multiple_of(scale) {
                format!("{}{unit}", n / scale)
            } else if value < 9.995 {
                format!("{value:.2}{unit}")
            } else if value < 99.95 {
                format!("{value:.1}{unit}")
            } else {
                format!("{value:.0}{unit}")
            };
            return f.pad(&text);
        }
    }
    f.pad(&format!("0{}", units.last().map_or("", |u| u.1)))
}

/// Whether `n` is a whole `scale` to three digits: 999.8 ms are 1.00 s and 1023.2 KiB 1.00 MiB.
fn nearly(n: u64, scale: u64, smaller: u64) -> bool {
    let least = if scale.is_power_of_two() { 0.995 } else { 0.9995 };
    !n.is_multiple_of(smaller) && n as f64 >= least * scale as f64
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, &[(1_000_000_000, " s"), (1_000_000, " ms"), (1_000, " µs"), (1, " ns")])
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(
            f,
            self.0,
            &[
                (1 << 40, " TiB"),
                (1 << 30, " GiB"),
                (1 << 20, " MiB"),
                (1 << 10, " KiB"),
                (1, " B"),
            ],
        )
    }
}

impl fmt::Display for BitsPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(
            f,
            self.0,
            &[
                (1_000_000_000, " Gbit/s"),
                (1_000_000, " Mbit/s"),
                (1_000, " kbit/s"),
                (1, " bit/s"),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_units_and_refuses_a_bare_number_with_two_meanings() {
        assert_eq!("250ms".parse(), Ok(Nanos(250_000_000)));
        assert_eq!("0.1s".parse(), Ok(Nanos(100_000_000)));
        assert_eq!("64k".parse(), Ok(Bytes(65_536)));
        assert_eq!("10Gbit".parse(), Ok(BitsPerSec(10_000_000_000)));
        assert_eq!("1.5Gbit/s".parse(), Ok(BitsPerSec(1_500_000_000)));
        let err = "500M".parse::<BitsPerSec>().unwrap_err().to_string();
        assert!(err.contains("did you mean 500Mbit? unknown unit \"M\""), "{err}");
        let err = "5k".parse::<Nanos>().unwrap_err().to_string();
        assert!(!err.contains("did you mean"), "{err}");
        assert_eq!(seconds("5").unwrap(), Nanos(5_000_000_000));
        assert_eq!(seconds(" 0.25 ").unwrap(), Nanos(250_000_000));
        assert_eq!(seconds("5ms").unwrap(), Nanos(5_000_000));
        assert!(seconds("").is_err() && seconds("-1").is_err() && seconds("1.").is_err());
        let err = "5".parse::<Nanos>().unwrap_err().to_string();
        assert_eq!(err, "\"5\" is not a duration: a unit is missing; did you mean 5s or 5ms?");
        for bad in
            ["", "s", "-1s", "1.s", ".5s", "1e9s", "99999999999999999999h", "1.2.3s", "5 parsecs"]
        {
            assert!(bad.parse::<Nanos>().is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn prints_for_people() {
        assert_eq!(Nanos(6_664_000).to_string(), "6.66 ms");
        assert_eq!(Nanos(0).to_string(), "0 ns");
        assert_eq!(Nanos(999_800_000).to_string(), "1.00 s");
        assert_eq!(Nanos(999_000_000).to_string(), "999 ms");
        assert_eq!(Nanos(99_960_001).to_string(), "100 ms");
        assert_eq!(Bytes(16 * 65_483).to_string(), "1.00 MiB");
        assert_eq!(Bytes(1023 << 10).to_string(), "1023 KiB");
        assert_eq!(Bytes(1023).to_string(), "1023 B");
        assert_eq!(Bytes(65_536).to_string(), "64 KiB");
        assert_eq!(BitsPerSec(10_000_000_000).to_string(), "10 Gbit/s");
    }
}
