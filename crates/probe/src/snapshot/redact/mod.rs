//! Taking names out of a snapshot that someone else will see.
//!
//! Every name is replaced by a pseudonym that is the same everywhere in the snapshot, so that
//! what belongs together still does. Without the key, which is random and forgotten, nobody
//! can tell the name from its pseudonym or try names until one fits.
//!
//! | replaced | kept |
//! |---|---|
//! | MAC and EUI-64 addresses, also within IPv6 addresses and names such as `enx…` | their multicast and local bits; zero, broadcast, spanning tree |
//! | IPv4 addresses, also in `/proc/net/*`'s hex: into 240.0.0.0/4 | which share a /24; loopback, unspecified, masks, multicast, 169.254 |
//! | IPv6 addresses: into 2001:db8::/32 | which share a /64; loopback, unspecified, `fe80::/64` and the scope of multicast |
//! | host and domain name, as words | where the name is also a word of the kernel's (`vm`): only in files of names |
//! | UUIDs, ids of 32 and 64 hex digits (machine, containers, cgroups) | |
//! | command lines | the program's name; irqbalance's and tuned's arguments |
//! | the kernel cmdline's paths, URLs and init's arguments | settings |
//! | users in `/home/…`, targets of open files, mapped files, mounts of disks and shares | |
//! | comments, and values of keys that look like secrets, in configuration files | settings |
//!
//! Known to stay: names of interfaces, network namespaces, containers, units and programs.

mod address;
mod files;
mod siphash;
mod text;

use std::{collections::BTreeMap, str::FromStr};

use super::CapturedRun;

/// What pseudonyms are made with.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 16]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)") // whoever reads a log must not be able to undo the redaction
    }
}

impl Key {
    /// A random key that is not stored.
    ///
    /// # Errors
    /// The system has no random numbers; a weaker key must not be used.
    pub fn random() -> std::io::Result<Self> {
        let mut key = [0u8; 16];
        match rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())? {
            n if n == key.len() => Ok(Self(key)),
            _ => Err(std::io::Error::other("too few random bytes")),
        }
    }
}

impl FromStr for Key {
    type Err = String;

    /// 32 hex digits: the same key gives the same pseudonyms in several snapshots.
    fn from_str(s: &str) -> Result<Self, String> {
        let bad = || "a redaction key is 32 hex digits".to_owned();
        if s.len() != 32 || !s.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(bad());
        }
        u128::from_str_radix(s, 16).map(|n| Self(n.to_be_bytes())).map_err(|_| bad())
    }
}

/// Redacts everything that was recorded, contents and paths. The facts and samples that were
/// seen while recording stay as they were seen.
pub fn recording(taken: &mut CapturedRun, key: &Key) {
    let mut redactor = Redactor::new(key);
    redactor.learn(taken);
    let recording = &mut taken.recording;
    recording.files = std::mem::take(&mut recording.files)
        .into_iter()
        .map(|(place, bytes)| {
            let bytes = redactor.content(&place, bytes);
            (redactor.path(&place), bytes)
        })
        .collect();
    recording.links = std::mem::take(&mut recording.links)
        .into_iter()
        .map(|(place, target)| {
            let target = redactor.target(&place, &target);
            (redactor.path(&place), target)
        })
        .collect();
    recording.dirs = std::mem::take(&mut recording.dirs).iter().map(|d| redactor.path(d)).collect();
    let manifest = &mut taken.manifest;
    manifest.errors = std::mem::take(&mut manifest.errors)
        .into_iter()
        .map(|(place, errno)| (redactor.path(&place), errno))
        .collect();
    manifest.listings = std::mem::take(&mut manifest.listings)
        .into_iter()
        .map(|(place, names)| {
            let mut names: Vec<String> =
                names.iter().map(|name| redactor.entry(&place, name)).collect();
            names.sort();
            (redactor.path(&place), names)
        })
        .collect();
    manifest.redacted = true;
}

pub(crate) struct Redactor {
    prf: siphash::SipHash,
    addresses: address::Pseudonyms,
    /// Host and domain names in lower case, longest first, with their pseudonyms.
    words: Vec<(String, String)>,
    /// MACs seen with separators: twelve digits in a row that are one of these are it too.
    macs: BTreeMap<[u8; 6], ()>,
}

impl Redactor {
    pub fn new(key: &Key) -> Self {
        let prf = siphash::SipHash::new(&key.0);
        Self {
            prf: prf.clone(),
            addresses: address::Pseudonyms::new(prf),
            words: Vec::new(),
            macs: BTreeMap::new(),
        }
    }

    /// Finds the names of this host, and every MAC in its usual form.
    fn learn(&mut self, taken: &CapturedRun) {
        let files = &taken.recording.files;
        let mut names = std::collections::BTreeSet::new();
        for place in files::NAMES {
            let text = files.get(place).map(|b| parse::text::word(b).to_lowercase());
            for name in text.iter().flat_map(|t| t.split_ascii_whitespace()) {
                if matches!(name, "(none)" | "localhost" | "localdomain") {
                    continue;
                }
                names.insert(name.to_owned());
                if let Some((host, domain)) = name.split_once('.') {
                    names.insert(host.to_owned());
                    names.insert(domain.to_owned());
                }
            }
        }
        names.retain(|n| !files::is_common(n, taken));
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_by_key(|n| std::cmp::Reverse(n.len()));
        self.words = names
            .into_iter()
            .map(|n| {
                let pseudonym = self.host(&n);
                (n, pseudonym)
            })
            .collect();
        let macs = files.values().flat_map(|bytes| text::macs(bytes));
        self.macs = macs.filter(|m| *m != [0; 6] && *m != [0xff; 6]).map(|m| (m, ())).collect();
    }

    /// A pseudonym of `digits` hex digits for any bytes; `what` keeps kinds apart.
    fn hex(&self, what: &str, bytes: &[u8], digits: usize) -> String {
        let mut out = String::new();
        for n in 0u32.. {
            if out.len() >= digits {
                break;
            }
            let hash = self.prf.hash(&[what.as_bytes(), &n.to_le_bytes(), bytes]);
            out.push_str(&format!("{hash:016x}"));
        }
        out.truncate(digits);
        out
    }

    fn host(&self, name: &str) -> String {
        format!("host-{}", self.hex("host", name.to_lowercase().as_bytes(), 8))
    }
}

#[cfg(test)]
mod tests;
