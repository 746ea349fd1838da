//! What a probe sends: batches of pieces whose content both ends can compute.

use model::measure::{OffloadProbe as Probe, PieceSize};

/// Bytes of a small piece.
pub const SMALL: usize = 64;
/// Bytes of the last, shorter piece of a TCP batch.
const TAIL: usize = 77;
/// Datagrams of a burst.
const BURST: usize = 12;
/// Lengths of TCP batches, in whole segments: not more than an initial congestion window.
const SEGMENTS: [usize; 8] = [2, 3, 4, 6, 8, 8, 8, 8];
/// Most bytes of one send with `UDP_SEGMENT`.
const LARGEST_SEND: usize = 60_000;
const MAGIC: u32 = 0x4e57_4f46;

/// All pieces of one probe, in order.
#[derive(Debug, Clone)]
pub struct Pieces {
    /// Lengths of the pieces of each batch, in bytes.
    pub batches: Vec<Vec<usize>>,
    seed: u32,
}

impl Pieces {
    /// The pieces of a probe; `large` is the size of a large piece in bytes.
    pub fn of(probe: Probe, size: PieceSize, large: usize, seed: u32) -> Self {
        let large = large.max(4 * TAIL);
        let one = if size == PieceSize::Small { SMALL } else { large };
        let batches = match probe {
            Probe::UdpUnsummed | Probe::UdpKernelSum | Probe::UdpAlone | Probe::TcpAlone => {
                vec![vec![one]; 16]
            }
            // Two halves of a batch: one that must not come, one that must.
            Probe::UdpBadSum => vec![vec![one; 2]; 16],
            Probe::UdpBurst | Probe::UdpBurstGro => vec![burst(size, one, large); 8],
            Probe::UdpSegmented | Probe::UdpSegmentedGro => {
                let mut batch = vec![one; (LARGEST_SEND / one).min(BURST) - 1];
                batch.push(one / 2 + 1);
                vec![batch; 8]
            }
            Probe::TcpBurst if size == PieceSize::Large => tcp(large),
            Probe::TcpBurst => vec![burst(size, one, large); 8],
            Probe::TcpBulk => tcp(large),
        };
        Self { batches, seed }
    }

    /// Number of all pieces.
    pub fn total(&self) -> usize {
        self.batches.iter().map(Vec::len).sum()
    }

    /// The length of piece `seq`; `None` after the last.
    pub fn length(&self, seq: usize) -> Option<usize> {
        self.batches.iter().flatten().nth(seq).copied()
    }

    /// The number of the batch that ends with piece `seq`.
    pub fn ends_batch(&self, seq: usize) -> Option<usize> {
        let mut end = 0;
        self.batches.iter().position(|b| {
            end += b.len();
            end == seq + 1
        })
    }

    /// The bytes of piece `seq`.
    pub fn bytes(&self, seq: usize) -> Vec<u8> {
        let length = self.length(seq).unwrap_or_default();
        let mut bytes = Vec::with_capacity(length + 8);
        let (number, size) = (seq as u32, length as u32);
        for word in [MAGIC, number, size, self.seed] {
            bytes.extend(word.to_be_bytes());
        }
        let mut state = (u64::from(self.seed) << 32) | u64::from(number);
        while bytes.len() < length {
            state = mixed(state);
            bytes.extend(state.to_be_bytes());
        }
        bytes.truncate(length);
        bytes
    }

    /// The number that the head of a datagram claims; `None` for no head of this probe.
    pub fn number(&self, bytes: &[u8]) -> Option<usize> {
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_be_bytes(bytes.get(at * 4..at * 4 + 4)?.try_into().ok()?))
        };
        let ours = word(0)? == MAGIC && word(3)? == self.seed;
        let number = word(1)? as usize;
        (ours && number < self.total()).then_some(number)
    }
}

fn burst(size: PieceSize, one: usize, large: usize) -> Vec<usize> {
    match size {
        PieceSize::Rising => {
            (0..BURST).map(|n| SMALL + n * (large - SMALL) / (BURST - 1)).collect()
        }
        _ => vec![one; BURST],
    }
}

fn tcp(large: usize) -> Vec<Vec<usize>> {
    let batch = |n: &usize| std::iter::repeat_n(large, *n).chain([TAIL]).collect();
    SEGMENTS.iter().map(batch).collect()
}

/// A step of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn mixed(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a received datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Right,
    Damaged,
    /// It ended too early.
    Cut,
    /// It went on after its end.
    Merged,
}

/// Compares a datagram with the piece that its head names.
pub fn compare(pieces: &Pieces, bytes: &[u8]) -> (Option<usize>, Kind) {
    let Some(number) = pieces.number(bytes) else { return (None, Kind::Damaged) };
    let sent = pieces.bytes(number);
    let kind = if bytes == sent {
        Kind::Right
    } else if bytes.len() < sent.len() && sent.starts_with(bytes) {
        Kind::Cut
    } else if bytes.len() > sent.len() && bytes.starts_with(&sent) {
        Kind::Merged
    } else {
        Kind::Damaged
    };
    (Some(number), kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces() -> Pieces {
        Pieces::of(Probe::UdpSegmented, PieceSize::Large, 1448, 7)
    }

    #[test]
    fn each_kind_of_damage_is_recognised() {
        let all = pieces();
        let (first, second) = (all.bytes(0), all.bytes(1));
        assert_eq!((first.len(), all.bytes(11).len()), (1448, 725));
        assert_eq!(compare(&all, &first), (Some(0), Kind::Right));
        assert_eq!(compare(&all, &first[..1000]), (Some(0), Kind::Cut));
        assert_eq!(compare(&all, &[&first[..], &second[..]].concat()), (Some(0), Kind::Merged));
        let mut one = second.clone();
        one[700] ^= 1;
        assert_eq!(compare(&all, &one), (Some(1), Kind::Damaged));
        assert_eq!(compare(&all, &second[1..]), (None, Kind::Damaged));
        assert_eq!(compare(&all, b"NWD1"), (None, Kind::Damaged));
        let other = Pieces::of(Probe::UdpSegmented, PieceSize::Large, 1448, 8);
        assert_eq!(compare(&all, &other.bytes(0)), (None, Kind::Damaged));
    }

    #[test]
    fn rising_pieces_grow_and_batches_end_where_they_end() {
        let all = Pieces::of(Probe::UdpBurst, PieceSize::Rising, 1448, 1);
        let lengths: Vec<usize> = (0..12).filter_map(|n| all.length(n)).collect();
        assert!(lengths.windows(2).all(|w| w[0] < w[1]), "{lengths:?}");
        assert_eq!((lengths[0], lengths[11]), (64, 1448));
        assert_eq!(
            (all.ends_batch(11), all.ends_batch(10), all.ends_batch(23)),
            (Some(0), None, Some(1))
        );
        assert_eq!((all.total(), all.length(96)), (96, None));
    }
}
