//! The walk of a newcomer: the commands of `docs/first-page.md`, taken from the page, from the practice
//! hosts to the page for a boss. The link's delay is the injected truth.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::support::{NETWRIGHT, needs_root};

/// The lab's name in this test, and on the page.
const LAB: (&str, &str) = ("nwtest-page", "practice");

/// What the preset adds to each round trip, nanoseconds.
const DELAY_NS: f64 = 80_000.0;

/// The commands of the page, on a lab of another name and with less time for each.
fn commands() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-page.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```sh\n").unwrap();
    let commands = rest.split("```").next().unwrap();
    let shorter = [
        (LAB.1, LAB.0),
        ("netwright explain ", "netwright explain --duration 1s --max-duration 3s "),
        ("--duration 8s", "--duration 4s"),
        ("--window 5s", "--window 2s"),
    ];
    shorter.into_iter().fold(commands.to_owned(), |all, (from, to)| {
        assert!(all.contains(from), "{from} is not in {all}");
        all.replace(from, to)
    })
}

/// Removes the lab, also after a panic.
struct Removed;

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = Command::new(NETWRIGHT).args(["lab", "down", LAB.0]).output();
    }
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&[&out.stdout[..], &out.stderr].concat()).into_owned()
}

#[test]
fn a_newcomer_comes_from_the_latency_preset_to_a_page() {
    needs_root();
    let (folder, _removed) = (tempfile::tempdir().unwrap(), Removed);
    let store = folder.path().join("h.sqlite");
    let bin = Path::new(NETWRIGHT).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut walk = Command::new("bash");
    walk.args(["-uxc", &commands()]).current_dir(folder.path()).stdin(Stdio::null());
    let out = walk.env("PATH", path).env("NETWRIGHT_STORE", &store).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", said(&out));

    let netwright = |args: &[&str]| {
        let out = Command::new(NETWRIGHT).args(args).env("NETWRIGHT_STORE", &store).output();
        String::from_utf8(out.unwrap().stdout).unwrap()
    };
    let json = |args: &[&str]| -> Value { serde_json::from_str(&netwright(args)).unwrap() };
    let listed = json(&["history", "list", "--tag", "boss", "--json"]);
    let run = |kind: &str| {
        let of_kind = listed["runs"].as_array().unwrap().iter().find(|r| r["kind"] == kind);
        of_kind.unwrap_or_else(|| panic!("no {kind} in {listed}\n{}", said(&out))).clone()
    };
    let document = |kind: &str| json(&["history", "show", &run(kind)["id"].to_string(), "--json"]);

    // The predicted and the measured response times contain the link's delay.
    let most_per_s = 1e9 / DELAY_NS;
    let explained = document("explain");
    let predictions = explained["predictions"].as_array().unwrap();
    let there = predictions.iter().find(|p| p["path"] == "host=10.99.0.1").unwrap();
    assert!(there["predicted_per_s"].as_f64().unwrap() < most_per_s, "{there}");
    let measured = &document("measure-redis")["runs"][0];
    assert!(measured["transactions_per_s"].as_f64().unwrap() < most_per_s, "{measured}");
    assert!(measured["latency_ns"]["p50"].as_f64().unwrap() > DELAY_NS, "{measured}");

    let page = fs::read_to_string(folder.path().join("boss.html")).unwrap();
    let (_, story) = page.split_once(">In short</h2>").expect("a story");
    let (story, chapters) = story.split_once("<h2 id=\"run-1-heading\">").expect("chapters");
    for part in
        ["What limits", "What was measured", "Predicted over the path to 10.99.0.1 with 1 client"]
    {
        assert!(story.contains(part), "{part} is not in {story}");
    }
    for part in run("measure-redis")["headline"].as_str().unwrap().split(", ") {
        let shown = part.starts_with("p99") || story.contains(part);
        assert!(shown, "{part} is not in {story}");
    }
    for part in ["Diagnosis of ", "Response time of redis://127.0.0.1", "redis://10.99.0.2", "<svg"]
    {
        assert!(chapters.contains(part), "{part} is not in {chapters}");
    }
    assert!(
        page.contains("<title>Redis on two lab hosts: from loopback to the network</title>"),
        "{page}"
    );
    assert!(!netwright(&["lab", "list"]).contains(LAB.0), "the last command removed the lab");
}
