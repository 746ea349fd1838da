//! ethtool through the ioctl `SIOCETHTOOL`. It works on every kernel from 4.18 on, and the calls
//! here need no capability. Its netlink successor (since 5.6) lacks driver information, driver
//! statistics and flow rules.
//!
//! Each call is separate, with its own key, so that a driver without one still gives the rest:
//! `EOPNOTSUPP` is absent, `EPERM` denied.

pub mod answers;
mod exchange;
mod reply;

use std::{cell::RefCell, collections::BTreeMap};

use serde::{Serialize, de::DeserializeOwned};

use self::{
    answers::{
        Channels, Coalesce, DriverInfo, Feature, HashFields, LinkSettings, Pause, Rings, Rss,
        RuleCount, Stats, WordStruct,
    },
    exchange::{Exchange, ROOM},
    reply::Reply,
};
use super::key_part;
use crate::{ReadError, Root};

// Commands and string sets of include/uapi/linux/ethtool.h.
const GDRVINFO: u32 = 0x03;
const GCOALESCE: u32 = 0x0e;
const GRINGPARAM: u32 = 0x10;
const GPAUSEPARAM: u32 = 0x12;
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GRXFH: u32 = 0x29;
const GRXRINGS: u32 = 0x2d;
const GRXCLSRLCNT: u32 = 0x2e;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const GCHANNELS: u32 = 0x3c;
const GRSSH: u32 = 0x46;
const GLINKSETTINGS: u32 = 0x4c;
const SS_STATS: u32 = 1;
const SS_FEATURES: u32 = 4;
/// Length of one string of a set.
const STRING: usize = 32;
/// How often a query is repeated when the length of the answer changed between two calls.
const TRIES: u32 = 3;

/// Flow types with hash fields that decide how traffic is spread, with the kernel's number.
const FLOW_TYPES: [(&str, u32); 4] = [("tcp4", 1), ("udp4", 2), ("tcp6", 5), ("udp6", 6)];

/// Asks about interfaces of this process's network namespace, one at a time.
pub struct Ethtool<'a> {
    root: &'a Root,
    /// Opened at the first live question.
    exchange: RefCell<Option<Exchange>>,
}

impl<'a> Ethtool<'a> {
    /// Asks through `root`; opens nothing yet.
    pub fn new(root: &'a Root) -> Self {
        Self { root, exchange: RefCell::new(None) }
    }

    /// One question: recorded, or from the kernel.
    fn ask<T: Serialize + DeserializeOwned>(
        &self,
        nic: &str,
        what: &str,
        live: impl FnOnce(&mut Exchange) -> Result<T, i32>,
    ) -> Result<T, ReadError> {
        let key = format!("ethtool/{}/{what}", key_part(nic));
        self.root.ask(&key, || {
            let mut slot = self.exchange.borrow_mut();
            let exchange = match slot.take() {
                Some(open) => Ok(open),
                None => Exchange::open(),
            };
            exchange
                .and_then(|opened| live(slot.insert(opened)))
                .map_err(|errno| ReadError::from_errno(&key, errno))
        })
    }

    fn words<T>(&self, nic: &str, what: &str, command: u32) -> Result<T, ReadError>
    where
        T: WordStruct + Serialize + DeserializeOwned,
    {
        self.ask(nic, what, |x| {
            let answer = Reply(x.call(nic, &command.to_ne_bytes())?);
            let words = (1..=T::COUNT).map_while(|i| answer.u32(4 * i).ok());
            T::from_words(words).ok_or(libc::EIO)
        })
    }

    /// `ethtool -i`. **Source**: `ETHTOOL_GDRVINFO`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a device without driver information, such as loopback.
    pub fn driver_info(&self, nic: &str) -> Result<DriverInfo, ReadError> {
        self.ask(nic, "drvinfo", |x| {
            let answer = Reply(x.call(nic, &GDRVINFO.to_ne_bytes())?);
            Ok(DriverInfo {
                driver: answer.text(4, STRING)?,
                version: answer.text(36, STRING)?,
                fw_version: answer.text(68, STRING)?,
                bus_info: answer.text(100, STRING)?,
            })
        })
    }

    /// `ethtool -l`. **Source**: `ETHTOOL_GCHANNELS`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a driver without channels.
    pub fn channels(&self, nic: &str) -> Result<Channels, ReadError> {
        self.words(nic, "channels", GCHANNELS)
    }

    /// `ethtool -g`. **Source**: `ETHTOOL_GRINGPARAM`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a driver without rings.
    pub fn rings(&self, nic: &str) -> Result<Rings, ReadError> {
        self.words(nic, "rings", GRINGPARAM)
    }

    /// `ethtool -c`. **Source**: `ETHTOOL_GCOALESCE`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a driver without coalescing.
    pub fn coalesce(&self, nic: &str) -> Result<Coalesce, ReadError> {
        self.words(nic, "coalesce", GCOALESCE)
    }

    /// `ethtool -a`. **Source**: `ETHTOOL_GPAUSEPARAM`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a driver without flow control.
    pub fn pause(&self, nic: &str) -> Result<Pause, ReadError> {
        self.words(nic, "pause", GPAUSEPARAM)
    }

    /// `ethtool -k`, every bit with its name in the kernel's order. **Source**:
    /// `ETHTOOL_GFEATURES`, names `ETH_SS_FEATURES`.
    ///
    /// # Errors
    /// `EIO` when names and bits do not fit each other.
    pub fn features(&self, nic: &str) -> Result<Vec<Feature>, ReadError> {
        self.ask(nic, "features", |x| {
            let names = strings(x, nic, SS_FEATURES)?;
            let blocks = names.len().div_ceil(32);
            let request = words(&[GFEATURES, u32::try_from(blocks).map_err(|_| libc::EFBIG)?]);
            let answer = Reply(x.call(nic, &request)?);
            if (answer.u32(4)? as usize) < blocks {
                return Err(libc::EIO);
            }
            let feature = |(bit, name): (usize, String)| {
                let word = |n: usize| {
                    answer.u32(8 + 16 * (bit / 32) + 4 * n).map(|w| w >> (bit % 32) & 1 == 1)
                };
                Ok(Feature {
                    name,
                    available: word(0)?,
                    requested: word(1)?,
                    active: word(2)?,
                    never_changed: word(3)?,
                    bit: u32::try_from(bit).map_err(|_| libc::EFBIG)?,
                })
            };
            names.into_iter().enumerate().filter(|(_, n)| !n.is_empty()).map(feature).collect()
        })
    }

    /// `ethtool -x` of the default context. **Source**: `ETHTOOL_GRSSH` twice (sizes, then
    /// content), `ETHTOOL_GRXRINGS`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a driver without receive-side scaling.
    pub fn rss(&self, nic: &str) -> Result<Rss, ReadError> {
        self.ask(nic, "rss", |x| {
            again(|| rss(x, nic)).map(|rss| Rss {
                rx_rings: x
                    .call(nic, &rxnfc(GRXRINGS, 0))
                    .and_then(|answer| Reply(answer).u64(8))
                    .ok(),
                ..rss
            })
        })
    }

    /// `ethtool -n X rx-flow-hash TYPE` for TCP and UDP over IPv4 and IPv6. **Source**:
    /// `ETHTOOL_GRXFH`.
    ///
    /// # Errors
    /// The first refusal, if the driver answers for no flow type.
    pub fn hash_fields(&self, nic: &str) -> Result<HashFields, ReadError> {
        self.ask(nic, "rxfh", |x| {
            let mut fields = BTreeMap::new();
            let mut refused = None;
            for (name, flow) in FLOW_TYPES {
                match x.call(nic, &rxnfc(GRXFH, flow)).and_then(|answer| Reply(answer).u64(8)) {
                    Ok(bits) => drop(fields.insert(name.to_owned(), bits)),
                    Err(errno) => drop(refused.get_or_insert(errno)),
                }
            }
            match refused {
                Some(errno) if fields.is_empty() => Err(errno),
                _ => Ok(HashFields { fields }),
            }
        })
    }

    /// How many rules `ethtool -n` lists. **Source**: `ETHTOOL_GRXCLSRLCNT`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a driver without flow rules.
    pub fn rule_count(&self, nic: &str) -> Result<RuleCount, ReadError> {
        self.ask(nic, "rxclsrlcnt", |x| {
            let answer = Reply(x.call(nic, &rxnfc(GRXCLSRLCNT, 0))?);
            Ok(RuleCount { rule_cnt: answer.u32(RXNFC_RULE_CNT)? })
        })
    }

    /// `ethtool -S`. **Source**: `ETHTOOL_GSTATS`, names `ETH_SS_STATS`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a driver without statistics; `EAGAIN` when their number kept changing.
    pub fn stats(&self, nic: &str) -> Result<Stats, ReadError> {
        self.ask(nic, "stats", |x| {
            again(|| {
                let names = strings(x, nic, SS_STATS)?;
                let count = u32::try_from(names.len()).map_err(|_| libc::EFBIG)?;
                let answer = Reply(x.call(nic, &words(&[GSTATS, count]))?);
                if answer.u32(4)? != count {
                    return Err(libc::EAGAIN);
                }
                let value = |(i, name)| Ok((name, answer.u64(8 + 8 * i)?));
                Ok(Stats {
                    stats: names.into_iter().enumerate().map(value).collect::<Result<_, i32>>()?,
                })
            })
        })
    }

    /// Speed and duplex as the driver reports them, also while sysfs returns EINVAL because the
    /// interface is down.
    ///
    /// **Source**: `ETHTOOL_GLINKSETTINGS`; its first answer only has the number of words in its
    /// masks.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a driver without link settings.
    pub fn link_settings(&self, nic: &str) -> Result<LinkSettings, ReadError> {
        self.ask(nic, "link", |x| {
            let mut request = words(&[GLINKSETTINGS, 0]);
            request.resize(48, 0);
            let wanted = Reply(x.call(nic, &request)?).u8(15)?.cast_signed();
            if wanted < 0 {
                if let Some(size) = request.get_mut(15) {
                    *size = wanted.unsigned_abs();
                }
                let answer = Reply(x.call(nic, &request)?);
                return Ok(LinkSettings {
                    speed: answer.u32(4)?,
                    duplex: answer.u8(8)?,
                    port: answer.u8(9)?,
                    autoneg: answer.u8(11)?,
                });
            }
            Err(libc::EIO)
        })
    }
}

/// Repeats what answers `EAGAIN` because something changed between two calls.
fn again<T>(mut ask: impl FnMut() -> Result<T, i32>) -> Result<T, i32> {
    for _ in 1..TRIES {
        match ask() {
            Err(libc::EAGAIN) => {}
            done => return done,
        }
    }
    ask()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

/// Size of `struct ethtool_rxnfc` without rule locations, and where its count of rules is.
const RXNFC: usize = 192;
const RXNFC_RULE_CNT: usize = 184;

fn rxnfc(command: u32, flow_type: u32) -> Vec<u8> {
    let mut request = words(&[command, flow_type]);
    request.resize(RXNFC, 0);
    request
}

/// The names of a string set; `EOPNOTSUPP` if the driver has none.
fn strings(x: &mut Exchange, nic: &str, set: u32) -> Result<Vec<String>, i32> {
    let bit = 1u64 << set;
    let mut request = words(&[GSSET_INFO, 0]);
    request.extend(bit.to_ne_bytes());
    let answer = Reply(x.call(nic, &request)?);
    if answer.u64(8)? & bit == 0 {
        return Err(libc::EOPNOTSUPP);
    }
    let count = answer.u32(16)?;
    if 12 + count as usize * STRING > ROOM {
        return Err(libc::EFBIG);
    }
    let answer = Reply(x.call(nic, &words(&[GSTRINGS, set, count]))?);
    if answer.u32(8)? != count {
        return Err(libc::EAGAIN);
    }
    (0..count as usize).map(|i| answer.text(12 + STRING * i, STRING)).collect()
}

fn rss(x: &mut Exchange, nic: &str) -> Result<Rss, i32> {
    const HEAD: usize = 24;
    let sizes = Reply(x.call(nic, &words(&[GRSSH, 0, 0, 0, 0, 0]))?);
    let (indir, key) = (sizes.u32(8)?, sizes.u32(12)?);
    if HEAD + indir as usize * 4 + key as usize > ROOM {
        return Err(libc::EFBIG);
    }
    // The kernel refuses sizes that are no longer the device's with EINVAL.
    let request = words(&[GRSSH, 0, indir, key, 0, 0]);
    let answer = Reply(x.call(nic, &request).map_err(|errno| match errno {
        libc::EINVAL => libc::EAGAIN,
        errno => errno,
    })?);
    if (answer.u32(8)?, answer.u32(12)?) != (indir, key) {
        return Err(libc::EAGAIN);
    }
    Ok(Rss {
        indir: (0..indir as usize).map(|i| answer.u32(HEAD + 4 * i)).collect::<Result<_, _>>()?,
        key: answer.bytes(HEAD + 4 * indir as usize, key as usize)?.to_vec(),
        hfunc: answer.u8(16)?,
        rx_rings: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loopback is everywhere and needs no privilege.
    #[test]
    fn loopback_has_features_and_no_driver() {
        let root = Root::live();
        let ethtool = Ethtool::new(&root);
        let features = ethtool.features("lo").unwrap();
        let gro = features.iter().find(|f| f.name == "rx-gro").unwrap();
        assert!(gro.available);
        let highdma = features.iter().find(|f| f.name == "highdma").unwrap();
        assert!(highdma.active, "every bit has its own name");
        let errno = |e: ReadError| match e {
            ReadError::Failed { errno, .. } => errno,
            other => panic!("{other}"),
        };
        assert_eq!(errno(ethtool.stats("lo").unwrap_err()), libc::EOPNOTSUPP);
        assert_eq!(errno(ethtool.rss("lo").unwrap_err()), libc::EOPNOTSUPP);
        let gone = ethtool.channels("no-such-nic").unwrap_err();
        assert!(matches!(gone, ReadError::Absent { .. }), "{gone}");
    }

    #[test]
    fn what_changes_between_two_calls_is_asked_again_a_bounded_number_of_times() {
        let mut calls = 0;
        let changing: Result<(), i32> = again(|| {
            calls += 1;
            Err(libc::EAGAIN)
        });
        assert_eq!((changing, calls), (Err(libc::EAGAIN), TRIES));
        let mut calls = 0;
        let settled = again(|| {
            calls += 1;
            if calls == 1 { Err(libc::EAGAIN) } else { Ok(calls) }
        });
        assert_eq!(settled, Ok(2));
    }
}
