//! Settings that only the ioctl `SIOCETHTOOL` takes. Reading them is probe's.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use probe::ask::ethtool::{
    Ethtool,
    answers::{Channels, Rings},
};

use super::Host;
use crate::TuneError;

// Commands of include/uapi/linux/ethtool.h.
const SRINGPARAM: u32 = 0x11;
const SCHANNELS: u32 = 0x3d;

impl Host {
    /// Asks about interfaces.
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

    /// One `set` command: the kernel reads the words and writes none back.
    fn ethtool_set(&self, nic: &str, what: &str, words: &[u32]) -> Result<(), TuneError> {
        let what = format!("ethtool {what} {nic}");
        if !self.is_live() {
            return Err(TuneError::Environment(format!(
                "{what}: a driver's setting; a folder has no driver"
            )));
        }
        let errno = |code| TuneError::written(&what, code);
        let last = || std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(errno(last()));
        }
        // SAFETY: the kernel just gave us this descriptor and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
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
