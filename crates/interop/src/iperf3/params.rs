//! Test parameters, sent by the client.

use serde_json::{Map, Value, json};

/// Longest TCP block in bytes, as in iperf3.
const LEN_TCP: u64 = 1 << 20;
/// The longest UDP payload over IPv4.
const LEN_UDP: u64 = 65_507;
/// Shortest UDP payload in bytes: the header with 32-bit and with 64-bit numbers.
const LEN_UDP_MIN: [u64; 2] = [12, 16];
/// Most streams in each direction, as in iperf3.
pub const STREAMS: u64 = 128;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params {
    pub udp: bool,
    /// Warm-up in seconds, not counted.
    pub omit_s: u64,
    /// Duration after that in seconds; 0 if limited by bytes or blocks, or unlimited.
    pub time_s: u64,
    /// Bytes after which the test ends; 0 if limited by time or blocks.
    pub bytes: u64,
    /// Blocks after which the test ends; 0 if limited by time or bytes.
    pub blocks: u64,
    pub parallel: usize,
    /// Bytes of one send call or datagram.
    pub len: usize,
    pub reverse: bool,
    pub bidirectional: bool,
    pub nodelay: bool,
    /// Size of `SO_SNDBUF` and `SO_RCVBUF` in bytes; `None` keeps the kernel's.
    pub window: Option<u32>,
    pub mss: Option<u32>,
    /// Bits per second of one stream; 0 for no limit.
    pub rate: u64,
    /// Blocks sent back to back when pacing.
    pub burst: u32,
    /// Bits per second of one stream, paced by the kernel (`SO_MAX_PACING_RATE`).
    pub fq_rate: u64,
    pub tos: u8,
    pub congestion: Option<String>,
    /// CPU of the server's threads.
    pub server_cpu: Option<u32>,
    pub get_server_output: bool,
    pub udp_counters_64bit: bool,
    pub repeating_payload: bool,
    pub zerocopy: bool,
    pub dont_fragment: bool,
    pub skip_rx_copy: bool,
    /// Whether the client sent credentials.
    pub auth: bool,
    pub client_version: String,
}

/// iperf3's error number, which the client turns into a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    NumStreams = 6,
    BlockSize = 7,
    NoSctp = 18,
    UdpBlockSize = 20,
    ReverseAndBidirectional = 25,
    RecvParams = 114,
    SetNodelay = 122,
    SetBuffer = 124,
    SetTos = 125,
    SetCongestion = 134,
    BufferTooSmall = 141,
    Auth = 142,
    SetDontFragment = 145,
    CreateStream = 200,
    AcceptStream = 204,
    StreamWrite = 205,
}

/// Reason for refusing a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub code: Code,
    pub errno: i32,
    pub why: String,
}

impl Refused {
    pub fn new(code: Code, why: impl Into<String>) -> Self {
        Self { code, errno: 0, why: why.into() }
    }

    pub fn io(code: Code, doing: &str, e: &std::io::Error) -> Self {
        let line = traffic::Error::io(doing, e).to_string();
        Self { code, errno: e.raw_os_error().unwrap_or(0), why: line }
    }
}

/// A peer's text for our messages: shortened, without terminal control characters.
pub fn tame(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}

struct Object<'a>(&'a Map<String, Value>);

impl Object<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// True, or any number except 0: iperf3 writes both.
    fn flag(&self, key: &str) -> bool {
        match self.get(key) {
            Some(Value::Bool(b)) => *b,
            Some(Value::Number(n)) => n.as_f64() != Some(0.0),
            _ => false,
        }
    }

    /// A number; 0 if absent or null.
    fn number(&self, key: &str) -> Result<u64, Refused> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(0),
            Some(v) => v.as_u64().or_else(|| whole(v.as_f64()?)).ok_or_else(|| {
                let why = format!("the parameter {key} is no whole number of 0 or more");
                Refused::new(Code::RecvParams, why)
            }),
        }
    }

    /// A number in range; `None` for 0.
    fn small<T: TryFrom<u64>>(&self, key: &str) -> Result<Option<T>, Refused> {
        match self.number(key)? {
            0 => Ok(None),
            n => T::try_from(n).map(Some).map_err(|_| {
                Refused::new(Code::RecvParams, format!("the parameter {key} is {n}: too large"))
            }),
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.as_str().map(tame)
    }
}

/// Converts floating point, which iperf3 uses for large numbers.
fn whole(f: f64) -> Option<u64> {
    (f >= 0.0 && f <= u64::MAX as f64 && f.fract() == 0.0).then_some(f as u64)
}

impl Params {
    /// Parses a client's parameters.
    ///
    /// # Errors
    /// Holds iperf3's own error number, for the client.
    pub fn read(value: &Value) -> Result<Self, Refused> {
        let object = value
            .as_object()
            .ok_or_else(|| Refused::new(Code::RecvParams, "the parameters are no JSON object"))?;
        let o = Object(object);
        if o.flag("sctp") {
            return Err(Refused::new(Code::NoSctp, "SCTP is not supported"));
        }
        let params = Self {
            udp: o.flag("udp"),
            omit_s: o.number("omit")?,
            time_s: o.number("time")?,
            bytes: o.number("num")?,
            blocks: o.number("blockcount")?,
            parallel: usize::try_from(o.number("parallel")?).unwrap_or(usize::MAX).max(1),
            len: usize::try_from(o.number("len")?).unwrap_or(usize::MAX),
            reverse: o.flag("reverse"),
            bidirectional: o.flag("bidirectional"),
            nodelay: o.flag("nodelay"),
            window: o.small("window")?,
            mss: o.small("MSS")?,
            rate: o.number("bandwidth")?,
            burst: o.small("burst")?.unwrap_or(0),
            fq_rate: o.number("fqrate")?,
            tos: o.small("TOS")?.unwrap_or(0),
            congestion: o.text("congestion"),
            server_cpu: match o.get("server_affinity") {
                Some(v) => v.as_u64().and_then(|n| u32::try_from(n).ok()),
                None => None,
            },
            get_server_output: o.flag("get_server_output"),
            udp_counters_64bit: o.flag("udp_counters_64bit"),
            repeating_payload: o.flag("repeating_payload"),
            zerocopy: o.flag("zerocopy"),
            dont_fragment: o.flag("dont_fragment"),
            skip_rx_copy: o.flag("skip_rx_copy"),
            auth: o.get("authtoken").is_some(),
            client_version: o.text("client_version").unwrap_or_default(),
        };
        params.checked()
    }

    fn checked(mut self) -> Result<Self, Refused> {
        if self.parallel as u64 > STREAMS {
            let why = format!("{} parallel streams, more than {STREAMS}", self.parallel);
            return Err(Refused::new(Code::NumStreams, why));
        }
        if self.reverse && self.bidirectional {
            let why = "reverse and bidirectional at once";
            return Err(Refused::new(Code::ReverseAndBidirectional, why));
        }
        let (low, high, default, code) = match self.udp {
            false => (1, LEN_TCP, 128 << 10, Code::BlockSize),
            true => {
                let [short, long] = LEN_UDP_MIN;
                let low = if self.udp_counters_64bit { long } else { short };
                (low, LEN_UDP, 1460, Code::UdpBlockSize)
            }
        };
        match self.len as u64 {
            0 => self.len = default,
            n if n < low || n > high => {
                let why = format!("blocks of {n} bytes, which must be {low} to {high}");
                return Err(Refused::new(code, why));
            }
            _ => {}
        }
        Ok(self)
    }

    /// Number of data connections.
    pub fn streams(&self) -> usize {
        self.parallel * if self.bidirectional { 2 } else { 1 }
    }

    /// Whether the client sends on connection `index`, in its order of opening: in a bidirectional
    /// test the sending ones come first.
    pub fn client_sends(&self, index: usize) -> bool {
        match self.bidirectional {
            true => index < self.parallel,
            false => !self.reverse,
        }
    }

    /// The parameters that our client sends.
    pub fn write(&self) -> Value {
        let mut o = Map::new();
        let mut put = |key: &str, value: Value| o.insert(key.to_owned(), value);
        put(if self.udp { "udp" } else { "tcp" }, json!(true));
        put("omit", json!(self.omit_s));
        put("time", json!(self.time_s));
        put("num", json!(self.bytes));
        put("blockcount", json!(self.blocks));
        put("parallel", json!(self.parallel));
        put("len", json!(self.len));
        put("pacing_timer", json!(1000));
        put("client_version", json!(self.client_version));
        let flags = [
            ("reverse", self.reverse),
            ("bidirectional", self.bidirectional),
            ("nodelay", self.nodelay),
        ];
        for (key, _) in flags.into_iter().filter(|f| f.1) {
            put(key, json!(true));
        }
        let numbers = [
            ("window", u64::from(self.window.unwrap_or(0))),
            ("MSS", u64::from(self.mss.unwrap_or(0))),
            ("bandwidth", self.rate),
            ("burst", u64::from(self.burst)),
            ("fqrate", self.fq_rate),
            ("TOS", u64::from(self.tos)),
            ("udp_counters_64bit", u64::from(self.udp_counters_64bit)),
            ("repeating_payload", u64::from(self.repeating_payload)),
            ("zerocopy", u64::from(self.zerocopy)),
            ("dont_fragment", u64::from(self.dont_fragment)),
            ("skip_rx_copy", u64::from(self.skip_rx_copy)),
            ("get_server_output", u64::from(self.get_server_output)),
        ];
        for (key, n) in numbers.into_iter().filter(|n| n.1 > 0) {
            put(key, json!(n));
        }
        if let Some(name) = &self.congestion {
            put("congestion", json!(name));
        }
        if let Some(cpu) = self.server_cpu {
            put("server_affinity", json!(cpu));
        }
        Value::Object(o)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What iperf3 3.12 sent for `-R -C cubic --fq-rate 2G -b 1G/10 -M 1000 -N -A 0,1 -k 1000`.
    const SENT: &str = r#"{"tcp":true,"omit":0,"server_affinity":1,"time":0,"num":0,
        "blockcount":1000,"MSS":1000,"nodelay":true,"parallel":1,"reverse":true,"len":131072,
        "bandwidth":1000000000,"fqrate":2000000000,"pacing_timer":1000,"burst":10,
        "title":"title","extra_data":"hi","congestion":"cubic","client_version":"3.12"}"#;

    #[test]
    fn what_iperf3_sends_is_understood() {
        let params = Params::read(&serde_json::from_str(SENT).unwrap()).unwrap();
        let asked = Params {
            blocks: 1000,
            parallel: 1,
            len: 131_072,
            reverse: true,
            nodelay: true,
            mss: Some(1000),
            rate: 1_000_000_000,
            burst: 10,
            fq_rate: 2_000_000_000,
            congestion: Some("cubic".into()),
            server_cpu: Some(1),
            client_version: "3.12".into(),
            ..Params::default()
        };
        assert_eq!(params, asked);
        assert!(!params.client_sends(0));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_iperf3s_number() {
        for (json, code) in [
            (r#"[1]"#, Code::RecvParams),
            (r#"{"sctp":true}"#, Code::NoSctp),
            (r#"{"tcp":true,"parallel":129}"#, Code::NumStreams),
            (r#"{"tcp":true,"parallel":1e300}"#, Code::RecvParams),
            (r#"{"tcp":true,"len":1048577}"#, Code::BlockSize),
            (r#"{"udp":true,"len":65508}"#, Code::UdpBlockSize),
            (r#"{"udp":true,"len":12,"udp_counters_64bit":1}"#, Code::UdpBlockSize),
            (r#"{"tcp":true,"time":-1}"#, Code::RecvParams),
            (r#"{"tcp":true,"window":4294967296}"#, Code::RecvParams),
            (r#"{"reverse":true,"bidirectional":true}"#, Code::ReverseAndBidirectional),
        ] {
            let refused = Params::read(&serde_json::from_str(json).unwrap()).unwrap_err();
            assert_eq!(refused.code, code, "{json}: {}", refused.why);
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,80}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 4, |inner| {
            proptest::collection::vec(inner, 0..4).prop_map(Value::from)
        })
    }

    fn key() -> impl Strategy<Value = String> {
        proptest::sample::select(vec![
            "tcp",
            "udp",
            "sctp",
            "omit",
            "time",
            "num",
            "blockcount",
            "parallel",
            "len",
            "reverse",
            "bidirectional",
            "window",
            "MSS",
            "bandwidth",
            "burst",
            "TOS",
            "congestion",
            "server_affinity",
            "authtoken",
            "client_version",
        ])
        .prop_map(str::to_owned)
    }

    proptest! {
        #[test]
        fn whatever_comes_is_bounded_or_refused(
            pairs in proptest::collection::vec((key(), any_json()), 0..12)
        ) {
            let value = Value::Object(pairs.into_iter().collect());
            if let Ok(p) = Params::read(&value) {
                prop_assert!((1..=128).contains(&p.parallel));
                prop_assert!((1..=1 << 20).contains(&p.len));
                prop_assert!(p.streams() <= 256);
                prop_assert!(p.congestion.is_none_or(|c| c.chars().count() <= 64));
            }
        }

        #[test]
        fn what_our_client_writes_reads_the_same(
            udp: bool, parallel in 1usize..=128, len in 16usize..=65_507, way in 0..3,
            rate: u32, burst: u16, tos: u8, window: u32, omit in 0u64..60, zerocopy: bool,
        ) {
            let params = Params {
                udp, parallel, len, rate: rate.into(), burst: burst.into(), tos, zerocopy,
                window: (window > 0).then_some(window), omit_s: omit,
                reverse: way == 1, bidirectional: way == 2,
                client_version: "3.12".into(), ..Params::default()
            };
            prop_assert_eq!(Params::read(&params.write()).unwrap(), params);
        }
    }
}
