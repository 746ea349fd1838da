//! What somebody meant who mistyped a name.

/// Letters to insert, drop, replace or swap with the next one, to make one word of the other
/// (optimal string alignment: Boytsov, "Indexing methods for approximate dictionary searching",
/// ACM JEA 16, 2011, section 2.1).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &Vec<usize>, j: usize| row.get(j).copied().unwrap_or(usize::MAX - 1);
            let above = rows.last().map_or(usize::MAX - 1, |r| at(r, j + 1));
            let before = rows.last().map_or(usize::MAX - 1, |r| at(r, j));
            let mut least = (above + 1).min(at(&row, j) + 1).min(before + usize::from(x != y));
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if let Some(two) = rows.get(i.wrapping_sub(1)).filter(|_| swapped) {
                least = least.min(at(two, j - 1) + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows.last().and_then(|r| r.last()).copied().unwrap_or_default()
}

/// The nearest of some words, if it is near: a third of its letters may differ, and one always.
pub(crate) fn nearest<'w>(word: &str, of: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let near = of.map(|w| (distance(word, w), w)).min()?;
    (near.0 <= (near.1.chars().count() / 3).max(1)).then_some(near.1)
}

/// The spelling (`nic.NIC.rings.rx|tx=DESCRIPTORS`) of a knob's own kind that is nearest to a name,
/// if one is near. Parts in capitals stand for any; an interface's name may hold dots, so the end
/// is what is compared.
pub(crate) fn spelled<'s>(name: &str, spellings: &[&'s str]) -> Option<&'s str> {
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
        // All but the kind, which is theirs already.
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
    fn distances_are_those_of_the_paper() {
        for (a, b, d) in [
            ("mtu", "mtu", 0),
            ("mtuu", "mtu", 1),
            ("mut", "mtu", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (d, d), "{a} {b}");
        }
    }

    #[test]
    fn what_is_near_is_named_and_what_is_not_is_not() {
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
            assert_eq!(spelled(typed, &all), meant.map(|i: usize| all[i]), "{typed}");
        }
        assert_eq!(nearest("sysclt", ["sysctl", "nic"].into_iter()), Some("sysctl"));
        assert_eq!(nearest("blue", ["sysctl", "nic"].into_iter()), None);
    }
}
