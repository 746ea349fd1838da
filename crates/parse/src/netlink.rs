//! Netlink messages and attributes, and requests.
//!
//! **Source**: `include/uapi/linux/netlink.h`; integers are in the machine's order, unless a family
//! differs. A length beyond the end stops the walk: the kernel sends complete messages without
//! padding, so the rest could only be misread.

/// Bytes of a message's header.
pub const HEADER: usize = 16;

/// `NLM_F_DUMP_INTR`: what is dumped changed meanwhile; the answer may miss or repeat entries.
pub const DUMP_INTERRUPTED: u16 = 0x10;
/// `NLMSG_ERROR`, also the acknowledgement (errno 0).
pub const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
pub const DONE: u16 = 3;
/// `NLMSG_OVERRUN`: messages were lost.
pub const OVERRUN: u16 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The message type; its meaning depends on the protocol from 16 up.
    pub kind: u16,
    /// Bits `NLM_F_*` of the header.
    pub flags: u16,
    /// Of the request that it answers.
    pub sequence: u32,
    /// What follows the header.
    pub payload: &'a [u8],
}

impl Message<'_> {
    /// What `NLMSG_ERROR` and `NLMSG_DONE` carry: 0, or a positive errno. `None` for other
    /// messages and where the number is missing.
    pub fn errno(&self) -> Option<i32> {
        matches!(self.kind, ERROR | DONE)
            .then(|| i32_at(self.payload, 0))
            .flatten()
            .map(i32::wrapping_neg)
    }
}

/// The messages of one datagram.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0)? as usize;
        let message = Message {
            kind: u16_at(rest, 4)?,
            flags: u16_at(rest, 6)?,
            sequence: u32_at(rest, 8)?,
            payload: rest.get(HEADER..length)?,
        };
        rest = rest.get(aligned(length)..).unwrap_or(&[]);
        Some(message)
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Type, without the nested and byte-order flags.
    pub kind: u16,
    /// The payload, without header and padding.
    pub bytes: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// An unsigned number of whatever width the kernel chose (`uint` is 4 or 8 bytes); `None`
    /// for other widths.
    pub fn unsigned(&self) -> Option<u64> {
        match self.bytes.len() {
            1 => self.bytes.first().map(|&b| b.into()),
            2 => u16_at(self.bytes, 0).map(Into::into),
            4 => u32_at(self.bytes, 0).map(Into::into),
            8 => u64_at(self.bytes, 0),
            _ => None,
        }
    }

    /// An unsigned number that fits 32 bits.
    pub fn u32(&self) -> Option<u32> {
        self.unsigned()?.try_into().ok()
    }

    /// A text up to its NUL.
    pub fn text(&self) -> String {
        let end = self.bytes.iter().position(|&b| b == 0).unwrap_or(self.bytes.len());
        String::from_utf8_lossy(self.bytes.get(..end).unwrap_or_default()).into_owned()
    }

    pub fn nested(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        attributes(self.bytes)
    }

    /// The first attribute of a kind within.
    pub fn inner(&self, kind: u16) -> Option<Attribute<'a>> {
        self.nested().find(|a| a.kind == kind)
    }
}

/// The attributes of a run of bytes.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = u16_at(rest, 0)? as usize;
        let kind = u16_at(rest, 2)? & 0x3fff;
        let bytes = rest.get(4..length)?;
        rest = rest.get(aligned(length)..).unwrap_or(&[]);
        Some(Attribute { kind, bytes })
    })
}

/// The first attribute of a kind behind a fixed header of `skip` bytes.
pub fn attribute(payload: &[u8], skip: usize, kind: u16) -> Option<Attribute<'_>> {
    attributes(payload.get(skip..)?).find(|a| a.kind == kind)
}

/// A request under construction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    bytes: Vec<u8>,
}

impl Request {
    const REQUEST: u16 = 0x1;
    const ACK: u16 = 0x4;
    const DUMP: u16 = 0x300;

    /// Asks for one thing; the kernel acknowledges after its answer.
    pub fn one(kind: u16, header: &[u8]) -> Self {
        Self::new(kind, Self::REQUEST | Self::ACK, header)
    }

    /// Changes something; `flags` say how (`NLM_F_CREATE`, `NLM_F_REPLACE`).
    pub fn change(kind: u16, flags: u16, header: &[u8]) -> Self {
        Self::new(kind, Self::REQUEST | Self::ACK | flags, header)
    }

    /// Asks for all things.
    pub fn dump(kind: u16, header: &[u8]) -> Self {
        Self::new(kind, Self::REQUEST | Self::DUMP, header)
    }

    fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes.splice(4..6, kind.to_ne_bytes());
        bytes.splice(6..8, flags.to_ne_bytes());
        bytes.extend_from_slice(header);
        bytes.resize(aligned(bytes.len()), 0);
        Self { bytes }
    }

    /// Adds an attribute; one too long for its length field is left out.
    #[must_use]
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        if let Ok(length) = u16::try_from(value.len() + 4) {
            self.bytes.extend(length.to_ne_bytes());
            self.bytes.extend(kind.to_ne_bytes());
            self.bytes.extend_from_slice(value);
            self.bytes.resize(aligned(self.bytes.len()), 0);
        }
        self
    }

    /// The message as it is sent.
    pub fn bytes(&self, sequence: u32) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        bytes.splice(0..4, length.to_ne_bytes());
        bytes.splice(8..12, sequence.to_ne_bytes());
        bytes
    }
}

fn aligned(length: usize) -> usize {
    length.saturating_add(3) & !3
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// The number at a byte offset, in the machine's order.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_ne_bytes)
}

/// The number at a byte offset, in the machine's order.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_ne_bytes)
}

/// The number at a byte offset, in the machine's order.
pub fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    array_at(bytes, at).map(i32::from_ne_bytes)
}

/// The number at a byte offset, in the machine's order.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_ne_bytes)
}

/// The number at a byte offset, in network order.
pub fn be16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_be_bytes)
}

/// A hardware address, bytes in hex by colon; `None` where it is empty.
pub fn hardware_address(bytes: &[u8]) -> Option<String> {
    let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    (!hex.is_empty()).then(|| hex.join(":"))
}

/// Every walk over a datagram, for the fuzzer.
pub(crate) fn fuzz(bytes: &[u8]) {
    for message in messages(bytes) {
        let _ = message.errno();
        for a in attributes(message.payload) {
            let _ = (a.unsigned(), a.u32(), a.text(), a.nested().count());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_laid_out_as_the_kernel_reads_it() {
        let bytes = Request::dump(18, &[0; 16]).with(29, &8u32.to_ne_bytes()).bytes(7);
        assert_eq!(bytes.len(), 16 + 16 + 8);
        let all: Vec<Message> = messages(&bytes).collect();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].kind, all[0].flags, all[0].sequence), (18, 0x301, 7));
        assert_eq!(attribute(all[0].payload, 16, 29).unwrap().u32(), Some(8));
        assert_eq!(attribute(all[0].payload, 16, 30), None);
        assert_eq!(attribute(all[0].payload, 400, 29), None);
    }

    #[test]
    fn an_error_is_an_errno_and_an_acknowledgement_is_zero() {
        let mut error = Request::one(ERROR, &(-95i32).to_ne_bytes()).bytes(1);
        assert_eq!(messages(&error).next().unwrap().errno(), Some(95));
        error.splice(16..20, 0i32.to_ne_bytes());
        assert_eq!(messages(&error).next().unwrap().errno(), Some(0));
        assert_eq!(messages(&Request::one(18, &[0; 4]).bytes(1)).next().unwrap().errno(), None);
        assert_eq!(messages(&Request::one(ERROR, &[]).bytes(1)).next().unwrap().errno(), None);
    }

    #[test]
    fn lengths_that_lead_outside_end_the_walk() {
        let whole = Request::dump(18, &[1; 8]).bytes(1);
        assert_eq!(messages(&whole[..whole.len() - 1]).count(), 0);
        assert_eq!(messages(&[0; 64]).count(), 0, "length 0 must not loop");
        assert_eq!(attributes(&[0; 64]).count(), 0);
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0, "shorter than its own header");
        assert_eq!(attributes(&[4, 0, 1, 0]).count(), 1, "a flag is an empty attribute");
    }

    #[test]
    fn odd_widths_are_no_numbers() {
        let a = |bytes| Attribute { kind: 1, bytes };
        assert_eq!(a(&[1, 2, 3]).unsigned(), None);
        assert_eq!(a(&[]).unsigned(), None);
        assert_eq!(a(&[255; 8]).unsigned(), Some(u64::MAX));
        assert_eq!(a(&[255; 8]).u32(), None);
        assert_eq!(a(b"eth0\0junk").text(), "eth0");
        assert_eq!(hardware_address(&[2, 0xfc, 0]).as_deref(), Some("02:fc:00"));
        assert_eq!(hardware_address(&[]), None);
    }

    proptest! {
        #[test]
        fn attributes_round_trip(list in proptest::collection::vec((1u16..0x3fff, proptest::collection::vec(any::<u8>(), 0..40)), 0..10)) {
            let mut request = Request::one(16, &[9; 4]);
            for (kind, value) in &list {
                request = request.with(*kind, value);
            }
            let bytes = request.bytes(3);
            let message = messages(&bytes).next().unwrap();
            let back: Vec<(u16, Vec<u8>)> = attributes(&message.payload[4..]).map(|a| (a.kind, a.bytes.to_vec())).collect();
            prop_assert_eq!(back, list);
        }
    }
}
