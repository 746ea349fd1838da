//! Suggestions for mistyped names.

use strsim::osa_distance as distance;

/// The closest candidate, if close enough: up to a third of its letters may differ, at least one.
pub(crate) fn nearest<'w>(word: &str, of: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let (edits, closest) = of.map(|w| (distance(word, w), w)).min()?;
    (edits <= (closest.chars().count() / 3).max(1)).then_some(closest)
}

/// The setting closest to a dotted name, if close enough: up to a third of the letters of the last
/// part may differ.
pub(crate) fn nearest_setting<'w>(
    typed: &str,
    of: impl Iterator<Item = &'w str>,
) -> Option<&'w str> {
    let last = typed.rsplit('.').next().unwrap_or_default().chars().count();
    let (edits, closest) = of.map(|w| (distance(typed, w), w)).min()?;
    (edits <= (last / 3).max(1)).then_some(closest)
}

/// Hint after an unknown name: the closest match, or up to eight that exist.
pub fn hint<'w>(typed: &str, all: impl Iterator<Item = &'w str>) -> String {
    let all: Vec<&str> = all.collect();
    match nearest(typed, all.iter().copied()) {
        Some(meant) => format!("did you mean {meant}?"),
        None if all.is_empty() => "there are none".into(),
        None => format!("there are {}", all.into_iter().take(8).collect::<Vec<_>>().join(", ")),
    }
}

/// The spelling (`nic.NIC.rings.rx|tx=DESCRIPTORS`) closest to a name of the same knob kind, if any
/// is close. Parts in capitals match any text. An interface name may hold dots, so the comparison
/// starts at the end.
pub(crate) fn nearest_spelling<'s>(name: &str, spellings: &[&'s str]) -> Option<&'s str> {
    let numbered = |part: &str| match part.trim_end_matches(|c: char| c.is_ascii_digit()) {
        kept if kept.ends_with('-') => format!("{kept}N"),
        _ => part.to_owned(),
    };
    let typed: Vec<String> = name.split('.').map(numbered).collect();
    let score = |spelling: &&'s str| {
        let pattern = spelling.split('=').next().unwrap_or_default();
        let parts: Vec<&str> = pattern.split('.').collect();
        let spare = typed.len().checked_sub(parts.len())?;
        let mut sum = 0;
        // All parts except the kind, which already matches.
        for (part, typed) in parts.iter().rev().zip(typed.iter().rev()).take(parts.len() - 1) {
            if !part.chars().all(|c| c.is_ascii_uppercase()) {
                let word = nearest(typed, part.split('|'))?;
                sum += distance(typed, word);
            }
        }
        Some((sum, spare, *spelling))
    };
    spellings.iter().filter_map(score).min().map(|(.., s)| s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_name_is_suggested_and_a_distant_one_is_not() {
        let all = [
            "nic.NIC.mtu=BYTES",
            "nic.NIC.txqueuelen=PACKETS",
            "nic.NIC.rings.rx|rx_mini|tx=DESCRIPTORS",
            "nic.NIC.queue.rx-N.rps_cpus=MASK",
            "nic.NIC.rss.key=HEX",
        ];
        for (typed, meant) in [
            ("nic.eth0.mut", Some(0)),
            ("nic.eth0.100.mtuu", Some(0)),
            ("nic.eth0.txqueue_len", Some(1)),
            ("nic.eth0.ring.rx", Some(2)),
            ("nic.eth0.rings.tc", Some(2)),
            ("nic.eth0.queue.rx-11.rps_cpu", Some(3)),
            ("nic.eth0.blue", None),
            ("nic.mtu", None),
        ] {
            assert_eq!(nearest_spelling(typed, &all), meant.map(|i: usize| all[i]), "{typed}");
        }
        assert_eq!(nearest("sysclt", ["sysctl", "nic"].into_iter()), Some("sysctl"));
        assert_eq!(nearest("blue", ["sysctl", "nic"].into_iter()), None);
    }
}
