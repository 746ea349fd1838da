#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::{
    BitsPerSec, Bytes, Reading,
    lint::{LineVerdict, LintDocument, LintHost, LintLine, NotFollowed, Place},
};

use super::{sarif, text};
use crate::TextStyle;

fn line(number: u32, setting: &str, value: &str, verdict: LineVerdict, why: &str) -> LintLine {
    LintLine {
        file: "etc/sysctl.conf".into(),
        line: number,
        place: Place::SysctlFile,
        setting: setting.into(),
        value: value.into(),
        verdict,
        why: why.into(),
        find_out: String::new(),
        source: "ip-sysctl.rst".into(),
        default: Reading::Known("1".into()),
        unit: String::new(),
        overridden_by: None,
        whole: true,
    }
}

fn document() -> LintDocument {
    let depends = LintLine {
        find_out: "`ss -ti`".into(),
        ..line(9, "nic.eth0.mtu", "9000", LineVerdict::Depends, "depends on the path")
    };
    LintDocument {
        schema_version: 1,
        host: LintHost {
            source: "live".into(),
            name: Reading::Known("vm".into()),
            kernel: Reading::Known("6.18.1".into()),
            memory_bytes: Reading::Known(Bytes(16 << 30)),
            nic_speed_bps: Reading::Known(BitsPerSec(10_000_000_000)),
            given: vec!["memory".into()],
        },
        files: vec!["etc/sysctl.conf".into()],
        lines: vec![
            line(
                3,
                "sysctl.net.ipv4.tcp_sack",
                "0",
                LineVerdict::Harmful,
                "loss recovery needs it",
            ),
            line(5, "sysctl.a.b", "\x1b[2J", LineVerdict::Unknown, "not known"),
            depends,
        ],
        not_followed: vec![NotFollowed {
            file: "x.sh".into(),
            line: 4,
            what: "ssh runs it on another host or in another namespace".into(),
        }],
        notes: vec!["a note".into()],
    }
}

#[test]
fn the_answer_stands_in_the_first_two_lines() {
    let look = TextStyle { width: 80, colour: false, verbose: false };
    let page = text(&document(), look);
    let mut lines = page.lines();
    assert_eq!(
        lines.next(),
        Some("3 lines: 1 harmful, 1 depends, 1 unknown to us; 1 not followed")
    );
    let host = lines.next().unwrap();
    assert!(host.contains("Linux 6.18.1") && host.contains("16 GiB (given)"), "{host}");
    assert!(!page.contains('\x1b'), "{page:?}");
    let unwrapped = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("find out: `ss -ti`") && page.contains("a note"), "{page}");
    assert!(unwrapped.contains("NOT FOLLOWED x.sh:4 ssh runs it on another host"), "{page}");
    assert!(page.lines().all(|l| l.chars().count() <= 80), "{page}");
}

/// The properties that SARIF 2.1.0 requires, and its enumerations.
#[test]
fn sarif_has_what_the_standard_requires() {
    let sarif = sarif(&document());
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    assert!(run["tool"]["driver"]["name"].is_string());
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "what is unknown is no result");
    for result in results {
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
        assert!(result["message"]["text"].is_string());
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "etc/sysctl.conf");
        assert!(place["region"]["startLine"].as_u64().unwrap() >= 1);
    }
}
