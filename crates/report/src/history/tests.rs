use model::history::{HistoryList, HistoryRun};

use super::*;

fn run(id: u64, kind: &str, tag: &str, headline: &str) -> HistoryRun {
    HistoryRun {
        id,
        ended_unix_ms: 1_782_914_403_000 + 60_000 * id,
        host: "db1".into(),
        host_fingerprint: "00112233445566aa".into(),
        kernel: "6.18.44".into(),
        netwright: "0.1.0".into(),
        command: vec!["measure".into(), "rtt".into(), "web1".into()],
        kind: kind.into(),
        tag: tag.into(),
        exit_code: 0,
        headline: headline.into(),
        change: None,
    }
}

fn listed(runs: Vec<HistoryRun>) -> String {
    let d = HistoryList {
        schema_version: 1,
        kind: "history_list".into(),
        store: "/var/lib/netwright/history.sqlite".into(),
        runs,
    };
    list(&d, TextStyle { width: 80, colour: false, verbose: false })
}

#[test]
fn a_run_is_a_line() {
    let text = listed(vec![
        run(2, "measure-rtt", "after", "p50 50.3 µs, p99 67.1 µs, 19,955/s"),
        run(1, "doctor", "", "no finding, 46 rules passed"),
    ]);
    assert_eq!(
        text,
        "ID  TIME (UTC)        KIND         TAG    RESULT\n \
         2  2026-07-01 14:02  measure-rtt  after  p50 50.3 µs, p99 67.1 µs, 19,955/s\n \
         1  2026-07-01 14:01  doctor              no finding, 46 rules passed\n"
    );
    assert_eq!(listed(vec![]), "No such run in /var/lib/netwright/history.sqlite.\n");
}

#[test]
fn hostile_names_are_shown_as_text() {
    let mut hostile = run(1, "measure-rtt", "\u{1b}]0;x\u{7}", "\u{1b}[2Jgone");
    hostile.host = "a\nb".into();
    hostile.command = vec!["\u{1b}[31m".into()];
    let look = TextStyle { width: 80, colour: false, verbose: true };
    let mut other = hostile.clone();
    other.host = "c".into();
    let text = listed(vec![hostile.clone(), other]) + &head(&hostile, look);
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
}

#[test]
fn a_kind_without_a_page_has_none() {
    let look = TextStyle { width: 80, colour: false, verbose: false };
    assert_eq!(page("measure-rtt", "{}", look), None);
    assert_eq!(page("next-year", "{}", look), None);
    assert_eq!(headline("next-year", "{}"), "");
    assert_eq!(headline("measure-rtt", "{\"runs\": []}"), "nothing was measured");
}
