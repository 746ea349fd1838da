//! What Prometheus' HTTP API answers to an instant query: series with one value each.
//!
//! **Source**: <https://prometheus.io/docs/prometheus/latest/querying/api/>, instant queries.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One series of an instant query.
#[derive(Debug, Clone, PartialEq)]
pub struct InstantSeries {
    /// The labels by name; `__name__` is among them where the query keeps it.
    pub labels: BTreeMap<String, String>,
    /// When the query was evaluated, seconds since 1970, by the server's clock.
    pub at_unix_s: f64,
    /// The value; it may be NaN or infinite.
    pub value: f64,
}

/// The answer to an instant query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InstantVector {
    pub series: Vec<InstantSeries>,
    /// The server's warnings, such as a part that did not answer.
    pub warnings: Vec<String>,
}

/// Why bytes are no vector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The server says no; its own words.
    #[error("it refuses the query: {0}")]
    Refused(String),
    /// The result is of another type.
    #[error("it answers with a {0}, not with a vector of series")]
    OtherType(String),
    /// No answer of Prometheus' API.
    #[error("its answer is not that of Prometheus' API: {0}")]
    Foreign(String),
}

/// Longest text of an error, in characters.
const MOST_WORDS: usize = 200;

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    data: Option<Data>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    result_type: String,
    #[serde(default)]
    result: serde_json::Value,
}

#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    value: (f64, String),
}

/// Reads the answer to an instant query.
///
/// # Errors
/// The server refused the query, or the bytes are no vector of series.
pub fn parse(bytes: &[u8]) -> Result<InstantVector, QueryError> {
    let answer: Answer = model::json::read(bytes).map_err(foreign)?;
    if answer.status != "success" {
        let why = if answer.error.is_empty() { answer.status } else { answer.error };
        return Err(QueryError::Refused(short(&why)));
    }
    let Some(data) = answer.data else {
        return Err(QueryError::Foreign("there is no data in it".into()));
    };
    if data.result_type != "vector" {
        return Err(QueryError::OtherType(short(&data.result_type)));
    }
    let all: Vec<Series> = Vec::deserialize(&data.result).map_err(foreign)?;
    let mut series = Vec::with_capacity(all.len());
    for Series { metric, value: (at_unix_s, value) } in all {
        let Ok(value) = value.parse() else {
            return Err(QueryError::Foreign(format!("{:?} is no value", short(&value))));
        };
        series.push(InstantSeries { labels: metric, at_unix_s, value });
    }
    Ok(InstantVector { series, warnings: answer.warnings })
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn foreign(e: serde_json::Error) -> QueryError {
    QueryError::Foreign(short(&e.to_string()))
}

fn short(text: &str) -> String {
    text.chars().take(MOST_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Prometheus 2.42 answered.
    const ANSWER: &[u8] = include_bytes!("../tests/seeds/prometheus_json/findings");

    #[test]
    fn a_vector_has_its_labels_and_values() {
        let vector = parse(ANSWER).unwrap();
        let [first, .., last] = vector.series.as_slice() else { panic!("{vector:?}") };
        assert_eq!(first.labels["instance"], "10.0.0.1:7473");
        assert_eq!((first.labels["rule"].as_str(), first.value), ("few_channels", 1.0));
        assert!((first.at_unix_s - 1_764_216_000.5).abs() < 1e-6);
        assert!(last.value.is_nan());
        assert_eq!(vector.warnings, ["one store did not answer"]);
    }

    #[test]
    fn a_refusal_says_why() {
        let refused = include_bytes!("../tests/seeds/prometheus_json/refused");
        let Err(QueryError::Refused(why)) = parse(refused) else { panic!() };
        assert!(why.starts_with("invalid parameter \"query\""), "{why}");
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        let scalar = br#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#;
        assert_eq!(parse(scalar), Err(QueryError::OtherType("scalar".into())));
        for other in [
            "",
            "<html>",
            "[]",
            "{}",
            r#"{"status":1}"#,
            r#"{"status":"success"}"#,
            r#"{"status":"success","data":{"resultType":"vector"}}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":{}}}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":1},"value":[1,"2"]}]}}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":["1","2"]}]}}"#,
        ] {
            assert!(matches!(parse(other.as_bytes()), Err(QueryError::Foreign(_))), "{other}");
        }
        let long = format!(r#"{{"status":"error","error":"{}"}}"#, "x".repeat(5000));
        let Err(QueryError::Refused(why)) = parse(long.as_bytes()) else { panic!() };
        assert_eq!(why.len(), MOST_WORDS);
    }
}
