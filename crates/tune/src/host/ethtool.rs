//! Settings written through the ioctl `SIOCETHTOOL`. The probe crate reads them.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use probe::ask::ethtool::{
    Ethtool,
    answers::{Channels, Coalesce, Pause, Rings},
};

use super::Host;
use crate::TuneError;

// Commands of include/uapi/linux/ethtool.h.
const SCOALESCE: u32 = 0x0f;
const SRINGPARAM: u32 = 0x11;
const SPAUSEPARAM: u32 = 0x13;
const SRXFH: u32 = 0x2a;
const SFEATURES: u32 = 0x3b;
const SCHANNELS: u32 = 0x3d;
const SRSSH: u32 = 0x47;

/// Flow types and the kernel's number for each.
const FLOW_TYPES: [(&str, u32); 4] = [("tcp4", 1), ("udp4", 2), ("tcp6", 5), ("udp6", 6)];

impl Host {
    pub fn ethtool(&self) -> Ethtool<'_> {
        Ethtool::new(&self.root)
    }

    /// `ethtool -G`.
    ///
    /// # Errors
    /// As the driver answered.
    pub fn set_rings(&self, nic: &str, r: &Rings) -> Result<(), TuneError> {
        let words = [
            SRINGPARAM,
            r.rx_max_pending,
            r.rx_mini_max_pending,
            r.rx_jumbo_max_pending,
            r.tx_max_pending,
            r.rx_pending,
            r.rx_mini_pending,
            r.rx_jumbo_pending,
            r.tx_pending,
        ];
        self.ethtool_set(nic, "-G", &words)
    }

    /// `ethtool -L`.
    ///
    /// # Errors
    /// As the driver answered.
    pub fn set_channels(&self, nic: &str, c: &Channels) -> Result<(), TuneError> {
        let words = [
            SCHANNELS,
            c.max_rx,
            c.max_tx,
            c.max_other,
            c.max_combined,
            c.rx_count,
            c.tx_count,
            c.other_count,
            c.combined_count,
        ];
        self.ethtool_set(nic, "-L", &words)
    }

    /// `ethtool -C`.
    ///
    /// # Errors
    /// As the driver answered; `EINVAL` for a parameter that it does not have.
    pub fn set_coalesce(&self, nic: &str, c: &Coalesce) -> Result<(), TuneError> {
        let words = [
            SCOALESCE,
            c.rx_coalesce_usecs,
            c.rx_max_coalesced_frames,
            c.rx_coalesce_usecs_irq,
            c.rx_max_coalesced_frames_irq,
            c.tx_coalesce_usecs,
            c.tx_max_coalesced_frames,
            c.tx_coalesce_usecs_irq,
            c.tx_max_coalesced_frames_irq,
            c.stats_block_coalesce_usecs,
            c.use_adaptive_rx_coalesce,
            c.use_adaptive_tx_coalesce,
            c.pkt_rate_low,
            c.rx_coalesce_usecs_low,
            c.rx_max_coalesced_frames_low,
            c.tx_coalesce_usecs_low,
            c.tx_max_coalesced_frames_low,
            c.pkt_rate_high,
            c.rx_coalesce_usecs_high,
            c.rx_max_coalesced_frames_high,
            c.tx_coalesce_usecs_high,
            c.tx_max_coalesced_frames_high,
            c.rate_sample_interval,
        ];
        self.ethtool_set(nic, "-C", &words)
    }

    /// `ethtool -A`.
    ///
    /// # Errors
    /// As the driver answered.
    pub fn set_pause(&self, nic: &str, p: &Pause) -> Result<(), TuneError> {
        self.ethtool_set(nic, "-A", &[SPAUSEPARAM, p.autoneg, p.rx_pause, p.tx_pause])
    }

    /// `ethtool -K` of one feature: sets the wanted state. A feature it depends on may keep it from
    /// becoming active.
    ///
    /// # Errors
    /// As the driver answered.
    pub fn set_feature(&self, nic: &str, name: &str, on: bool) -> Result<(), TuneError> {
        let all = self.ethtool().features(nic).map_err(|e| TuneError::read(&e))?;
        let Some(f) = all.iter().find(|f| f.name == name) else {
            return Err(TuneError::Absent(format!("{nic}: this kernel has no feature {name}")));
        };
        let block = f.bit / 32;
        // The kernel takes exactly as many blocks as it has.
        let blocks = all.iter().map(|f| f.bit / 32 + 1).max().unwrap_or(1);
        let mut words = vec![SFEATURES, blocks];
        for n in 0..blocks {
            let bit = if n == block { 1 << (f.bit % 32) } else { 0 };
            words.extend([bit, if on { bit } else { 0 }]);
        }
        self.ethtool_set(nic, "-K", &words)
    }

    /// `ethtool -X … weight`: sets the default context's table; key and function stay. An empty
    /// table is `default`: all queues in turn, and the kernel forgets that the table was set.
    ///
    /// # Errors
    /// As the driver answered.
    pub fn set_rss_table(&self, nic: &str, table: &[u32]) -> Result<(), TuneError> {
        let size = u32::try_from(table.len()).unwrap_or(u32::MAX);
        let mut words = vec![SRSSH, 0, size, 0, 0, 0];
        words.extend(table);
        self.ethtool_set(nic, "-X", &words)
    }

    /// `ethtool -X … hkey`: sets the default context's key; table and function stay.
    ///
    /// # Errors
    /// As the driver answered.
    pub fn set_rss_key(&self, nic: &str, key: &[u8]) -> Result<(), TuneError> {
        let size = u32::try_from(key.len()).unwrap_or(u32::MAX);
        // `ETH_RXFH_INDIR_NO_CHANGE`
        let mut words = vec![SRSSH, 0, u32::MAX, size, 0, 0];
        words.extend(key.chunks(4).map(|c| {
            let mut word = [0; 4];
            for (to, from) in word.iter_mut().zip(c) {
                *to = *from;
            }
            u32::from_ne_bytes(word)
        }));
        self.ethtool_set(nic, "-X", &words)
    }

    /// `ethtool -N NIC rx-flow-hash FLOW`, as `RXH_…` bits.
    ///
    /// # Errors
    /// As the driver answered.
    pub fn set_hash_fields(&self, nic: &str, flow: &str, bits: u64) -> Result<(), TuneError> {
        let number = FLOW_TYPES.iter().find(|(name, _)| *name == flow).map(|(_, n)| *n);
        let number = number.ok_or_else(|| TuneError::Usage(format!("{flow}: no flow type")))?;
        let low = bits.to_ne_bytes();
        let half = |at: usize| {
            low.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
        };
        // `struct ethtool_rxnfc` is 192 bytes.
        let mut words = vec![SRXFH, number, half(0), half(4)];
        words.resize(48, 0);
        self.ethtool_set(nic, "-N", &words)
    }

    /// Sends one `set` command: the kernel reads the words and writes none back.
    fn ethtool_set(&self, nic: &str, what: &str, words: &[u32]) -> Result<(), TuneError> {
        let what = format!("ethtool {what} {nic}");
        if !self.is_live() {
            return Err(TuneError::Environment(format!(
                "{what}: a driver's setting; a folder has no driver"
            )));
        }
        let errno = |code| TuneError::written(&what, code);
        let last = || std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        let socket =
            UnixDatagram::unbound().map_err(|e| errno(e.raw_os_error().unwrap_or(libc::EIO)))?;
        // SAFETY: all zeroes is a valid `ifreq`.
        let mut ifr: libc::ifreq = unsafe { std::mem::zeroed() };
        if nic.is_empty() || nic.len() >= ifr.ifr_name.len() || nic.contains('\0') {
            return Err(errno(libc::ENODEV));
        }
        for (to, from) in ifr.ifr_name.iter_mut().zip(nic.bytes()) {
            *to = from as libc::c_char;
        }
        // Some drivers adjust the structure in place before the kernel is done with it.
        let mut data = words.to_vec();
        data.resize(words.len() + 64, 0);
        ifr.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
        // SAFETY: `ifr` and `data` outlive the call; a `set` command reads `data` only.
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut ifr) };
        if done < 0 { Err(errno(last())) } else { Ok(()) }
    }
}
