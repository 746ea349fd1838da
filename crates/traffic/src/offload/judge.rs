//! Names the offload that lies. Each rule compares rows that differ by one offload: the one with it
//! is bad, the one without it is not.

use model::{
    Reading,
    measure::{
        BothNics, Direction, Offload, OffloadLie, OffloadNic, OffloadProbe as Probe, OffloadRow,
        OffloadRowVerdict as Verdict, PieceSize as Size,
    },
};

/// Lost pieces count from this share on: less is what a path may lose.
const LOSS: f64 = 0.05;
/// Fewer lost pieces or retransmits prove nothing.
const FEWEST: u64 = 3;
/// A row is worse than its contrast if its share is more than this many times as large.
const TIMES: f64 = 3.0;

/// The offloads that lie, in the order in which a packet meets them.
pub fn judge(rows: &[OffloadRow], nics: &BothNics) -> Vec<OffloadLie> {
    [Direction::Forward, Direction::Reverse]
        .into_iter()
        .flat_map(|direction| OneWay { rows, nics, direction }.lies())
        .collect()
}

/// Whether a lie shows in the content of pieces, and not only in their loss.
pub fn shows_in_content(lie: &OffloadLie, rows: &[OffloadRow]) -> bool {
    lie.against.iter().filter_map(|n| rows.get(*n)).any(|r| r.counts.wrong() > 0)
}

/// The judgement on a row for itself.
pub fn verdict(row: &OffloadRow) -> Verdict {
    let c = &row.counts;
    if row.not_run.is_some() {
        Verdict::NotRun
    } else if c.wrong() > 0 {
        Verdict::Wrong
    } else if c.missing > 0 || c.retransmits > 0 || c.stalled {
        Verdict::Lossy
    } else {
        Verdict::Right
    }
}

struct OneWay<'a> {
    rows: &'a [OffloadRow],
    nics: &'a BothNics,
    direction: Direction,
}

impl OneWay<'_> {
    fn find(&self, probe: Probe, size: Size) -> Option<usize> {
        self.rows.iter().position(|r| {
            (r.probe, r.size, r.direction) == (probe, size, self.direction) && r.not_run.is_none()
        })
    }

    fn row(&self, at: usize) -> Option<&OffloadRow> {
        self.rows.get(at)
    }

    /// Share of a row's pieces that are wrong, lost or had to be sent again; 0 for no such row.
    fn share(&self, at: Option<usize>) -> f64 {
        let Some(row) = at.and_then(|n| self.row(n)) else { return 0.0 };
        let c = &row.counts;
        let of = |n: u64, all: u64| n as f64 / all.max(1) as f64;
        let lost = if c.missing >= FEWEST { of(c.missing, c.sent) } else { 0.0 };
        let again = match c.retransmits >= FEWEST {
            true => of(c.batches_retransmitted, c.batches),
            false => 0.0,
        };
        let lost = if lost >= LOSS { lost } else { 0.0 };
        // A pause may look like a loss to TCP: half of the writes must have needed it.
        let again = if again >= 0.5 || c.stalled { again.max(LOSS) } else { 0.0 };
        of(c.wrong(), c.sent) + lost.max(again)
    }

    /// Whether the row is worse than each of its contrasts.
    fn worse(&self, row: usize, contrast: &[Option<usize>]) -> bool {
        let most = contrast.iter().map(|c| self.share(*c)).fold(0.0, f64::max);
        self.share(Some(row)) > TIMES * most
    }

    fn lie(
        &self,
        offload: Offload,
        against: Vec<usize>,
        contrast: Vec<Option<usize>>,
    ) -> OffloadLie {
        let sends =
            matches!(offload, Offload::TxChecksum | Offload::Tso | Offload::Uso | Offload::Gso);
        let at_local = sends == (self.direction == Direction::Forward);
        let (end, nic) = match (offload, at_local) {
            (Offload::Path, _) => ("between", None),
            (_, true) => ("local", self.nics.local.known()),
            (_, false) => ("peer", self.nics.peer.known()),
        };
        let software = |feature: &[&str]| {
            nic.is_some_and(|n| {
                let on = |f: &&str| n.features.get(*f).copied();
                feature.iter().all(|f| on(f) == Some(false))
            })
        };
        let offload = match offload {
            Offload::Tso if software(&["tx-tcp-segmentation", "tx-tcp6-segmentation"]) => {
                Offload::Gso
            }
            Offload::Uso if software(&["tx-udp-segmentation"]) => Offload::Gso,
            other => other,
        };
        let mut contrast: Vec<usize> = contrast.into_iter().flatten().collect();
        contrast.sort_unstable();
        contrast.dedup();
        OffloadLie {
            offload,
            end: end.into(),
            direction: self.direction,
            against,
            contrast,
            or: None,
            command: nic.and_then(|nic| command(offload, nic)),
        }
    }

    fn lies(&self) -> Vec<OffloadLie> {
        let mut lies = vec![];
        lies.extend(self.receive_checksum());
        if let Some(path) = self.path() {
            // Each way of sending is damaged: nothing is left to compare an offload with.
            lies.insert(0, path);
            return lies;
        }
        lies.extend(self.transmit_checksum());
        let merge = self.merge(&UDP_BURSTS, Probe::UdpAlone, Offload::UdpMerge);
        match merge {
            Some(lie) => lies.push(lie),
            None => lies.extend(self.udp_segmentation()),
        }
        let merge = self.merge(&[Probe::TcpBurst], Probe::TcpAlone, Offload::TcpMerge);
        match merge {
            Some(lie) => lies.push(lie),
            None => lies.extend(self.tcp_segmentation()),
        }
        lies
    }

    /// Rows of a probe whose content was wrong.
    fn wrong(&self, probe: Probe) -> Vec<usize> {
        let all = [Size::Small, Size::Large].map(|size| self.find(probe, size));
        let wrong = |n: &usize| self.row(*n).is_some_and(|r| r.counts.wrong() > 0);
        all.into_iter().flatten().filter(wrong).collect()
    }

    /// Datagrams without a checksum come damaged, one at a time.
    fn path(&self) -> Option<OffloadLie> {
        let against = self.wrong(Probe::UdpUnsummed);
        (!against.is_empty()).then(|| self.lie(Offload::Path, against, vec![]))
    }

    /// A datagram whose checksum does not fit was delivered.
    fn receive_checksum(&self) -> Option<OffloadLie> {
        let against = [self.wrong(Probe::UdpBadSum), self.wrong(Probe::UdpKernelSum)].concat();
        (!against.is_empty()).then(|| self.lie(Offload::RxChecksum, against, vec![]))
    }

    /// The device's checksum fails where the kernel's does not.
    fn transmit_checksum(&self) -> Option<OffloadLie> {
        let (mut against, mut contrast) = (vec![], vec![]);
        for (probe, size) in [Probe::UdpAlone, Probe::TcpAlone]
            .into_iter()
            .flat_map(|p| [(p, Size::Small), (p, Size::Large)])
        {
            let Some(row) = self.find(probe, size) else { continue };
            let kernel = self.find(Probe::UdpKernelSum, size);
            // TCP alone has no other proof than the receiver's count of wrong checksums.
            let proven = probe == Probe::UdpAlone
                || self
                    .row(row)
                    .is_some_and(|r| r.checksum_errors >= FEWEST || r.counts.damaged > 0);
            if proven && self.worse(row, &[kernel]) {
                against.push(row);
                contrast.push(kernel);
            }
        }
        let tcp_only =
            against.iter().all(|n| self.row(*n).is_some_and(|r| r.probe == Probe::TcpAlone));
        (!against.is_empty()).then(|| OffloadLie {
            // The kernel sums no TCP segment by itself where the device can.
            or: tcp_only.then_some(Offload::Path),
            ..self.lie(Offload::TxChecksum, against, contrast)
        })
    }

    /// Packets back to back fail where single ones do not. Loss alone must hit only one of the bursts
    /// that a receiver may merge and of those that it must not: a short queue drops both.
    fn merge(&self, bursts: &[Probe], alone: Probe, offload: Offload) -> Option<OffloadLie> {
        let (mut against, mut contrast) = (vec![], vec![]);
        let singles = [Size::Small, Size::Large].map(|size| self.find(alone, size));
        for probe in bursts {
            let rising = self.find(*probe, Size::Rising);
            for size in [Size::Small, Size::Large, Size::Rising] {
                let Some(row) = self.find(*probe, size) else { continue };
                let content = self.row(row).is_some_and(|r| r.counts.wrong() > 0);
                let mut refs = match size {
                    Size::Rising => singles.to_vec(),
                    _ => vec![self.find(alone, size)],
                };
                match (content, size) {
                    (true, _) => {}
                    // As many, and more bytes.
                    (false, Size::Rising) => refs.push(self.find(*probe, Size::Large)),
                    (false, _) => refs.push(rising),
                }
                if self.worse(row, &refs) {
                    against.push(row);
                    contrast.extend(refs);
                }
            }
        }
        (!against.is_empty()).then(|| self.lie(offload, against, contrast))
    }

    fn udp_segmentation(&self) -> Option<OffloadLie> {
        let ways =
            [(Probe::UdpSegmented, Probe::UdpBurst), (Probe::UdpSegmentedGro, Probe::UdpBurstGro)];
        let (mut against, mut contrast) = (vec![], vec![]);
        for (probe, burst) in ways {
            for size in [Size::Small, Size::Large] {
                let (Some(row), once) = (self.find(probe, size), self.find(burst, size)) else {
                    continue;
                };
                if self.worse(row, &[once]) {
                    against.push(row);
                    contrast.push(once);
                }
            }
        }
        let merged = |probe: Probe| {
            let sizes = [Size::Small, Size::Large].map(|s| self.find(probe, s));
            sizes
                .into_iter()
                .flatten()
                .any(|n| self.row(n).is_some_and(|r| r.counts.received_merged > 0))
        };
        // Merged only where they were sent as one: the bursts did not try the merging.
        let untried = merged(Probe::UdpSegmentedGro) && !merged(Probe::UdpBurstGro);
        (!against.is_empty()).then(|| OffloadLie {
            or: untried.then_some(Offload::UdpMerge),
            ..self.lie(Offload::Uso, against, contrast)
        })
    }

    fn tcp_segmentation(&self) -> Option<OffloadLie> {
        let row = self.find(Probe::TcpBulk, Size::Large)?;
        let contrast = vec![self.find(Probe::TcpBurst, Size::Large)];
        self.worse(row, &contrast).then(|| self.lie(Offload::Tso, vec![row], contrast))
    }
}

const UDP_BURSTS: [Probe; 2] = [Probe::UdpBurst, Probe::UdpBurstGro];

/// The command that switches an offload off.
fn command(offload: Offload, nic: &OffloadNic) -> Option<String> {
    let on = |feature: &str| nic.features.get(feature).copied().unwrap_or(false);
    let what = match offload {
        Offload::TxChecksum => "tx off",
        Offload::RxChecksum => "rx off",
        Offload::Tso => "tso off",
        Offload::Uso => "tx-udp-segmentation off",
        Offload::Gso => "gso off",
        Offload::TcpMerge | Offload::UdpMerge if on("rx-gro-hw") => "rx-gro-hw off",
        Offload::TcpMerge if on("rx-lro") => "lro off",
        Offload::TcpMerge | Offload::UdpMerge => "gro off",
        Offload::Path => return None,
    };
    Some(format!("ethtool -K {} {what}", nic.name))
}

/// Two interfaces that are not known.
pub fn no_nics() -> BothNics {
    BothNics { local: Reading::absent("not asked"), peer: Reading::absent("not asked") }
}
