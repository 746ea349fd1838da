//! Ethernet frames with an IPv4 packet of TCP or UDP, as a network card sees them.

/// `struct virtio_net_hdr`: what the kernel asks of the card, or the card says to the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    pub flags: u8,
    pub gso_type: u8,
    pub header_bytes: u16,
    pub gso_bytes: u16,
    pub csum_start: u16,
    pub csum_offset: u16,
}

pub const HEADER: usize = 10;
/// The checksum field has the pseudo-header's sum; the rest is to be added, or is known to fit.
pub const NEEDS_CSUM: u8 = 1;
pub const GSO_TCP4: u8 = 1;
pub const GSO_UDP: u8 = 5;

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;

impl Header {
    pub fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            gso_type: bytes[1] & 0x7f,
            header_bytes: word(2),
            gso_bytes: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        }
    }

    pub fn bytes(self) -> Vec<u8> {
        let words = [self.header_bytes, self.gso_bytes, self.csum_start, self.csum_offset];
        let words = words.iter().flat_map(|w| w.to_ne_bytes());
        [self.flags, self.gso_type].into_iter().chain(words).collect()
    }
}

/// A frame, and where its layers begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub bytes: Vec<u8>,
}

impl Frame {
    /// Whether it is IPv4 with TCP or UDP, not a fragment.
    pub fn is_transport(&self) -> bool {
        let b = &self.bytes;
        b.len() >= ETHERNET + 28
            && b[12..14] == [8, 0]
            && b[ETHERNET] == 0x45
            && matches!(b[ETHERNET + 9], TCP | UDP)
            && u16::from_be_bytes([b[ETHERNET + 6], b[ETHERNET + 7]]) & 0x3fff == 0
    }

    pub fn is_udp(&self) -> bool {
        self.is_transport() && self.bytes[ETHERNET + 9] == UDP
    }

    pub fn is_tcp(&self) -> bool {
        self.is_transport() && self.bytes[ETHERNET + 9] == TCP
    }

    /// Where the transport header begins.
    pub fn transport(&self) -> usize {
        ETHERNET + 20
    }

    /// Where the payload begins.
    pub fn payload_at(&self) -> usize {
        let at = self.transport();
        at + if self.is_udp() { 8 } else { usize::from(self.bytes[at + 12] >> 4) * 4 }
    }

    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.payload_at()..]
    }

    /// Addresses and ports.
    pub fn flow(&self) -> &[u8] {
        &self.bytes[ETHERNET + 12..ETHERNET + 24]
    }

    pub fn sequence(&self) -> u32 {
        let at = self.transport() + 4;
        u32::from_be_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    pub fn set_sequence(&mut self, to: u32) {
        let at = self.transport() + 4;
        self.bytes[at..at + 4].copy_from_slice(&to.to_be_bytes());
    }

    /// The TCP flags FIN, SYN, RST, PSH, ACK, URG, ECE, CWR.
    pub fn flags(&mut self) -> &mut u8 {
        let at = self.transport() + 13;
        &mut self.bytes[at]
    }

    /// A frame with this frame's headers and another payload; lengths are set, sums are not.
    pub fn with(&self, payload: &[u8]) -> Self {
        let mut bytes = self.bytes[..self.payload_at()].to_vec();
        bytes.extend(payload);
        let mut frame = Self { bytes };
        // Ethernet pads short frames.
        let ip = (frame.bytes.len() - ETHERNET) as u16;
        frame.bytes[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&ip.to_be_bytes());
        if frame.is_udp() {
            let at = frame.transport() + 4;
            frame.bytes[at..at + 2].copy_from_slice(&(ip - 20).to_be_bytes());
        }
        frame
    }

    /// Offset of the checksum within the transport header.
    pub fn csum_offset(&self) -> usize {
        if self.is_udp() { 6 } else { 16 }
    }

    fn pseudo(&self) -> Vec<u8> {
        let length = (self.bytes.len() - self.transport()) as u16;
        let addresses = &self.bytes[ETHERNET + 12..ETHERNET + 20];
        [addresses, &[0, self.bytes[ETHERNET + 9]], &length.to_be_bytes()].concat()
    }

    /// Writes the IPv4 header's checksum.
    pub fn sum_ip(&mut self) {
        self.bytes[ETHERNET + 10..ETHERNET + 12].fill(0);
        let sum = !sum(&[&self.bytes[ETHERNET..ETHERNET + 20]]);
        self.bytes[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
    }

    /// Writes the transport checksum.
    pub fn sum_transport(&mut self) {
        let at = self.transport() + self.csum_offset();
        self.bytes[at..at + 2].fill(0);
        let sum = match !sum(&[&self.pseudo(), &self.bytes[self.transport()..]]) {
            0 if self.is_udp() => 0xffff,
            sum => sum,
        };
        self.bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Leaves the sum of the pseudo-header alone in the checksum field.
    pub fn sum_partly(&mut self) {
        let at = self.transport() + self.csum_offset();
        let sum = sum(&[&self.pseudo()]);
        self.bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Whether the transport checksum fits; a UDP checksum of 0 is none.
    pub fn fits(&self) -> bool {
        let at = self.transport() + self.csum_offset();
        (self.is_udp() && self.bytes[at..at + 2] == [0, 0])
            || sum(&[&self.pseudo(), &self.bytes[self.transport()..]]) == 0xffff
    }

    /// What a card says with a frame whose checksum it knows to fit.
    pub fn good(&self) -> Header {
        Header {
            flags: NEEDS_CSUM,
            csum_start: self.transport() as u16,
            csum_offset: self.csum_offset() as u16,
            ..Header::default()
        }
    }
}

/// The ones' complement sum of 16-bit words (RFC 1071); each part has whole words but the last.
fn sum(parts: &[&[u8]]) -> u16 {
    let word = |pair: &[u8]| u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    let mut sum: u64 = parts.iter().flat_map(|p| p.chunks(2)).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
