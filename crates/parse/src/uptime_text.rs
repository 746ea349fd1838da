//! What `uptime` printed, as support archives keep it instead of `/proc/uptime`.
//!
//! **Source**: `uptime.c` of procps 4.0 and of busybox 1.36.

/// What its line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uptime {
    /// Whole minutes since the host booted.
    pub minutes: u64,
    /// Seconds of the clock when it ran, 0 to 60: with the time of the boot they make it exact.
    pub second: u64,
}

/// ` 03:46:21 up 3 days,  9:08,  1 user,  load average: …`; `None` for anything else.
pub fn parse(bytes: &[u8]) -> Option<Uptime> {
    let text = String::from_utf8_lossy(bytes);
    let (clock, rest) = text.lines().next()?.split_once(" up ")?;
    let second = clock.trim().rsplit(':').next()?.parse().ok().filter(|s| *s <= 60)?;
    let mut minutes = 0u64;
    for (n, part) in rest.split(',').map(str::trim).enumerate() {
        let (of_day, every) = match part.split_once(' ') {
            Some((days, "day" | "days")) => (days.parse::<u64>().ok()?, 24 * 60),
            Some((count, "min")) => (count.parse().ok()?, 1),
            None if part.contains(':') => {
                let (hours, minutes) = part.split_once(':')?;
                let hours = hours.parse::<u64>().ok()?.checked_mul(60)?;
                (hours.checked_add(minutes.parse().ok()?)?, 1)
            }
            // Users and load follow.
            _ if n > 0 => break,
            _ => return None,
        };
        minutes = minutes.checked_add(of_day.checked_mul(every)?)?;
    }
    Some(Uptime { minutes, second })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let of = |text: &str| parse(text.as_bytes()).map(|u| (u.minutes, u.second));
        let short = " 03:46:21 up  9:08,  0 user,  load average: 5.39, 6.23, 4.93\n";
        assert_eq!(of(short), Some((9 * 60 + 8, 21)));
        assert_eq!(of(" 10:00:05 up 12 min,  2 users,  load average: 0.00"), Some((12, 5)));
        let days = " 10:00:59 up 21 days,  5:02,  2 users,  load average: 0.00";
        assert_eq!(of(days), Some(((21 * 24 + 5) * 60 + 2, 59)));
        assert_eq!(of(" 10:00:00 up 1 day, 3 min,  1 user"), Some((24 * 60 + 3, 0)));
        for none in [
            "",
            "up",
            " 10:00:00 up ",
            "10:00 up forever",
            " 10:00:77 up 1 min",
            " 10:00:59 up 5:18446744073709551615",
        ] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }
}
