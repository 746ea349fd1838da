//! Messages of the control connection: a 200-byte request, a 4-byte port, two synchronization
//! texts, and a 256-byte block of counters. All numbers are little-endian.
//!
//! **Source**: unmodified qperf 0.4.11, observed on loopback.

/// Default port of qperf's server.
pub const PORT: u16 = 19765;
/// Version; both ends require that major and minor version agree.
pub const VERSION: [u16; 3] = [0, 4, 11];
/// Sent by both ends when they are ready; each waits for the other's.
pub const BEFORE: &[u8] = b"synchronization before test";
/// Sent by the client when it has the results.
pub const AFTER: &[u8] = b"synchronization after test";
/// Out-of-band byte that precedes an error text.
pub const URGENT_ERROR: u8 = b'?';
/// Out-of-band byte of an end that has finished its test.
pub const URGENT_DONE: u8 = b'.';

/// Length of a request in bytes.
pub const REQUEST: usize = 200;
/// Length in bytes of its first part, the version and the test's index.
const HEAD: usize = 8;
/// Number of integers in a request after that part.
const NUMBERS: usize = 16;
/// Length in bytes of a string at the end of a request or in [`configuration`].
pub const STRING: usize = 64;
/// Length in bytes of the answer to `conf`.
pub const CONFIGURATION: usize = 4 * STRING;
/// Length of the counters in bytes.
pub const STAT: usize = 252;
/// Bytes sent for the counters: the real program sends its whole structure, which has 4 bytes of
/// padding on 64-bit machines.
pub const STAT_SENT: usize = 256;
/// Number of clock values in [`Times`].
const CLOCKS: usize = 9;

/// The supported tests, by qperf's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Returns the server's configuration.
    Conf,
    Quit,
    /// One way over TCP, from the client to the server.
    TcpBw,
    /// Round trips over TCP.
    TcpLat,
    /// One way over UDP, from the client to the server.
    UdpBw,
    /// Round trips over UDP.
    UdpLat,
}

impl Test {
    const ALL: [(Self, u16, &str); 6] = [
        (Self::Conf, 0, "conf"),
        (Self::Quit, 1, "quit"),
        (Self::TcpBw, 8, "tcp_bw"),
        (Self::TcpLat, 9, "tcp_lat"),
        (Self::UdpBw, 10, "udp_bw"),
        (Self::UdpLat, 11, "udp_lat"),
    ];

    /// The test with this index, if supported.
    pub fn of(index: u16) -> Option<Self> {
        Self::ALL.iter().find(|(_, i, _)| *i == index).map(|(t, _, _)| *t)
    }

    pub fn index(self) -> u16 {
        Self::ALL.iter().find(|(t, _, _)| *t == self).map_or(0, |(_, i, _)| *i)
    }

    /// Its name on qperf's command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(t, _, _)| *t == self).map_or("", |(_, _, n)| *n)
    }

    /// Whether it uses UDP.
    pub fn is_udp(self) -> bool {
        matches!(self, Self::UdpBw | Self::UdpLat)
    }
}

/// A client's request.
///
/// Fields marked "RDMA" have no meaning for socket tests; the real server ignores them too, and
/// also `flip` and `no_msgs` (a client with `--no_msgs` sends a `time` of 0).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    pub version: [u16; 3],
    /// Index of the test.
    pub index: u16,
    /// Read every received byte.
    pub access_recv: u32,
    /// CPU number plus one; 0 for any CPU.
    pub affinity: u32,
    pub alt_port: u32,
    /// RDMA: the server sends.
    pub flip: u32,
    /// Message size in bytes.
    pub msg_size: u32,
    pub mtu_size: u32,
    /// RDMA: number of messages to send.
    pub no_msgs: u32,
    pub poll_mode: u32,
    /// Port for the data connection; 0 lets the server choose.
    pub port: u32,
    pub rd_atomic: u32,
    pub sl: u32,
    /// `SO_SNDBUF` and `SO_RCVBUF` in bytes; 0 keeps the kernel's.
    pub sock_buf_size: u32,
    pub src_path_bits: u32,
    /// Duration in seconds; 0 until the data connection closes.
    pub time: u32,
    /// Timeout in seconds for a message on the control connection.
    pub timeout: u32,
    pub use_cm: u32,
}

impl Request {
    /// A request for a test, with this version.
    pub fn new(test: Test) -> Self {
        Self { version: VERSION, index: test.index(), ..Self::default() }
    }

    /// Encodes it; the two strings at the end are empty.
    pub fn encode(&self) -> [u8; REQUEST] {
        let numbers: [u32; NUMBERS] = [
            self.access_recv,
            self.affinity,
            self.alt_port,
            self.flip,
            self.msg_size,
            self.mtu_size,
            self.no_msgs,
            self.poll_mode,
            self.port,
            self.rd_atomic,
            self.sl,
            self.sock_buf_size,
            self.src_path_bits,
            self.time,
            self.timeout,
            self.use_cm,
        ];
        let mut bytes = [0; REQUEST];
        let [a, b, c] = self.version;
        let head = [a, b, c, self.index].into_iter().flat_map(u16::to_le_bytes);
        let all = head.chain(numbers.into_iter().flat_map(u32::to_le_bytes));
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Decodes it; any bytes are a valid request.
    pub fn decode(bytes: &[u8; REQUEST]) -> Self {
        let mut at = Reader(bytes);
        let head: [u16; HEAD / 2] = std::array::from_fn(|_| at.u16());
        let [a, b, c, index] = head;
        Self {
            version: [a, b, c],
            index,
            access_recv: at.u32(),
            affinity: at.u32(),
            alt_port: at.u32(),
            flip: at.u32(),
            msg_size: at.u32(),
            mtu_size: at.u32(),
            no_msgs: at.u32(),
            poll_mode: at.u32(),
            port: at.u32(),
            rd_atomic: at.u32(),
            sl: at.u32(),
            sock_buf_size: at.u32(),
            src_path_bits: at.u32(),
            time: at.u32(),
            timeout: at.u32(),
            use_cm: at.u32(),
        }
    }
}

/// Reads integers from bytes; returns 0 beyond their end.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        if let Some((first, rest)) = self.0.split_first_chunk::<N>() {
            (out, self.0) = (*first, rest);
        }
        out
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// Clocks at one time, in units of [`Stat::ticks_per_s`]: elapsed time, and the whole host's CPU
/// time by state as in the first line of `/proc/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Time since an arbitrary start.
    pub real: u64,
    pub user: u64,
    /// User mode at low priority (nice).
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    /// Idle with I/O pending.
    pub iowait: u64,
    pub irq: u64,
    pub softirq: u64,
    /// Steal time, taken by the hypervisor.
    pub steal: u64,
}

impl Times {
    fn numbers(&self) -> [u64; CLOCKS] {
        [
            self.real,
            self.user,
            self.nice,
            self.system,
            self.idle,
            self.iowait,
            self.irq,
            self.softirq,
            self.steal,
        ]
    }

    fn read(at: &mut Reader<'_>) -> Self {
        Self {
            real: at.u64(),
            user: at.u64(),
            nice: at.u64(),
            system: at.u64(),
            idle: at.u64(),
            iowait: at.u64(),
            irq: at.u64(),
            softirq: at.u64(),
            steal: at.u64(),
        }
    }
}

/// Data counts of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Payload bytes, without protocol headers.
    pub bytes: u64,
    pub messages: u64,
    pub errors: u64,
}

/// The block of counters that the server sends after a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stat {
    /// CPUs of the host that the times are of.
    pub cpus: u32,
    /// Unit of all [`Times`]. The real server reports 100; the client divides by this number.
    pub ticks_per_s: u32,
    /// Clocks at the start of the test.
    pub start: Times,
    /// Clocks at the end of the test.
    pub end: Times,
    /// Data that the server sent.
    pub sent: Counts,
    /// Data that the server received.
    pub received: Counts,
}

impl Stat {
    /// Encodes it. RDMA's queue length and the copy of the other end's counters are 0.
    pub fn encode(&self) -> [u8; STAT_SENT] {
        let three = [self.cpus, self.ticks_per_s, 0].into_iter().flat_map(u32::to_le_bytes);
        let clocks = self.start.numbers().into_iter().chain(self.end.numbers());
        let counts = [self.sent, self.received].into_iter();
        let counts = counts.flat_map(|c| [c.bytes, c.messages, c.errors]);
        let all = three.chain(clocks.chain(counts).flat_map(u64::to_le_bytes));
        let mut bytes = [0; STAT_SENT];
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Decodes a server's block, without its padding.
    pub fn decode(bytes: &[u8; STAT]) -> Self {
        let mut at = Reader(bytes);
        let (cpus, ticks_per_s, _max_cqes) = (at.u32(), at.u32(), at.u32());
        let (start, end) = (Times::read(&mut at), Times::read(&mut at));
        let mut counts = || Counts { bytes: at.u64(), messages: at.u64(), errors: at.u64() };
        Self { cpus, ticks_per_s, start, end, sent: counts(), received: counts() }
    }
}

/// The answer to `conf`: node name, CPUs, system and qperf version, each cut to 63 bytes and
/// terminated by a NUL.
pub fn configuration(node: &str, cpu: &str, os: &str) -> [u8; CONFIGURATION] {
    let [a, b, c] = VERSION;
    let version = format!("{a}.{b}.{c}");
    let mut bytes = [0; CONFIGURATION];
    for (to, text) in bytes.chunks_exact_mut(STRING).zip([node, cpu, os, &version]) {
        to.iter_mut().take(STRING - 1).zip(text.bytes()).for_each(|(to, from)| *to = from);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What `qperf -m 4k -t 3 -rca 1 -ip 7000 -sb 9k -to 7 -ar 1 127.0.0.1 tcp_bw` sends.
    #[test]
    fn a_request_as_the_real_client_sends_it() {
        let r = Request {
            access_recv: 1,
            affinity: 2,
            msg_size: 4000,
            port: 7000,
            sock_buf_size: 9000,
            time: 3,
            timeout: 7,
            ..Request::new(Test::TcpBw)
        };
        let bytes = r.encode();
        assert_eq!(&bytes[..16], [0, 0, 4, 0, 11, 0, 8, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!((bytes[24], bytes[25]), (0xa0, 0x0f), "msg_size");
        assert_eq!((bytes[60], bytes[64]), (3, 7), "time and timeout");
        assert!(bytes[72..].iter().all(|b| *b == 0));
        assert_eq!(Request::decode(&bytes), r);
    }

    #[test]
    fn a_test_has_one_index_and_one_name() {
        for (test, index, name) in Test::ALL {
            assert_eq!((Test::of(index), test.index(), test.name()), (Some(test), index, name));
        }
        assert_eq!(Test::of(2), None);
    }

    #[test]
    fn a_configuration_is_cut_and_closed() {
        let bytes = configuration(&"n".repeat(100), "cpu", "Linux 6.1");
        assert_eq!((bytes[62], bytes[63], &bytes[64..68]), (b'n', 0, &b"cpu\0"[..]));
        assert_eq!(&bytes[192..199], b"0.4.11\0");
    }

    proptest! {
        #[test]
        fn stat_round_trips(v in prop::array::uniform24(any::<u64>()), cpus: u32, ticks: u32) {
            let t = |at: usize| Times {
                real: v[at], user: v[at + 1], nice: v[at + 2], system: v[at + 3],
                idle: v[at + 4], iowait: v[at + 5], irq: v[at + 6], softirq: v[at + 7],
                steal: v[at + 8],
            };
            let c = |at: usize| Counts { bytes: v[at], messages: v[at + 1], errors: v[at + 2] };
            let s = Stat { cpus, ticks_per_s: ticks, start: t(0), end: t(9), sent: c(18), received: c(21) };
            prop_assert_eq!(Stat::decode(s.encode().first_chunk().unwrap()), s);
        }

        #[test]
        fn any_bytes_are_a_request(bytes in prop::collection::vec(any::<u8>(), REQUEST)) {
            let bytes: [u8; REQUEST] = bytes.try_into().unwrap();
            let r = Request::decode(&bytes);
            let again = r.encode();
            prop_assert_eq!(&again[..72], &bytes[..72]);
        }
    }
}
