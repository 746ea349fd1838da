//! The name of an archive.

use std::path::PathBuf;

use crate::Root;

/// `db1-20261122-143007.tar.zst`, in UTC; what is redacted names no host.
pub fn archive_name(redacted: bool) -> PathBuf {
    let host = Root::live().word("/proc/sys/kernel/hostname").into_known().unwrap_or_default();
    let host = if redacted { "" } else { &host };
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let host: String = host.trim_start_matches(['.', '-']).chars().map(plain).collect();
    let host = if host.is_empty() { "snapshot" } else { &host };
    PathBuf::from(format!("{host}-{}.tar.zst", utc_now()))
}

/// This moment, `20261122-143007`, in UTC.
fn utc_now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.map_or(0, |s| libc::time_t::try_from(s.as_secs()).unwrap_or(0));
    // SAFETY: all zeros are a `tm`; gmtime_r writes one, or nothing for a year that no `int` holds.
    let t = unsafe {
        let mut t: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&raw const seconds, &raw mut t);
        t
    };
    let (year, month) = (t.tm_year + 1900, t.tm_mon + 1);
    format!("{year:04}{month:02}{:02}-{:02}{:02}{:02}", t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec)
}
