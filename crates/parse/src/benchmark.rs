//! Runs of a benchmark from the file that its program wrote: which program it was is seen from the
//! content.

use model::compare::BenchmarkRun;
use serde_json::Value;

pub use crate::benchmark_runs::NoRuns;
use crate::{
    fio_json, hyperfine_json, iperf3_json, netwright_json, number_table, pgbench_log, pgbench_text,
    prove_json, sockperf_text, wrk_text,
};

/// All runs of a file, in its order. A file can hold several results of one program, one after the
/// other, and JSON documents also as an array.
///
/// # Errors
/// The format is unknown, a run failed, or it has no figure.
pub fn parse(bytes: &[u8]) -> Result<Vec<BenchmarkRun>, NoRuns> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    match bytes.first() {
        None => Err(NoRuns::Empty),
        Some(b'{' | b'[') => documents(bytes),
        Some(_) => text(&String::from_utf8_lossy(bytes)),
    }
}

fn text(text: &str) -> Result<Vec<BenchmarkRun>, NoRuns> {
    let parsers = [wrk_text::runs, sockperf_text::runs, pgbench_text::runs];
    for runs in parsers {
        if let Some(found) = runs(text) {
            return found;
        }
    }
    if let Some(run) = pgbench_log::run(text) {
        return Ok(vec![run]);
    }
    number_table::rows(text).ok_or(NoRuns::UnknownFormat)
}

fn documents(bytes: &[u8]) -> Result<Vec<BenchmarkRun>, NoRuns> {
    let mut documents = Vec::new();
    for document in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>() {
        match document.map_err(|e| NoRuns::Json { why: e.to_string() })? {
            Value::Array(several) => documents.extend(several),
            one => documents.push(one),
        }
    }
    if let Some(runs) = prove_json::record(&documents) {
        return runs;
    }
    let mut runs = Vec::new();
    for document in &documents {
        let parsers = [
            netwright_json::runs,
            prove_json::document,
            iperf3_json::runs,
            fio_json::runs,
            hyperfine_json::runs,
        ];
        let found = parsers.iter().find_map(|runs| runs(document));
        runs.extend(found.ok_or(NoRuns::UnknownFormat)??);
    }
    if runs.is_empty() { Err(NoRuns::UnknownFormat) } else { Ok(runs) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark_runs::is_figure;

    #[test]
    fn what_is_no_result_is_said() {
        for unknown in ["hello world", "{}", "[]", "[1, 2]", "<html>", "a,b\n1\n", "a b\nc d\n"] {
            assert_eq!(parse(unknown.as_bytes()), Err(NoRuns::UnknownFormat), "{unknown}");
        }
        assert_eq!(parse(b" \n"), Err(NoRuns::Empty));
        assert!(matches!(parse(b"{\"a\": "), Err(NoRuns::Json { .. })));
        assert!(!is_figure(f64::NAN) && !is_figure(f64::INFINITY) && is_figure(-0.0));
    }
}
