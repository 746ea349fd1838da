use model::{
    Samples,
    watch::{WatchRecord, test_data},
};
use roxmltree::Document as Xml;
use serde_json::Value;

use super::*;

fn record(cpus: u32, turn: u64) -> WatchRecord {
    WatchRecord { interval: test_data::interval(cpus, turn), findings: vec![] }
}

#[test]
fn only_the_script_and_the_style_of_the_page_may_be_used() {
    let html = page("abc123");
    assert!(policy("abc123").starts_with("default-src 'none'; script-src 'nonce-abc123'; "));
    for part in ["<script nonce=\"abc123\"", "<style nonce=\"abc123\""] {
        assert_eq!(html.matches(part).count(), 1, "{part}");
    }
    let tags = html.matches("<script").count() + html.matches("<style").count();
    assert_eq!((tags, html.matches(" style=").count()), (2, 0));
    // Without its script the page is well-formed.
    let (before, rest) = html.split_once("<script").unwrap();
    let (script, after) = rest.split_once("</script>").unwrap();
    let whole = format!("{before}{after}");
    Xml::parse(whole.strip_prefix("<!DOCTYPE html>\n").unwrap()).unwrap();
    for refused in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "http:"]
    {
        let namespace = script.replace("http://www.w3.org/2000/svg", "");
        assert!(!namespace.contains(refused), "{refused}");
    }
}

#[test]
fn a_browser_that_comes_later_has_the_history() {
    let mut live = Live::new(test_data::host(2, 1), false);
    let length = |live: &Live| {
        let hello: Value = serde_json::from_str(&live.hello()).unwrap();
        hello["history"].as_array().unwrap().len()
    };
    assert_eq!(length(&live), 0);
    for turn in 0..3 {
        live.interval(&record(2, turn));
    }
    assert_eq!(length(&live), 2, "the newest follows as an event");
    for turn in 0..300 {
        live.interval(&record(2, turn));
    }
    assert_eq!(length(&live), HISTORY - 1);
}

#[test]
fn an_event_has_bounds() {
    let mut live = Live::new(test_data::host(512, 4), true);
    let text = live.interval(&record(512, 0));
    assert!(text.len() < 200_000 && !text.contains('\n'), "{}", text.len());
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(event["bars"]["cpus"].as_array().unwrap().len(), 16);
    assert_eq!(
        (event["cpus"]["rows"].as_array().unwrap().len(), &event["cpus"]["of"]),
        (100, &512.into())
    );
    let shares = &event["bars"]["cpus"][0]["shares"];
    let sum: f64 = shares.as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).sum();
    assert!(sum > 0.0 && sum <= event["bars"]["full"].as_f64().unwrap(), "{shares}");
}

#[test]
fn a_host_without_counters_has_no_traffic() {
    let mut live = Live::new(test_data::host(1, 1), false);
    let mut record = record(1, 0);
    let names = |live: &mut Live, record: &WatchRecord| {
        let event: Value = serde_json::from_str(&live.interval(record)).unwrap();
        let names = event["headline"].as_array().unwrap().iter().map(|f| f["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&mut live, &record), ["Softirq, busiest CPU", "Softirq, mean"]);
    let samples: Samples = test_data::samples();
    record.interval.samples = model::Reading::Known(samples);
    assert!(names(&mut live, &record).contains(&"Drops".into()));
}
