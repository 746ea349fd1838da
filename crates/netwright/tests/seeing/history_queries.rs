//! `history export` in a real DuckDB: each query of `docs/history-queries.md`, taken from the page,
//! against what `history` and `inspect` print.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{NETWRIGHT, serve::Serve};

/// Runs the queries of standard input, a JSON list, and writes the rows of each with their names to
/// `answers.json`; a time is Unix milliseconds. Standard output is left to DuckDB, which draws a
/// progress bar for a slow query.
const RUNNER: &str = "
import datetime, duckdb, json, sys
results = []
def unix_ms(when):
    return round(when.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)

for query in json.load(sys.stdin):
    answer = duckdb.sql(query)
    results.append([dict(zip(answer.columns, row)) for row in answer.fetchall()])
with open('answers.json', 'w') as file:
    json.dump(results, file, default=unix_ms, allow_nan=False)
";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The queries of the page by the question in their first line, in the page's order.
fn queries() -> Vec<(String, String)> {
    let page = fs::read_to_string(repository().join("docs/history-queries.md")).unwrap();
    let blocks = page.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let titled = blocks.map(|block| {
        let (title, query) = block.split_once('\n').unwrap();
        let title = title.strip_prefix("-- ").unwrap_or_else(|| panic!("no question: {block}"));
        (title.to_owned(), query.to_owned())
    });
    titled.collect()
}

/// The rows of each query, as DuckDB answers in this folder.
fn duckdb(folder: &Path, queries: &[String]) -> Vec<Vec<Value>> {
    let python = repository().join("target/duckdb/bin/python");
    let mut child = Command::new(&python)
        .args(["-c", RUNNER])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}; scripts/duckdb installs it", python.display()));
    child.stdin.take().unwrap().write_all(json!(queries).to_string().as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answers = fs::read_to_string(folder.join("answers.json")).unwrap();
    serde_json::from_str(&answers).unwrap_or_else(|e| panic!("{e}: {answers}"))
}

/// A store with real runs of three hosts, and its two exports in a folder.
struct Kept {
    folder: tempfile::TempDir,
}

impl Kept {
    fn netwright(&self, args: &[&str]) -> Vec<u8> {
        let store = self.folder.path().join("h.sqlite");
        let mut command = Command::new(NETWRIGHT);
        command.args(args).current_dir(self.folder.path()).env("NETWRIGHT_STORE", store);
        let out = command.output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_slice(&self.netwright(&[args, &["--json"]].concat())).unwrap()
    }

    fn export(&self, filter: &[&str]) {
        let runs = ["history", "export", "-o", "runs.ndjson.gz"];
        self.netwright(&[&runs[..], filter].concat());
        let figures = ["history", "export", "--figures", "-o", "figures.csv"];
        self.netwright(&[&figures[..], filter].concat());
    }

    /// The runs as `history list` names them, the oldest first, with their documents.
    fn runs(&self) -> Vec<(Value, Value)> {
        let listed = self.json(&["history", "list"]);
        let oldest_first = listed["runs"].as_array().unwrap().iter().rev();
        let with_document = oldest_first
            .map(|run| (run.clone(), self.json(&["history", "show", &run["id"].to_string()])));
        with_document.collect()
    }
}

/// A captured host.
fn archive(name: &str) -> String {
    format!("{}/tests/captured/{name}.tar.zst", env!("CARGO_MANIFEST_DIR"))
}

fn kept() -> Kept {
    let kept = Kept { folder: tempfile::tempdir().unwrap() };
    for host in ["bond", "queues"] {
        kept.netwright(&["doctor", "--root", &archive(host)]);
    }
    let server = Serve::start(&[]);
    for tag in ["before", "before", "after", "after", ""] {
        let mut args = vec!["measure", "rtt", server.target(), "--duration", "500ms"];
        if !tag.is_empty() {
            args.extend(["--tag", tag]);
        }
        kept.netwright(&args);
    }
    kept.netwright(&["measure", "stream", server.target(), "--duration", "500ms", "--tag", "bulk"]);
    kept
}

/// A command line as the query joins it.
fn command(run: &Value) -> String {
    let words = run["command"].as_array().unwrap().iter().map(|w| w.as_str().unwrap());
    words.collect::<Vec<_>>().join(" ")
}

/// The sysctls of a captured host: names and values.
fn sysctls(host: &str) -> BTreeMap<String, String> {
    let out =
        Command::new(NETWRIGHT).args(["inspect", "--json", "--root", &archive(host)]).output();
    let facts: Value = serde_json::from_slice(&out.unwrap().stdout).unwrap();
    let all = facts["sysctls"].as_object().unwrap().iter();
    let known = all.filter_map(|(name, reading)| {
        let value = &reading["value"];
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (!value.is_null()).then(|| (name.clone(), text))
    });
    known.collect()
}

/// Rows are equal, and so are their numbers but for the last digits of a mean.
fn assert_rows(title: &str, got: &[Value], want: &[Value]) {
    assert_eq!(got.len(), want.len(), "{title}\n{got:#?}\n{want:#?}");
    for (got, want) in got.iter().zip(want) {
        let (got, want) = (got.as_object().unwrap(), want.as_object().unwrap());
        assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>(), "{title}");
        for (key, value) in got {
            let same = match (value.as_f64(), want[key].as_f64()) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs(),
                _ => *value == want[key],
            };
            assert!(same, "{title}: {key}: {value} is not {}", want[key]);
        }
    }
}

fn microseconds(document: &Value, quantile: &str) -> f64 {
    document["runs"][0]["rtt_ns"][quantile].as_f64().unwrap() / 1e3
}

/// What `history` says a query must answer; `None` of a question about facts.
fn expected(title: &str, runs: &[(Value, Value)]) -> Option<Vec<Value>> {
    let rtt = || runs.iter().filter(|(run, _)| run["kind"] == "measure-rtt");
    let mut by_tag = BTreeMap::<&str, Vec<&(Value, Value)>>::new();
    for run in rtt().filter(|(run, _)| run["tag"] != "") {
        by_tag.entry(run.0["tag"].as_str().unwrap()).or_default().push(run);
    }
    Some(match title {
        "How often was each kind run?" => {
            let kinds: BTreeSet<&str> =
                runs.iter().map(|(r, _)| r["kind"].as_str().unwrap()).collect();
            let count = |kind| runs.iter().filter(|(run, _)| run["kind"] == kind).count();
            kinds.into_iter().map(|kind| json!({ "kind": kind, "runs": count(kind) })).collect()
        }
        "What was run, and how did it end?" => {
            let row = |run: &Value| {
                json!({ "id": run["id"], "command": command(run),
                "exit_code": run["exit_code"], "headline": run["headline"] })
            };
            runs.iter().map(|(run, _)| row(run)).collect()
        }
        "What does doctor find, and on how many hosts?" => {
            let mut hosts = BTreeMap::<(&str, &str), BTreeSet<&str>>::new();
            for (run, document) in runs.iter().filter(|(run, _)| run["kind"] == "doctor") {
                for finding in document["findings"].as_array().unwrap() {
                    let of = |key: &str| finding[key].as_str().unwrap();
                    let host = run["host"].as_str().unwrap();
                    hosts.entry((of("rule"), of("severity"))).or_default().insert(host);
                }
            }
            let row = |((rule, severity), hosts): (_, BTreeSet<&str>)| json!({ "rule": rule, "severity": severity, "hosts": hosts.len() });
            hosts.into_iter().map(row).collect()
        }
        "What was the round trip of each run?" => {
            let row = |(run, document): &(Value, Value)| {
                json!({ "id": run["id"], "tag": run["tag"],
                "p50_us": microseconds(document, "p50"), "p99_us": microseconds(document, "p99") })
            };
            rtt().map(row).collect()
        }
        "What is the median of a figure, by tag?" => {
            let mean_of_two = |runs: &[&(Value, Value)]| {
                assert_eq!(runs.len(), 2);
                runs.iter().map(|(_, d)| microseconds(d, "p50")).sum::<f64>() / 2.0
            };
            let row = |(tag, runs): (&str, Vec<&(Value, Value)>)| json!({ "tag": tag, "p50_us": mean_of_two(&runs), "runs": 2 });
            by_tag.into_iter().map(row).collect()
        }
        "Which run of a tag had the best tail, and when?" => {
            let row = |(tag, runs): (&str, Vec<&(Value, Value)>)| {
                let tail = |run: &&(Value, Value)| microseconds(&run.1, "p99");
                let best = runs.into_iter().min_by(|a, b| tail(a).total_cmp(&tail(b))).unwrap();
                json!({ "tag": tag, "run": best.0["id"], "p99_us": tail(&best),
                    "when": best.0["ended_unix_ms"] })
            };
            by_tag.into_iter().map(row).collect()
        }
        "Which rate belongs to which command?" => {
            let row = |(run, document): &(Value, Value)| {
                let of = &document["runs"][0];
                let (metric, case) = match run["kind"].as_str().unwrap() {
                    "measure-stream" => {
                        ("bits_per_s", format!("tcp, forward, {} B, 1 flow", of["message_bytes"]))
                    }
                    _ => {
                        let sizes = format!("{}/{}", of["request_bytes"], of["response_bytes"]);
                        ("transactions_per_s", format!("tcp, {sizes} B, 1 flow"))
                    }
                };
                json!({ "id": run["id"], "tag": run["tag"], "command": command(run), "case": case,
                    "metric": metric, "value": of[metric] })
            };
            runs.iter().filter(|(run, _)| run["kind"] != "doctor").map(row).collect()
        }
        _ => return None,
    })
}

/// What `inspect` of the two captured hosts says that a query about facts must answer.
fn expected_of_facts(title: &str, runs: &[(Value, Value)]) -> Vec<Value> {
    let hosts = ["bond", "queues"].map(sysctls);
    match title {
        "What is a setting on each host?" => {
            let row = |(run, all): (&(Value, Value), &BTreeMap<String, String>)| {
                json!({ "host": run.0["host"], "kernel": run.0["kernel"],
                    "congestion_control": all["net.ipv4.tcp_congestion_control"] })
            };
            runs.iter().zip(&hosts).map(row).collect()
        }
        "Which settings differ between hosts?" => {
            let both = hosts[0]
                .iter()
                .filter(|(name, value)| hosts[1].get(*name).is_some_and(|other| other != *value));
            let rows: Vec<_> = both.map(|(name, _)| json!({ "name": name, "values": 2 })).collect();
            assert!(!rows.is_empty(), "the two captured hosts have the same settings");
            rows
        }
        other => panic!("the page asks {other:?}, and no test knows the answer"),
    }
}

#[test]
fn every_query_of_the_page_is_answered_as_history_says() {
    let kept = kept();
    let runs = kept.runs();
    let queries = queries();
    assert_eq!(queries.len(), 9, "{queries:#?}");
    let texts: Vec<String> = queries.iter().map(|(_, query)| query.clone()).collect();
    kept.export(&[]);
    let of_all = duckdb(kept.folder.path(), &texts);
    // Settings of this host may change meanwhile; those of captured hosts do not.
    kept.export(&["--kind", "doctor"]);
    let facts: Vec<usize> =
        (0..queries.len()).filter(|n| expected(&queries[*n].0, &runs).is_none()).collect();
    let texts: Vec<String> = facts.iter().map(|n| texts[*n].clone()).collect();
    let of_captured = duckdb(kept.folder.path(), &texts);
    for ((title, _), rows) in queries.iter().zip(of_all) {
        if let Some(want) = expected(title, &runs) {
            assert_rows(title, &rows, &want);
        }
    }
    for (n, rows) in facts.into_iter().zip(of_captured) {
        assert_rows(&queries[n].0, &rows, &expected_of_facts(&queries[n].0, &runs));
    }
}
