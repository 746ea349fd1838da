//! Dates on the command line.

/// Milliseconds since 1970 of `2026-11-26`, `2026-11-26T14:30` or `2026-11-26T14:30:05`, in UTC.
/// Days by Howard Hinnant's `days_from_civil` (chrono-compatible low-level date algorithms).
///
/// # Errors
/// The text is no such date.
pub fn unix_ms(text: &str) -> Result<u64, String> {
    parsed(text.trim_end_matches('Z'))
        .ok_or_else(|| "a date in UTC such as 2026-11-26 or 2026-11-26T14:30".to_owned())
}

fn parsed(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let [year, month, day] = numbers(date, '-')?.try_into().ok()?;
    let time = numbers(time, ':')?;
    let (hour, minute, second) = match time.as_slice() {
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let fits = (1970..=9999).contains(&year) && (1..=longest).contains(&day);
    if !fits || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // The year begins in March, so that the leap day is its last.
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let day_of_year = (153 * m + 2) / 5 + day - 1;
    let days = 365 * y + y / 4 - y / 100 + y / 400 + day_of_year - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000)
}

fn numbers(text: &str, between: char) -> Option<Vec<u64>> {
    let number = |n: &str| {
        let digits = n.len() <= 4 && n.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| n.parse().ok()).flatten()
    };
    text.split(between).map(number).collect()
}

/// Milliseconds of `90d`, `12h`, `30m` or `8w`.
///
/// # Errors
/// The text is no such duration.
pub fn age_ms(text: &str) -> Result<u64, String> {
    const UNITS: [(char, u64); 4] = [('m', 60), ('h', 3600), ('d', 86_400), ('w', 604_800)];
    let of = |(unit, s): &(char, u64)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        number.checked_mul(s * 1000)
    };
    UNITS.iter().find_map(of).ok_or_else(|| "a duration such as 90d, 12h or 8w".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `date -u -d TEXT +%s`.
    #[test]
    fn dates_are_those_of_the_classic_tool() {
        for (text, s) in [
            ("1970-01-01", 0),
            ("2026-11-26", 1_795_651_200),
            ("2026-11-26T14:30", 1_795_703_400),
            ("2024-02-29T23:59:59Z", 1_709_251_199),
            ("2000-03-01", 951_868_800),
        ] {
            assert_eq!(unix_ms(text), Ok(s * 1000), "{text}");
        }
        for wrong in
            ["", "2026", "2026-13-01", "2026-02-30", "2100-02-29", "yesterday", "2026-11-26T24:00"]
        {
            assert!(unix_ms(wrong).is_err(), "{wrong}");
        }
        assert_eq!(age_ms("90d"), Ok(90 * 86_400_000));
        for wrong in ["", "d", "90", "-1d", "1.5h", "99999999999999999w"] {
            assert!(age_ms(wrong).is_err(), "{wrong}");
        }
    }
}
