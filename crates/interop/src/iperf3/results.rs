//! Results that the ends exchange after a test.

use serde_json::{Map, Value, json};

use super::{params::tame, wire::Broken};

/// Most streams read; no test has more.
const STREAMS: usize = 256;
/// Limit for the stored text of a server's output, in bytes.
const OUTPUT_LIMIT: usize = 256 << 10;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// CPU use in percent of wall time: total, user mode, kernel mode.
    pub cpu: Cpu,
    /// Whether this end sends and counts retransmits; `None` if it only receives.
    pub sender_has_retransmits: Option<bool>,
    pub congestion: Option<String>,
    pub output: Option<String>,
    pub streams: Vec<Stream>,
}

/// CPU use in percent of wall time, as in [`Results::cpu`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cpu {
    /// User and system time together.
    pub total: f64,
    pub user: f64,
    pub system: f64,
}

/// One stream, as seen by this end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stream {
    /// Stream id: 1, 3, 4, 5… in the client's order of opening.
    pub id: u64,
    /// Bytes sent or received, without the warm-up.
    pub bytes: u64,
    /// TCP: segments retransmitted by this end; `None` where it receives, or does not know.
    pub retransmits: Option<u64>,
    /// UDP: interarrival jitter by RFC 1889, seconds.
    pub jitter_s: f64,
    /// UDP: datagrams lost. Includes the warm-up's if [`Stream::omitted`] is set.
    pub errors: u64,
    /// UDP: datagrams sent, or for a receiver the highest number seen; includes the warm-up.
    pub packets: u64,
    /// The warm-up's part of `errors` and `packets`; `None` before iperf3 3.13.
    pub omitted: Option<(u64, u64)>,
    pub start_s: f64,
    pub end_s: f64,
}

/// The id of the stream opened as number `index`.
pub fn stream_id(index: usize) -> u64 {
    index as u64 + if index == 0 { 1 } else { 2 }
}

impl Results {
    pub fn write(&self) -> Value {
        let mut o = Map::new();
        o.insert("cpu_util_total".into(), json!(self.cpu.total));
        o.insert("cpu_util_user".into(), json!(self.cpu.user));
        o.insert("cpu_util_system".into(), json!(self.cpu.system));
        let has = self.sender_has_retransmits.map_or(-1, i64::from);
        o.insert("sender_has_retransmits".into(), json!(has));
        if let Some(name) = &self.congestion {
            o.insert("congestion_used".into(), json!(name));
        }
        if let Some(text) = &self.output {
            o.insert("server_output_text".into(), json!(text));
        }
        o.insert("streams".into(), self.streams.iter().map(Stream::write).collect());
        Value::Object(o)
    }

    /// Parses the other end's results.
    ///
    /// # Errors
    /// [`Broken::Garbage`]: a required number is missing.
    pub fn read(value: &Value) -> Result<Self, Broken> {
        let streams = value.get("streams").and_then(Value::as_array);
        let streams = streams.ok_or_else(|| Broken::Garbage("results without streams".into()))?;
        let cpu = |key| value.get(key).and_then(Value::as_f64).unwrap_or(0.0);
        let text = |key| value.get(key).and_then(Value::as_str);
        Ok(Self {
            cpu: Cpu {
                total: cpu("cpu_util_total"),
                user: cpu("cpu_util_user"),
                system: cpu("cpu_util_system"),
            },
            sender_has_retransmits: count(value, "sender_has_retransmits").map(|n| n > 0),
            congestion: text("congestion_used").map(tame),
            output: text("server_output_text").map(|t| t.chars().take(OUTPUT_LIMIT).collect()),
            streams: streams.iter().take(STREAMS).map(Stream::read).collect::<Result<_, _>>()?,
        })
    }

    pub fn stream(&self, id: u64) -> Option<&Stream> {
        self.streams.iter().find(|s| s.id == id)
    }
}

impl Stream {
    fn write(&self) -> Value {
        let mut o = json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits.map_or(json!(-1), |n| json!(n)),
            "jitter": self.jitter_s,
            "errors": self.errors,
            "packets": self.packets,
            "start_time": self.start_s,
            "end_time": self.end_s,
        });
        if let (Some((errors, packets)), Some(o)) = (self.omitted, o.as_object_mut()) {
            o.insert("omitted_errors".into(), json!(errors));
            o.insert("omitted_packets".into(), json!(packets));
        }
        o
    }

    fn read(value: &Value) -> Result<Self, Broken> {
        let need = |key: &str| {
            count(value, key).ok_or_else(|| Broken::Garbage(format!("a result without {key}")))
        };
        let real = |key| value.get(key).and_then(Value::as_f64).unwrap_or(0.0);
        let omitted = count(value, "omitted_errors").zip(count(value, "omitted_packets"));
        Ok(Self {
            id: need("id")?,
            bytes: need("bytes")?,
            retransmits: count(value, "retransmits"),
            jitter_s: real("jitter").max(0.0),
            errors: count(value, "errors").unwrap_or(0),
            packets: count(value, "packets").unwrap_or(0),
            omitted,
            start_s: real("start_time"),
            end_s: real("end_time"),
        })
    }
}

/// A count; `None` for −1 ("does not count"), which 3.12 prints as 18446744073709551615, as an
/// integer or in floating point.
fn count(value: &Value, key: &str) -> Option<u64> {
    let f = value.get(key)?.as_f64()?;
    (0.0..9.2e18).contains(&f).then_some(f as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_minus_one_of_iperf3_is_none() {
        let text = r#"{"cpu_util_total":35.7,"cpu_util_user":1.5,"cpu_util_system":34.1,
            "sender_has_retransmits":18446744073709551615,"congestion_used":"bbr",
            "streams":[{"id":1,"bytes":5516820586,"retransmits":1.8446744073709552e+19,
            "jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.99999}]}"#;
        let results = Results::read(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(results.sender_has_retransmits, None);
        let stream = results.stream(1).unwrap();
        assert_eq!((stream.bytes, stream.retransmits), (5_516_820_586, None));
        assert_eq!(results.congestion.as_deref(), Some("bbr"));
        assert!(results.stream(2).is_none());
    }

    #[test]
    fn ids_leave_out_two() {
        assert_eq!((0..4).map(stream_id).collect::<Vec<_>>(), [1, 3, 4, 5]);
    }

    proptest! {
        #[test]
        fn results_survive_the_wire(
            bytes in 0u64..1 << 53, errors in 0u64..1 << 40, packets in 0u64..1 << 40,
            retransmits in proptest::option::of(0u64..1 << 40),
            omitted in proptest::option::of((0u64..1 << 40, 0u64..1 << 40)),
            has in proptest::option::of(any::<bool>()),
        ) {
            let results = Results {
                cpu: Cpu { total: 12.5, user: 2.5, system: 10.0 },
                sender_has_retransmits: has,
                congestion: Some("cubic".into()),
                output: Some("text".into()),
                streams: vec![Stream {
                    id: 3, bytes, retransmits, jitter_s: 0.25, errors, packets, omitted,
                    start_s: 0.0, end_s: 1.5,
                }],
            };
            let text = results.write().to_string();
            let read = Results::read(&serde_json::from_str(&text).unwrap()).unwrap();
            prop_assert_eq!(read, results);
        }

        #[test]
        fn one_key_of_another_kind_is_refused_or_alone_is_unknown(at in 0usize..8, junk in "[a-z]{0,9}") {
            let whole = Stream {
                id: 3, bytes: 1, retransmits: Some(2), jitter_s: 0.25, errors: 4, packets: 5,
                omitted: None, start_s: 0.5, end_s: 1.5,
            };
            let mut value = whole.write();
            let keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            let key = &keys[at % keys.len()];
            value[key.as_str()] = Value::from(junk);
            match Stream::read(&value) {
                Err(_) => prop_assert!(key == "id" || key == "bytes", "{key}"),
                Ok(read) => {
                    prop_assert!(key != "id" && key != "bytes", "{key}");
                    let mut again = read.write();
                    again[key.as_str()] = whole.write()[key.as_str()].clone();
                    prop_assert_eq!(again, whole.write());
                }
            }
        }
    }
}
