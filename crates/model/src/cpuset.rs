//! A set of CPUs (or of NUMA nodes), of any width.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::CpuId;

/// A set of CPU ids, unbounded by 32 or 64.
///
/// **Shape**: serialised as the kernel's cpulist (`"0-3,8,10-11"`, the empty set is `""`).
/// Its [`FromStr`] is the one cpulist parser of the whole workspace; hex masks are parsed in
/// `parse`. **Source**: `bitmap_parselist(9)` in the kernel's `lib/bitmap.c`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet {
    /// 64 CPUs a word, lowest first, no trailing zero words (so that equality is equality).
    words: Vec<u64>,
}

/// The largest id a set takes: far above any kernel's `NR_CPUS` (8,192), low enough that a
/// hostile file cannot make us allocate.
pub const MAX_ID: u32 = 65_535;

/// How many ids the ranges of one list may name together. A kernel's list names each once; a text
/// that repeats itself would cost time by its length times [`MAX_ID`].
const MAX_NAMED: u32 = 4 * (MAX_ID + 1);

impl CpuSet {
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// Adds a CPU; ids above [`MAX_ID`] are ignored (parsers refuse them before).
    pub fn insert(&mut self, cpu: CpuId) {
        if cpu.0 > MAX_ID {
            return;
        }
        let word = (cpu.0 / 64) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        if let Some(w) = self.words.get_mut(word) {
            *w |= 1 << (cpu.0 % 64);
        }
    }

    /// Adds every id from `first` to `last`, a word at a time: whole machines are ranges.
    fn insert_range(&mut self, first: u32, last: u32) {
        let (first, last) = (first.min(MAX_ID) as usize, last.min(MAX_ID) as usize);
        if self.words.len() <= last / 64 {
            self.words.resize(last / 64 + 1, 0);
        }
        for word in first / 64..=last / 64 {
            let low = if word == first / 64 { first % 64 } else { 0 };
            let high = if word == last / 64 { last % 64 } else { 63 };
            if let Some(w) = self.words.get_mut(word) {
                *w |= (u64::MAX << low) & (u64::MAX >> (63 - high));
            }
        }
    }

    /// The runs of neighbouring ids, ascending: first and last of each.
    fn ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        // The next id from `from` that is in the set (or, inverted, is not).
        let next = |from: u32, inverted: bool| {
            let mut word = from as usize / 64;
            let mut skip = from % 64;
            loop {
                let w = *self.words.get(word)?;
                let w = if inverted { !w } else { w } >> skip << skip;
                if w != 0 {
                    return Some(word as u32 * 64 + w.trailing_zeros());
                }
                (word, skip) = (word + 1, 0);
            }
        };
        let mut from = 0;
        std::iter::from_fn(move || {
            let first = next(from, false)?;
            let after = next(first, true).unwrap_or(self.words.len() as u32 * 64);
            from = after;
            Some((first, after - 1))
        })
    }

    /// Whether the set holds `cpu`.
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words.get((cpu.0 / 64) as usize).is_some_and(|w| w >> (cpu.0 % 64) & 1 == 1)
    }

    /// Ids of the set, ascending; sparse ids stay as they are.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &w)| {
            (0..64).filter(move |b| w >> b & 1 == 1).map(move |b| CpuId(i as u32 * 64 + b))
        })
    }

    pub fn first(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// How many CPUs the set holds.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// CPUs in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self::trimmed(self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect())
    }

    /// CPUs in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let there = other.words.iter().copied().chain(std::iter::repeat(0));
        Self::trimmed(self.words.iter().zip(there).map(|(a, b)| a & !b).collect())
    }

    /// CPUs in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    /// The set from 64-bit words, lowest CPUs first.
    pub fn from_words(words: Vec<u64>) -> Self {
        Self::trimmed(words)
    }

    /// 64-bit words, lowest CPUs first, without trailing zero words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The set as the kernel takes a mask (`rps_cpus`, `smp_affinity`): groups of eight hex
    /// digits, highest first, no leading zero group. The empty set is `0`.
    pub fn to_hex_mask(&self) -> String {
        let groups: Vec<u32> =
            self.words.iter().flat_map(|&w| [w as u32, (w >> 32) as u32]).collect();
        match groups.iter().rposition(|&g| g != 0) {
            None => "0".into(),
            Some(top) => groups
                .iter()
                .take(top + 1)
                .rev()
                .map(|g| format!("{g:08x}"))
                .collect::<Vec<_>>()
                .join(","),
        }
    }

    fn trimmed(mut words: Vec<u64>) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        Self { words }
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(ids: I) -> Self {
        let mut set = Self::new();
        for id in ids {
            set.insert(id);
        }
        set
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (start, end)) in self.ranges().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            if start == end {
                write!(f, "{start}")?;
            } else {
                write!(f, "{start}-{end}")?;
            }
        }
        Ok(())
    }
}

/// Why a text is no cpulist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a cpulist: {0:?} (expected like 0-3,8; ids up to {MAX_ID})")]
pub struct NotACpulist(pub String);

impl FromStr for CpuSet {
    type Err = NotACpulist;

    /// Parses a cpulist: `0-3,8`, an empty or blank text is the empty set, strides as the
    /// kernel writes them (`0-31:2/4`) are understood.
    fn from_str(s: &str) -> Result<Self, NotACpulist> {
        if let Some(set) = plain(s.as_bytes()) {
            return Ok(set);
        }
        let bad = || NotACpulist(s.chars().take(80).collect());
        let id = |t: &str| -> Result<u32, NotACpulist> {
            if t.is_empty() || !t.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad());
            }
            t.parse().ok().filter(|&n| n <= MAX_ID).ok_or_else(bad)
        };
        let mut set = Self::new();
        if s.trim().is_empty() {
            return Ok(set);
        }
        let mut left = MAX_NAMED;
        for part in s.trim().split(',') {
            let (range, stride) = part.split_once(':').map_or((part, None), |(r, g)| (r, Some(g)));
            let (a, b) = match range.split_once('-') {
                Some((a, b)) => (id(a)?, id(b)?),
                None => (id(range)?, id(range)?),
            };
            let (used, group) = match stride {
                None => (1, 1),
                Some(g) => {
                    let (u, g) = g.split_once('/').ok_or_else(bad)?;
                    (id(u)?, id(g)?)
                }
            };
            if a > b || used > group || group == 0 {
                return Err(bad());
            }
            left = left.checked_sub(b - a + 1).ok_or_else(bad)?;
            if used == group {
                set.insert_range(a, b);
                continue;
            }
            for n in (a..=b).filter(|n| (n - a) % group < used) {
                set.insert(CpuId(n));
            }
        }
        Ok(set)
    }
}

/// Ids and ranges alone, as nearly all lists are: a host has one for each interrupt and queue. `None` for
/// what the general way must judge.
fn plain(text: &[u8]) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    let mut left = MAX_NAMED;
    let (mut first, mut id) = (None, None);
    for byte in text.trim_ascii().iter().chain(b",") {
        match byte {
            b'0'..=b'9' => {
                let n = id.unwrap_or(0) * 10 + u32::from(byte - b'0');
                id = Some(n).filter(|n| *n <= MAX_ID);
                id?;
            }
            b'-' if first.is_none() => first = Some(id.take()?),
            b',' => {
                let last = id.take()?;
                let begin = first.take().unwrap_or(last);
                left = left.checked_sub(last.checked_sub(begin)? + 1)?;
                set.insert_range(begin, last);
            }
            _ => return None,
        }
    }
    Some(set)
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for CpuSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CpuSet".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "ids as a kernel cpulist, such as 0-3,8",
            "pattern": "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let ids = |s: &str| s.parse::<CpuSet>().unwrap().iter().map(|c| c.0).collect::<Vec<_>>();
        assert_eq!(ids("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(ids(""), [0_u32; 0]);
        assert_eq!(ids("\n"), [0_u32; 0]);
        assert_eq!(ids("1023"), [1023]);
        assert_eq!(ids("0-7:2/4"), [0, 1, 4, 5]);
    }

    #[test]
    fn the_short_way_reads_what_the_general_one_reads_or_nothing() {
        for (text, plain_too) in [
            ("0", true),
            ("0-3,8\n", true),
            (" 7,3-5,3 ", true),
            ("65535", true),
            ("0-31:2/4", false),
            ("", false),
        ] {
            // The stride of all says the same in the general way.
            let general: CpuSet = match plain_too {
                true => {
                    text.trim().split(',').map(|p| format!("{p}:1/1")).collect::<Vec<_>>().join(",")
                }
                false => text.to_owned(),
            }
            .parse()
            .unwrap();
            let short = plain(text.as_bytes());
            assert_eq!(short.is_some(), plain_too, "{text}");
            assert_eq!(short.unwrap_or_else(|| general.clone()), general, "{text}");
            assert_eq!(text.parse::<CpuSet>().unwrap(), general, "{text}");
        }
        for wrong in ["65536", "4294967297", "3-", "-3", "1-2-3", "5-3", "1,,2", "1 2", "0x3", ","]
        {
            assert_eq!(plain(wrong.as_bytes()), None, "{wrong}");
            assert!(wrong.parse::<CpuSet>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn masks_are_written_as_the_kernel_takes_them() {
        let mask = |s: &str| s.parse::<CpuSet>().unwrap().to_hex_mask();
        assert_eq!(mask(""), "0");
        assert_eq!(mask("0-3"), "0000000f");
        assert_eq!(mask("32"), "00000001,00000000");
        assert_eq!(mask("0,95"), "80000000,00000000,00000001");
    }

    #[test]
    #[allow(clippy::disallowed_methods, clippy::disallowed_types)]
    fn a_list_that_repeats_itself_costs_no_time() {
        let started = std::time::Instant::now();
        for bomb in ["0-65535:1/2,", "0-65535,"] {
            let text = bomb.repeat(340_000);
            assert!(text.trim_end_matches(',').parse::<CpuSet>().is_err(), "{bomb}");
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
        let all: CpuSet = "0-65535:1/2".parse().unwrap();
        assert_eq!(all.len(), 32_768);
        assert_eq!("3,1,3,0-7".parse::<CpuSet>().unwrap().to_string(), "0-7", "a person's own");
    }

    #[test]
    fn refuses_what_is_no_cpulist() {
        for bad in [
            "3-1",
            "a",
            "1,,2",
            "-1",
            "1-",
            "0x3",
            "65536",
            "99999999999",
            "0-7:3/2",
            "0-7:1/0",
            "1 2",
            "+1",
        ] {
            assert!(bad.parse::<CpuSet>().is_err(), "{bad:?} was taken");
        }
    }

    proptest! {
        #[test]
        fn round_trips(ids in proptest::collection::btree_set(0u32..=4096, 0..200)) {
            let set: CpuSet = ids.iter().map(|&n| CpuId(n)).collect();
            prop_assert_eq!(set.len(), ids.len());
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set.clone());
            prop_assert_eq!(set.iter().map(|c| c.0).collect::<Vec<_>>(), ids.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn ranges_are_the_ids(a in 0u32..700, length in 0u32..300, b in 0u32..700) {
            let set: CpuSet = format!("{a}-{},{b}", a + length).parse().unwrap();
            let want: std::collections::BTreeSet<u32> = (a..=a + length).chain([b]).collect();
            prop_assert_eq!(set.iter().map(|c| c.0).collect::<Vec<_>>(), want.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.ranges().flat_map(|(x, y)| x..=y).collect::<Vec<_>>(), want.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn never_panics(s in "[-0-9,:/ a]{0,40}") {
            let _ = s.parse::<CpuSet>();
        }

        #[test]
        fn set_algebra(a in proptest::collection::btree_set(0u32..300, 0..60), b in proptest::collection::btree_set(0u32..300, 0..60)) {
            let set = |s: &std::collections::BTreeSet<u32>| s.iter().map(|&n| CpuId(n)).collect::<CpuSet>();
            prop_assert_eq!(set(&a).intersection(&set(&b)), set(&a.intersection(&b).copied().collect()));
            prop_assert_eq!(set(&a).difference(&set(&b)), set(&a.difference(&b).copied().collect()));
            prop_assert_eq!(set(&a).union(&set(&b)), set(&a.union(&b).copied().collect()));
            prop_assert_eq!(set(&a).is_subset(&set(&b)), a.is_subset(&b));
        }
    }
}
