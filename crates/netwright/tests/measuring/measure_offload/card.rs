//! Two network cards and the wire between them, in one direction: segmentation, checksums, merging.
//! Healthy ones do it right; each lie falsifies one of them.

use super::frame::{Frame, GSO_TCP4, GSO_UDP, Header, NEEDS_CSUM};

/// What is falsified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    None,
    /// TSO: two segments carry each other's payload.
    TsoMisplaced,
    /// TSO: a byte of the second segment changes before the checksum is computed.
    TsoDamaged,
    /// TSO: the second segment has the first's sequence number.
    TsoSequence,
    /// TSO: the last segment lacks its last 8 bytes.
    TsoLength,
    /// USO: datagrams are split 4 bytes too early.
    UsoSplit,
    /// UDP checksums that the kernel leaves to the card stay undone.
    TxChecksum,
    /// The receiving card calls each checksum good.
    RxGood,
    /// The wire damages every fifth datagram, and the receiving card calls each checksum good.
    RxGoodDamaged,
    /// The receiving card merges datagrams of different sizes.
    UdpMergeSizes,
    /// The receiving card merges datagrams and forgets the last.
    UdpMergeLast,
    /// The receiving card merges TCP segments and forgets the last.
    TcpMergeLast,
    /// The receiving card merges TCP segments in the wrong order.
    TcpMergeOrder,
    /// The wire damages every third packet of more than 1,000 bytes.
    DamageLarge,
    /// The wire damages every third packet of at most 128 bytes of payload.
    DamageSmall,
}

/// Most packets that the receiving card merges.
const MOST_MERGED: usize = 16;

/// One direction.
#[derive(Debug)]
pub struct Way {
    lie: Lie,
    packets: u64,
}

impl Way {
    pub fn new(lie: Lie) -> Self {
        Self { lie, packets: 0 }
    }

    /// Frames for the receiving kernel, of those that the sending kernel gave at once.
    pub fn carry(&mut self, sent: Vec<(Header, Frame)>) -> Vec<(Header, Frame)> {
        let mut packets: Vec<Frame> =
            sent.into_iter().flat_map(|(header, frame)| self.transmit(header, frame)).collect();
        packets.iter_mut().for_each(|p| self.damage(p));
        self.receive(packets)
    }

    /// The sending card: packets as they are on the wire.
    fn transmit(&self, header: Header, mut frame: Frame) -> Vec<Frame> {
        let undone = self.lie == Lie::TxChecksum && frame.is_udp();
        match header.gso_type {
            GSO_TCP4 => self.segment(&frame, usize::from(header.gso_bytes)),
            GSO_UDP => {
                let short = if self.lie == Lie::UsoSplit { 4 } else { 0 };
                let parts = frame.payload().chunks(usize::from(header.gso_bytes) - short);
                let mut all: Vec<Frame> = parts.map(|part| frame.with(part)).collect();
                for one in &mut all {
                    one.sum_ip();
                    if undone { one.sum_partly() } else { one.sum_transport() }
                }
                all
            }
            0 => {
                if header.flags & NEEDS_CSUM != 0 && frame.is_transport() && !undone {
                    frame.sum_transport();
                }
                vec![frame]
            }
            other => panic!("a kind of segmentation that the card does not offer: {other}"),
        }
    }

    fn segment(&self, frame: &Frame, size: usize) -> Vec<Frame> {
        let mut parts: Vec<&[u8]> = frame.payload().chunks(size).collect();
        match (self.lie, parts.len()) {
            (Lie::TsoMisplaced, 3..) => parts.swap(0, 1),
            (Lie::TsoLength, 2..) => {
                let last = parts.last_mut().unwrap();
                *last = &last[..last.len() - 8];
            }
            _ => {}
        }
        let last = parts.len() - 1;
        let mut at = 0;
        let mut all = vec![];
        for (n, part) in parts.iter().enumerate() {
            let mut one = frame.with(part);
            one.set_sequence(frame.sequence().wrapping_add(at));
            at += part.len() as u32;
            // FIN and PSH belong to the last segment, CWR to the first.
            *one.flags() &= if n == last { 0xff } else { !0x09 };
            *one.flags() &= if n == 0 { 0xff } else { !0x80 };
            match (self.lie, n) {
                (Lie::TsoDamaged, 1) => *one.bytes.last_mut().unwrap() ^= 0x10,
                (Lie::TsoSequence, 1) => one.set_sequence(frame.sequence()),
                _ => {}
            }
            one.sum_ip();
            one.sum_transport();
            all.push(one);
        }
        all
    }

    /// The wire.
    fn damage(&mut self, packet: &mut Frame) {
        if !packet.is_transport() || packet.payload().is_empty() {
            return;
        }
        let (payload, whole) = (packet.payload().len(), packet.bytes.len());
        let (every, hit) = match self.lie {
            Lie::DamageLarge => (3, whole > 1000),
            Lie::DamageSmall => (3, payload <= 128),
            Lie::RxGoodDamaged => (5, packet.is_udp()),
            _ => return,
        };
        if hit {
            self.packets += 1;
            if self.packets.is_multiple_of(every) {
                *packet.bytes.last_mut().unwrap() ^= 0x01;
            }
        }
    }

    /// The receiving card: checks, and merges what follows each other.
    fn receive(&self, packets: Vec<Frame>) -> Vec<(Header, Frame)> {
        let mut out = vec![];
        let mut run: Vec<Frame> = vec![];
        for packet in packets {
            let trusted = packet.is_transport()
                && (packet.fits() || matches!(self.lie, Lie::RxGood | Lie::RxGoodDamaged));
            if run.last().is_some_and(|last| !trusted || !self.follows(&run, last, &packet)) {
                out.extend(self.merged(std::mem::take(&mut run)));
            }
            match trusted {
                true => run.push(packet),
                // The kernel checks it.
                false => out.push((Header::default(), packet)),
            }
        }
        out.extend(self.merged(run));
        out
    }

    /// Whether a packet can be merged with those of the run.
    fn follows(&self, run: &[Frame], last: &Frame, packet: &Frame) -> bool {
        let size = run[0].payload().len();
        let sizes = self.lie == Lie::UdpMergeSizes && packet.is_udp();
        let room = run.len() < MOST_MERGED && packet.flow() == run[0].flow();
        let even = last.payload().len() == size && (1..=size).contains(&packet.payload().len());
        let kind = match packet.is_tcp() {
            true => {
                let at = packet.transport();
                // Timestamps and acknowledgement too are those of the run.
                let alike = |f: &Frame| f.bytes[at + 8..at + 12] == run[0].bytes[at + 8..at + 12];
                let options = packet.payload_at() == run[0].payload_at()
                    && packet.bytes[at + 20..packet.payload_at()]
                        == run[0].bytes[at + 20..run[0].payload_at()];
                let next = last.sequence().wrapping_add(last.payload().len() as u32);
                let plain = |f: &Frame| f.bytes[at + 13] & !0x08 == 0x10;
                let open = last.bytes[at + 13] & 0x08 == 0;
                alike(packet)
                    && options
                    && open
                    && plain(last)
                    && plain(packet)
                    && packet.sequence() == next
            }
            false => run[0].is_udp() && packet.is_udp(),
        };
        room && kind && size > 0 && (even || sizes) && !packet.payload().is_empty()
    }

    fn merged(&self, mut run: Vec<Frame>) -> Vec<(Header, Frame)> {
        let udp = run.first().is_some_and(Frame::is_udp);
        match self.lie {
            Lie::UdpMergeLast if udp && run.len() > 1 => drop(run.pop()),
            Lie::TcpMergeLast if !udp && run.len() > 1 => drop(run.pop()),
            _ => {}
        }
        let Some(first) = run.first() else { return vec![] };
        if run.len() == 1 {
            let only = run.remove(0);
            return vec![(only.good(), only)];
        }
        let mut parts: Vec<&[u8]> = run.iter().map(Frame::payload).collect();
        if self.lie == Lie::TcpMergeOrder && !udp && parts[0].len() == parts[1].len() {
            parts.swap(0, 1);
        }
        let mut frame = first.with(&parts.concat());
        if !udp {
            let pushed = run.last().map_or(0, |l| l.bytes[l.transport() + 13] & 0x08);
            *frame.flags() |= pushed;
        }
        frame.sum_ip();
        frame.sum_partly();
        let header = Header {
            gso_type: if udp { GSO_UDP } else { GSO_TCP4 },
            header_bytes: frame.payload_at() as u16,
            gso_bytes: first.payload().len() as u16,
            ..frame.good()
        };
        vec![(header, frame)]
    }
}
