//! Defaults that the kernel computes at boot, from memory, page size, tick rate, hash sizes and its
//! build.
//!
//! The kernel's memory at boot is not exactly that of `/proc/meminfo` now, so a computed default is
//! approximate. A present value with the kernel's proportions that is close to it counts as the
//! default.

use model::sysctls::Computed;
use parse::kconfig::KernelConfig;

/// What defaults are computed from; `None` where the host does not say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Basis<'a> {
    pub version: Option<(u32, u32)>,
    /// Whether the vendor carries later changes back into an older version, so that the
    /// number says only "at least".
    pub backports: bool,
    /// Memory of the host in bytes.
    pub memory: Option<u64>,
    /// Bytes of a page.
    pub page: Option<u64>,
    /// Timer ticks per second.
    pub hz: Option<u32>,
    /// Entries of TCP's established hash, as the kernel says (since 6.1).
    pub ehash: Option<u64>,
    pub nodes: Option<usize>,
    /// How the kernel was built.
    pub config: Option<&'a KernelConfig>,
}

/// One default that this kernel may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// In the kernel's own form.
    pub text: String,
    /// Whether the value in force is this default.
    pub in_force: bool,
}

/// The possible defaults of this kernel, given the present value; or which input is missing.
pub type Formula = fn(&Basis<'_>, &str) -> Result<Vec<Candidate>, String>;

/// What computes a default.
pub fn of(computed: Computed) -> Formula {
    match computed {
        Computed::BudgetUsecs => budget_usecs,
        Computed::CongestionControl => congestion_control,
        Computed::ConntrackBuckets => conntrack_buckets,
        Computed::ConntrackMax => conntrack_max,
        Computed::DefaultQdisc => default_qdisc,
        Computed::EmptyMask => empty_mask,
        Computed::FileMax => file_max,
        Computed::MaxOrphans => max_orphans,
        Computed::MaxSynBacklog => max_syn_backlog,
        Computed::MaxTwBuckets => max_tw_buckets,
        Computed::NumaBalancing => numa_balancing,
        Computed::Page => page,
        Computed::TcpMem => tcp_mem,
        Computed::TcpRmem => tcp_rmem,
        Computed::TcpWmem => tcp_wmem,
        Computed::UdpMem => udp_mem,
    }
}

type Candidates = Result<Vec<Candidate>, String>;

/// Folds the blanks of a value.
fn exact(text: String, live: &str) -> Candidate {
    Candidate { in_force: text == live, text }
}

fn missing<T>(what: &str) -> impl FnOnce() -> Result<T, String> + '_ {
    move || Err(format!("the default depends on {what}, which is not known"))
}

impl Basis<'_> {
    /// Whether this kernel is at least this version; `None` where unknown.
    pub fn at_least(&self, version: (u32, u32)) -> Option<bool> {
        match self.version? {
            v if v >= version => Some(true),
            _ if self.backports => None,
            _ => Some(false),
        }
    }

    /// `before` or `since` by version; both where the version is unknown.
    fn by_version<T>(&self, version: (u32, u32), before: T, since: T) -> Vec<T> {
        match self.at_least(version) {
            Some(true) => vec![since],
            Some(false) => vec![before],
            None => vec![before, since],
        }
    }

    fn memory(&self) -> Result<u64, String> {
        self.memory.map_or_else(missing("the size of memory"), Ok)
    }

    fn page_size(&self) -> Result<u64, String> {
        self.page.filter(|&p| p > 0).map_or_else(missing("the page size"), Ok)
    }

    /// The least buffer: a page since 6.0, before 4096 (`SK_MEM_QUANTUM`).
    fn quantum(&self) -> Result<Vec<u64>, String> {
        if self.page == Some(4096) {
            return Ok(vec![4096]);
        }
        let page = self.page_size()?;
        Ok(self.by_version((6, 0), 4096, page))
    }

    /// Entries of TCP's established hash: one for 128 KiB of memory, to the next power of two,
    /// at most 2^19. `net/ipv4/tcp.c` `tcp_init`.
    fn ehash(&self) -> Result<u64, String> {
        if let Some(n) = self.ehash {
            return Ok(n);
        }
        let slots = self.memory()? >> 17;
        let low = (slots - slots / 16).next_power_of_two().min(1 << 19);
        let high = (slots + slots / 16).next_power_of_two().min(1 << 19);
        if low == high { Ok(low) } else { missing("the exact memory at boot")() }
    }
}

/// Whether a value in force is near what memory makes of it: the kernel counted a little less
/// than all, a machine may have been given more since.
fn close_to(live: u64, computed: u64) -> bool {
    live >= computed / 4 * 3 && live <= computed + computed / 20
}

fn numbers(live: &str) -> Option<[u64; 3]> {
    let n: Vec<u64> = live.split(' ').map(|w| w.parse().ok()).collect::<Option<_>>()?;
    n.try_into().ok()
}

/// Three page counts around `memory / share`.
fn page_triplet(b: &Basis<'_>, live: &str, share: u64) -> Candidates {
    let limit = (b.memory()? / b.page_size()? / share).max(128);
    let around = |l: u64| [l / 4 * 3, l, l / 4 * 3 * 2];
    let in_force = numbers(live).is_some_and(|n| n == around(n[1]) && close_to(n[1], limit));
    let text =
        if in_force { live.to_owned() } else { around(limit).map(|n| n.to_string()).join(" ") };
    Ok(vec![Candidate { text, in_force }])
}

fn tcp_mem(b: &Basis<'_>, live: &str) -> Candidates {
    page_triplet(b, live, 16)
}

fn udp_mem(b: &Basis<'_>, live: &str) -> Candidates {
    page_triplet(b, live, 8)
}

/// Minimum, default and maximum of a socket buffer with a maximum capped by memory.
fn buffer(
    b: &Basis<'_>,
    live: &str,
    default: &[u64],
    caps: &[u64],
    at_least: fn(u64) -> u64,
) -> Candidates {
    let share = b.memory()? / 128;
    let mut all = Vec::new();
    for &min in &b.quantum()? {
        for &mid in default {
            for &cap in caps {
                let max = cap.min(share).max(at_least(mid));
                let fits = |n: [u64; 3]| {
                    // The cap counts where memory does not decide; else memory, nearly.
                    n[0] == min
                        && n[1] == mid
                        && (n[2] == max || n[2] < cap && close_to(n[2], share))
                };
                let in_force = numbers(live).is_some_and(fits);
                let text = if in_force { live.to_owned() } else { format!("{min} {mid} {max}") };
                all.push(Candidate { text, in_force });
            }
        }
    }
    Ok(all)
}

fn tcp_rmem(b: &Basis<'_>, live: &str) -> Candidates {
    // 4.20 changed the default; the 4.19 stable series got it too, some time.
    let default = match b.version {
        Some((4, 19)) => vec![87_380, 131_072],
        _ => b.by_version((4, 20), 87_380, 131_072),
    };
    let caps = b.by_version((6, 16), 6 << 20, 32 << 20);
    buffer(b, live, &default, &caps, |mid| mid)
}

fn tcp_wmem(b: &Basis<'_>, live: &str) -> Candidates {
    buffer(b, live, &[16 << 10], &[4 << 20], |_| 64 << 10)
}

fn page(b: &Basis<'_>, live: &str) -> Candidates {
    Ok(b.quantum()?.into_iter().map(|q| exact(q.to_string(), live)).collect())
}

fn max_orphans(b: &Basis<'_>, live: &str) -> Candidates {
    Ok(vec![exact((b.ehash()? / 2).to_string(), live)])
}

fn max_tw_buckets(b: &Basis<'_>, live: &str) -> Candidates {
    max_orphans(b, live)
}

fn max_syn_backlog(b: &Basis<'_>, live: &str) -> Candidates {
    let ehash = b.ehash()?;
    let shares = b.by_version((5, 4), 256, 128);
    Ok(shares.into_iter().map(|s| exact((ehash / s).max(128).to_string(), live)).collect())
}

/// A tenth of memory in KiB; systemd raises it to the largest number there is.
fn file_max(b: &Basis<'_>, live: &str) -> Candidates {
    let computed = (b.memory()? / 1024 / 10).max(8192);
    let in_force = live.parse().is_ok_and(|n| close_to(n, computed));
    let text = if in_force { live.to_owned() } else { computed.to_string() };
    Ok(vec![Candidate { text, in_force }])
}

fn budget_usecs(b: &Basis<'_>, live: &str) -> Candidates {
    let two_ticks =
        |hz: u32| 2_000_000_u32.checked_div(hz).map_or_else(missing("the tick rate"), Ok);
    // The stable series of 2020 got the change too, so before 5.7 both are possible.
    let sure = b.at_least((5, 7)) == Some(true);
    let mut all = if sure { vec![] } else { vec![2000] };
    match b.hz {
        Some(hz) => all.push(two_ticks(hz)?),
        None => return missing("the kernel's tick rate (CONFIG_HZ)")(),
    }
    all.dedup();
    Ok(all.into_iter().map(|us| exact(us.to_string(), live)).collect())
}

/// Buckets by memory: 5.15 made four times as many, and the maximum equal to them
/// (d532bcd0b269, also carried back into some stable series).
fn buckets(b: &Basis<'_>) -> Result<Vec<(u64, u64)>, String> {
    const GIB: u64 = 1 << 30;
    let memory = b.memory()?;
    let page = b.page_size()?;
    let table = |large: u64, middle: u64, least: u64| {
        let n = if memory > 4 * GIB {
            large
        } else if memory > GIB {
            middle
        } else {
            (memory / 16_384 / 8).max(least)
        };
        // The table fills whole pages of 8-byte heads.
        n.next_multiple_of((page / 8).max(1))
    };
    let (old, new) = ((table(65_536, 16_384, 32), 4), (table(262_144, 65_536, 1024), 1));
    Ok(match b.version {
        Some(v) if !b.backports && v < (5, 4) => vec![old],
        Some(v) if v >= (5, 15) => vec![new],
        _ => vec![old, new],
    })
}

fn conntrack_buckets(b: &Basis<'_>, live: &str) -> Candidates {
    Ok(buckets(b)?.into_iter().map(|(n, _)| exact(n.to_string(), live)).collect())
}

fn conntrack_max(b: &Basis<'_>, live: &str) -> Candidates {
    Ok(buckets(b)?.into_iter().map(|(n, factor)| exact((n * factor).to_string(), live)).collect())
}

/// All zero, in as many digits as the value in force has.
fn empty_mask(_: &Basis<'_>, live: &str) -> Candidates {
    let text: String = if live.is_empty() {
        "0".into()
    } else {
        live.chars().map(|c| if c == ',' { c } else { '0' }).collect()
    };
    Ok(vec![exact(text, live)])
}

fn default_qdisc(b: &Basis<'_>, live: &str) -> Candidates {
    let config =
        b.config.map_or_else(missing("the kernel's build (CONFIG_DEFAULT_NET_SCH)"), Ok)?;
    // Without CONFIG_NET_SCH_DEFAULT the option is not there.
    Ok(vec![exact(config.get("DEFAULT_NET_SCH").unwrap_or("pfifo_fast").to_owned(), live)])
}

fn congestion_control(b: &Basis<'_>, live: &str) -> Candidates {
    let config =
        b.config.map_or_else(missing("the kernel's build (CONFIG_DEFAULT_TCP_CONG)"), Ok)?;
    Ok(vec![exact(config.get("DEFAULT_TCP_CONG").unwrap_or("cubic").to_owned(), live)])
}

/// Off on one node; on several as the kernel was built.
fn numa_balancing(b: &Basis<'_>, live: &str) -> Candidates {
    if b.nodes == Some(1) {
        return Ok(vec![exact("0".into(), live)]);
    }
    if b.nodes.is_none() {
        return missing("the number of NUMA nodes")();
    }
    let config = b
        .config
        .map_or_else(missing("the kernel's build (CONFIG_NUMA_BALANCING_DEFAULT_ENABLED)"), Ok)?;
    let on = config.yes("NUMA_BALANCING_DEFAULT_ENABLED");
    Ok(vec![exact(if on { "1" } else { "0" }.into(), live)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn basis(version: (u32, u32), memory: u64) -> Basis<'static> {
        Basis {
            version: Some(version),
            memory: Some(memory),
            page: Some(4096),
            hz: Some(250),
            nodes: Some(1),
            ..Basis::default()
        }
    }

    fn texts(c: Candidates) -> Vec<String> {
        c.unwrap().into_iter().map(|c| c.text).collect()
    }

    fn in_force(c: Candidates) -> bool {
        c.unwrap().iter().any(|c| c.in_force)
    }

    /// Values of a 6.18 host with 24,684,092 KiB, as it printed them.
    #[test]
    fn a_real_host_has_its_own_defaults() {
        let b = Basis { ehash: Some(262_144), ..basis((6, 18), 24_684_092 * 1024) };
        assert!(in_force(tcp_mem(&b, "287901 383868 575802")));
        assert!(in_force(udp_mem(&b, "575802 767736 1151604")));
        assert!(in_force(tcp_rmem(&b, "4096 131072 33554432")));
        assert!(in_force(tcp_wmem(&b, "4096 16384 4194304")));
        assert!(in_force(max_orphans(&b, "131072")));
        assert!(in_force(max_syn_backlog(&b, "2048")));
        assert!(in_force(file_max(&b, "2466177")));
        assert!(in_force(budget_usecs(&b, "8000")));
        assert!(in_force(conntrack_buckets(&b, "262144")));
        assert!(in_force(conntrack_max(&b, "262144")));
        assert!(in_force(empty_mask(&b, "0")));
        let without = Basis { ehash: None, ..b };
        assert_eq!(texts(max_orphans(&without, "1")), ["131072"]);
    }

    #[test]
    fn a_set_value_is_no_default() {
        let b = basis((6, 18), 24 * GIB);
        assert!(!in_force(tcp_mem(&b, "10000000 10000000 10000000")));
        assert!(!in_force(tcp_rmem(&b, "4096 87380 16777216")));
        assert_eq!(texts(tcp_rmem(&b, "4096 87380 16777216")), ["4096 131072 33554432"]);
        assert!(!in_force(file_max(&b, "65535")));
        assert!(!in_force(file_max(&b, "9223372036854775807")));
        assert_eq!(texts(tcp_mem(&b, "")), ["294912 393216 589824"]);
    }

    #[test]
    fn versions_decide_and_doubt_gives_both() {
        assert_eq!(texts(tcp_rmem(&basis((4, 18), 64 * GIB), "")), ["4096 87380 6291456"]);
        assert_eq!(texts(tcp_rmem(&basis((5, 10), 64 * GIB), "")), ["4096 131072 6291456"]);
        assert_eq!(tcp_rmem(&basis((4, 19), 64 * GIB), "").unwrap().len(), 2);
        assert_eq!(texts(conntrack_max(&basis((5, 3), 64 * GIB), "")), ["262144"]);
        assert_eq!(texts(conntrack_buckets(&basis((5, 3), 64 * GIB), "")), ["65536"]);
        assert_eq!(texts(conntrack_buckets(&basis((5, 15), 2 * GIB), "")), ["65536"]);
        assert_eq!(conntrack_buckets(&basis((5, 10), 64 * GIB), "").unwrap().len(), 2);
        assert_eq!(texts(budget_usecs(&basis((6, 1), GIB), "")), ["8000"]);
        assert_eq!(texts(budget_usecs(&basis((5, 4), GIB), "")), ["2000", "8000"]);
        let el = Basis { backports: true, ..basis((5, 14), 64 * GIB) };
        assert_eq!(el.at_least((5, 4)), Some(true));
        assert_eq!(el.at_least((6, 16)), None);
        assert_eq!(tcp_rmem(&el, "").unwrap().len(), 2);
    }

    #[test]
    fn small_memory_and_large_pages() {
        assert_eq!(texts(tcp_rmem(&basis((6, 18), GIB / 2), "")), ["4096 131072 4194304"]);
        assert!(in_force(tcp_rmem(&basis((6, 18), GIB / 2), "4096 131072 4059136")));
        assert_eq!(texts(tcp_wmem(&basis((6, 18), 4 << 20), "")), ["4096 16384 65536"]);
        let big = Basis { page: Some(65_536), ..basis((6, 6), 64 * GIB) };
        assert_eq!(texts(tcp_wmem(&big, "")), ["65536 16384 4194304"]);
        assert_eq!(texts(page(&Basis { version: Some((5, 10)), ..big }, "")), ["4096"]);
    }

    #[test]
    fn nothing_known_is_said() {
        let none = Basis::default();
        for f in [
            tcp_mem,
            tcp_rmem,
            max_orphans,
            file_max,
            budget_usecs,
            conntrack_max,
            numa_balancing,
            default_qdisc,
        ] {
            let why = f(&none, "1").unwrap_err();
            assert!(why.contains("depends on"), "{why}");
        }
    }
}
