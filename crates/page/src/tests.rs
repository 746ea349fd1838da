//! Real documents as pages: every figure is the document's, nothing is loaded, and no name becomes
//! markup.

use roxmltree::{Document as Xml, Node};
use serde_json::Value;

use crate::{Format, NotADocument, page, read};

/// Documents of real runs, by name.
const DOCUMENTS: [(&str, &str); 14] = [
    ("doctor", include_str!("../tests/documents/doctor.json")),
    ("rtt", include_str!("../tests/documents/rtt.json")),
    ("rtt-flows", include_str!("../tests/documents/rtt-flows.json")),
    ("rtt-open", include_str!("../tests/documents/rtt-open.json")),
    ("stream", include_str!("../tests/documents/stream.json")),
    ("connect", include_str!("../tests/documents/connect.json")),
    ("explain", include_str!("../tests/documents/explain.json")),
    ("prove", include_str!("../tests/documents/prove.json")),
    ("fix", include_str!("../tests/documents/fix.json")),
    ("compare", include_str!("../tests/documents/compare.json")),
    ("http", include_str!("../tests/documents/http.json")),
    ("pg", include_str!("../tests/documents/pg.json")),
    ("redis", include_str!("../tests/documents/redis.json")),
    ("passive", include_str!("../tests/documents/passive.json")),
];

/// The page of one document. It is also well-formed XML, so that a strict parser reads it.
fn html(text: &str) -> String {
    let document = read("run.json", text).unwrap();
    let page = page(&[document], None, Format::Html);
    page.strip_prefix("<!DOCTYPE html>\n").expect("a document type").to_owned()
}

fn elements<'a>(xml: &'a Xml<'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    xml.descendants().filter(move |n| n.has_tag_name(name))
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter_map(|n| n.text().filter(|_| n.is_text())).collect()
}

/// The value of a printed figure, and half of its last digit.
fn printed(text: &str, pointer: &str) -> (f64, f64) {
    let text = text.replace(',', "");
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let scale = match unit.trim() {
        "" | "ns" | "/s" | "bit/s" | "B" => 1.0,
        "µs" | "kbit/s" => 1e3,
        "ms" | "Mbit/s" => 1e6,
        "s" if pointer.ends_with("_s") => 1.0,
        "s" | "Gbit/s" => 1e9,
        "%" => 0.01,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        other => panic!("{text:?} at {pointer} has the unit {other:?}"),
    };
    let decimals = digits.split_once('.').map_or(0, |(_, d)| d.len());
    let number: f64 = digits.parse().unwrap_or_else(|_| panic!("{text:?} at {pointer}"));
    // Three significant digits are what a figure of 100 and more has with a unit.
    (number * scale, 0.5 * scale * 10f64.powi(-(decimals as i32)))
}

#[test]
fn every_figure_of_a_table_is_the_documents() {
    for (name, source) in DOCUMENTS {
        let value: Value = serde_json::from_str(source).unwrap();
        let html = html(source);
        let xml = Xml::parse(&html).unwrap();
        let mut seen = 0;
        for cell in elements(&xml, "td") {
            let shown = text(cell);
            let Some(pointer) = cell.attribute("data-at") else {
                let without =
                    ["–", "0", "not known", "within noise of 0"].contains(&shown.as_str());
                let figure = cell.attribute("class") == Some("figure");
                assert!(!figure || without, "{name}: {shown:?} has no place in the document");
                continue;
            };
            let truth = value.pointer(pointer).and_then(Value::as_f64);
            let truth = truth.unwrap_or_else(|| panic!("{name}: no number at {pointer}"));
            if shown == "< 0.001" {
                assert!(truth < 0.001, "{name}: {pointer} is {truth}");
                continue;
            }
            let (figure, half) = printed(&shown, pointer);
            let off = (figure - truth).abs();
            assert!(off <= half * 1.001, "{name}: {shown} at {pointer}, which is {truth}");
            seen += 1;
        }
        let least = if ["fix", "doctor", "passive"].contains(&name) { 10 } else { 20 };
        assert!(seen >= least, "{name}: only {seen} figures");
    }
}

#[test]
fn a_figure_that_is_off_by_its_last_digit_is_found() {
    assert_eq!(printed("12.3 µs", "/x_ns"), (12_300.0, 50.0));
    assert_eq!(printed("-5.1%", "/x"), (-0.051, 0.0005));
    assert_eq!(printed("1,234/s", "/x"), (1234.0, 0.5));
    assert_eq!(printed("1.50 s", "/start_s"), (1.5, 0.005));
}

#[test]
fn a_page_loads_nothing_and_has_no_script() {
    for (name, source) in DOCUMENTS {
        let html = html(source);
        let xml = Xml::parse(&html).unwrap();
        for node in xml.descendants().filter(Node::is_element) {
            let tag = node.tag_name().name();
            assert!(
                !["script", "iframe", "object", "embed", "form", "base"].contains(&tag),
                "{name}: {tag}"
            );
            for a in node.attributes() {
                assert!(
                    !a.name().starts_with("on") && a.name() != "style",
                    "{name}: {tag} {}",
                    a.name()
                );
                let loads = ["src", "href", "data", "action"].contains(&a.name());
                assert!(
                    !loads || a.value().starts_with("data:") || a.value().starts_with('#'),
                    "{name}: {tag} loads {}",
                    a.value()
                );
            }
        }
        let style: String = elements(&xml, "style").map(text).collect();
        assert!(!style.contains("url(") && !style.contains("@import"), "{name}");
        let policy = elements(&xml, "meta")
            .find(|m| m.attribute("http-equiv") == Some("Content-Security-Policy"))
            .and_then(|m| m.attribute("content"));
        assert!(policy.is_some_and(|p| p.starts_with("default-src 'none';")), "{name}: {policy:?}");
    }
}

#[test]
fn every_chart_has_a_name_and_a_table_behind_it() {
    let mut charts = 0;
    for (name, source) in DOCUMENTS {
        let html = html(source);
        let xml = Xml::parse(&html).unwrap();
        for figure in elements(&xml, "figure") {
            let inside = |tag: &str| figure.descendants().filter(|n| n.has_tag_name(tag)).count();
            assert_eq!(inside("svg"), 2, "{name}: a chart for a phone and one for a desk");
            assert_eq!((inside("table"), inside("figcaption")), (1, 1), "{name}");
            charts += 1;
        }
        for svg in elements(&xml, "svg") {
            assert_eq!(svg.attribute("role"), Some("img"));
            assert!(svg.attribute("aria-label").is_some_and(|l| l.len() > 20), "{name}");
            let bad =
                svg.descendants().flat_map(|n| n.attributes()).find(|a| a.value().contains("NaN"));
            assert!(bad.is_none(), "{name}: {bad:?}");
        }
        for table in elements(&xml, "table") {
            let caption = table.children().find(|n| n.has_tag_name("caption")).map(text);
            assert!(caption.is_some_and(|c| !c.is_empty()), "{name}: a table without caption");
            let columns = |row: Node<'_, '_>| row.children().filter(Node::is_element).count();
            let mut rows = table.descendants().filter(|n| n.has_tag_name("tr")).map(columns);
            let heads = rows.next().unwrap();
            assert!(rows.all(|r| r == heads), "{name}: {:?} is ragged", text(table));
        }
        let titles: Vec<usize> = ["h1", "h2", "h3"].map(|h| elements(&xml, h).count()).into();
        assert!(titles[0] == 1 && titles[1] >= 2 && titles[2] >= 2, "{name}: {titles:?}");
    }
    assert!(charts >= 12, "{charts} charts");
}

/// Every text that the document's type takes as it comes, replaced.
fn with_hostile_texts(source: &str, hostile: &str) -> (String, usize) {
    fn places(value: &Value, at: &str, all: &mut Vec<String>) {
        match value {
            Value::String(_) => all.push(at.to_owned()),
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(n, v)| places(v, &format!("{at}/{n}"), all));
            }
            Value::Object(map) => map
                .iter()
                .for_each(|(k, v)| places(v, &format!("{at}/{}", crate::document::key(k)), all)),
            _ => {}
        }
    }
    let mut value: Value = serde_json::from_str(source).unwrap();
    let mut all = vec![];
    places(&value, "", &mut all);
    let mut replaced = 0;
    for place in all.iter().filter(|p| *p != "/kind") {
        let mut next = value.clone();
        *next.pointer_mut(place).unwrap() = Value::String(hostile.to_owned());
        if read("run.json", &next.to_string()).is_ok() {
            value = next;
            replaced += 1;
        }
    }
    (value.to_string(), replaced)
}

#[test]
fn hostile_texts_are_shown_as_text() {
    const HOSTILE: &str = "</td></title><script>alert(1)</script><img src=x onerror='alert(2)'>\" \
                           onload=\"alert(3) &lt; \x1b[31m \u{202e}txt.exe ``` | [x](javascript:1)\n# h";
    for (name, source) in DOCUMENTS {
        let (document, replaced) = with_hostile_texts(source, HOSTILE);
        assert!(replaced >= 5, "{name}: only {replaced} texts were replaced");
        let html = html(&document);
        let xml = Xml::parse(&html).unwrap_or_else(|e| panic!("{name}: {e}"));
        let ours = html_of_our_own(source);
        for node in xml.descendants().filter(Node::is_element) {
            let tag = node.tag_name().name();
            assert!(ours.contains(tag), "{name}: a text became <{tag}>");
            assert!(node.attributes().all(|a| !a.name().starts_with("on")), "{name}: {tag}");
        }
        assert!(text(xml.root()).contains("<script>alert(1)</script>"), "{name}: not shown");
        let read = crate::read(HOSTILE, &document).unwrap();
        let markdown = page(&[read], Some(HOSTILE), Format::Markdown);
        for page in [&html, &markdown] {
            assert!(!page.contains(['\x1b', '\u{202e}']), "{name}: a control character is left");
        }
        for line in without_code(&markdown) {
            assert!(!line.contains("<script") && !line.contains("<img"), "{name}: {line}");
        }
    }
}

/// The lines of a Markdown text outside fenced blocks, without their code spans.
fn without_code(markdown: &str) -> Vec<String> {
    let ticks = |text: &str| text.len() - text.trim_start_matches('`').len();
    let mut fence = 0;
    let mut lines = vec![];
    for line in markdown.lines() {
        match (fence, ticks(line)) {
            (0, n) if n >= 3 => fence = n,
            (0, _) => lines.push(line),
            (open, n) if n >= open && line.trim_matches('`').is_empty() => fence = 0,
            _ => {}
        }
    }
    assert_eq!(fence, 0, "a block of code is not closed");
    let spans = |line: &&str| {
        let (mut out, mut rest) = (String::new(), line.replace("\\`", ""));
        while let Some(at) = rest.find('`') {
            let n = ticks(&rest[at..]);
            let inside = rest[at + n..].to_owned();
            let runs = |text: &str| {
                let mut from = 0;
                while let Some(next) = text[from..].find('`') {
                    match ticks(&text[from + next..]) {
                        k if k == n => return Some(from + next),
                        k => from += next + k,
                    }
                }
                None
            };
            out += &rest[..at];
            let end = runs(&inside).unwrap_or_else(|| panic!("an open code span: {line}"));
            rest = inside[end + n..].to_owned();
        }
        out + &rest
    };
    lines.iter().map(spans).collect()
}

/// The elements of an honest page, and those that only a warning would add.
fn html_of_our_own(source: &str) -> std::collections::BTreeSet<String> {
    let html = html(source);
    let xml = Xml::parse(&html).unwrap();
    let names = xml.descendants().filter(Node::is_element).map(|n| n.tag_name().name().to_owned());
    names
        .chain(["ul", "li", "p", "strong", "details", "summary", "pre"].map(String::from))
        .collect()
}

#[test]
fn what_is_no_document_is_said_in_one_line() {
    let refused = |text: &str| read("x", text).unwrap_err();
    assert!(matches!(refused(""), NotADocument::NotJson(_)));
    assert!(matches!(refused("{\"a\": "), NotADocument::NotJson(_)));
    assert_eq!(refused("{\"a\": 1}"), NotADocument::Unknown);
    assert_eq!(refused("[1]"), NotADocument::Unknown);
    assert_eq!(
        refused("{\"schema_version\":1,\"kind\":\"pg-init\"}"),
        NotADocument::NoPage("pg-init".into())
    );
    let plan = "{\"schema_version\":1,\"changes\":[],\"host\":{}}";
    assert_eq!(refused(plan), NotADocument::OtherDocument);
    let two = format!("{0}\n{0}", DOCUMENTS[1].1);
    assert_eq!(refused(&two), NotADocument::Several);
    let newer = "{\"schema_version\":99,\"kind\":\"rtt\"}";
    let NotADocument::Unreadable { kind: "measure rtt", why } = refused(newer) else { panic!() };
    assert!(why.contains("a newer netwright wrote it") && !why.contains('\n'), "{why}");
}

#[test]
fn every_prefix_of_a_document_is_refused_and_none_panics() {
    for (name, source) in DOCUMENTS {
        for end in (0..source.trim_end().len()).step_by(211).filter(|n| source.is_char_boundary(*n))
        {
            assert!(read("x", &source[..end]).is_err(), "{name} cut at {end}");
        }
    }
}

#[test]
fn several_documents_make_one_story_in_the_order_of_the_work() {
    let documents: Vec<_> = ["fix", "stream", "doctor"]
        .iter()
        .map(|name| {
            let (_, text) = DOCUMENTS.iter().find(|d| d.0 == *name).unwrap();
            read(&format!("{name}.json"), text).unwrap()
        })
        .collect();
    let page = page(&documents, Some("Slow <db>"), Format::Html);
    let xml = Xml::parse(page.strip_prefix("<!DOCTYPE html>\n").unwrap()).unwrap();
    let titles: Vec<String> = elements(&xml, "h2").map(text).collect();
    assert_eq!(titles, ["In short", "Diagnosis of vm", "Streams to 127.0.0.1", "Remedies tried"]);
    assert_eq!(elements(&xml, "h1").map(text).collect::<String>(), "Slow <db>");
    let story: Vec<String> = elements(&xml, "h3").take(4).map(text).collect();
    assert_eq!(story, ["What limits", "What was measured", "What was changed", "What it gave"]);
}

#[test]
fn a_diagnosis_without_a_finding_comes_last_and_says_when_cpu_time_was_short() {
    let mut doctor = value("doctor");
    doctor["findings"] = serde_json::json!([]);
    doctor["window"]["packets"] = 1_000_000.into();
    doctor["window"]["cpu"] = serde_json::json!({
        "busy_share": 1.0, "cpus": 2, "busy_cpus": "0-1", "waiting_share": 0.9,
    });
    let stream = read("stream.json", DOCUMENTS.iter().find(|d| d.0 == "stream").unwrap().1);
    let documents = [read("doctor.json", &doctor.to_string()).unwrap(), stream.unwrap()];
    let markdown = page(&documents, None, Format::Markdown);
    let at = |what: &str| markdown.find(what).unwrap_or_else(|| panic!("no {what}:\n{markdown}"));
    assert!(at("## Streams to") < at("## Diagnosis of vm"));
    let story = &markdown[..at("## Streams to")];
    assert!(story.contains("with all CPUs busy"), "{story}");
    assert!(story.contains("what runs here needs more CPU time than there is"), "{story}");
    assert!(!story.contains("Nothing limits"), "{story}");
}

#[test]
fn the_story_of_explain_has_its_intervals_and_says_what_loopback_is() {
    let mut explain = value("explain");
    explain["sum"]["conclusive"] = true.into();
    explain["components"][1]["reported"] = false.into();
    let markdown = page(&[read("x", &explain.to_string()).unwrap()], None, Format::Markdown);
    for part in [
        "with 1 client:** 1,324/s on this path",
        "(95% interval 281 µs to 404 µs)",
        "which on loopback is the kernel's time",
        "by the model the server limits throughput from about 1.6 clients on",
        "run it longer or on a quieter host",
    ] {
        assert!(markdown.contains(part), "{part} is missing:\n{markdown}");
    }
}

#[test]
fn a_ticket_has_the_story_and_the_tables() {
    let document = read("fix.json", DOCUMENTS[8].1).unwrap();
    let markdown = page(&[document], None, Format::Markdown);
    for part in
        ["# Remedies tried", "### What it gave", "**better**", "| candidate | outcome |", "```sh"]
    {
        assert!(markdown.contains(part), "{part} is missing:\n{markdown}");
    }
    assert!(markdown.contains("`sysctl.net.ipv4.tcp_rmem`"), "{markdown}");
}

/// A document of [`DOCUMENTS`] as JSON.
fn value(name: &str) -> Value {
    let (_, text) = DOCUMENTS.iter().find(|d| d.0 == name).unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_document() {
    assert!(read("x", &format!("\u{feff}{}", DOCUMENTS[1].1)).is_ok());
}

#[test]
fn measurements_of_one_target_differ_in_name_and_the_story_leads_to_each() {
    let names = ["before.json", "after.json"];
    let documents = names.map(|name| read(name, DOCUMENTS[1].1).unwrap());
    let page_of = |format| page(&documents, None, format);
    let html = page_of(Format::Html);
    let xml = Xml::parse(html.strip_prefix("<!DOCTYPE html>\n").unwrap()).unwrap();
    let titles: Vec<String> = elements(&xml, "h2").map(text).collect();
    let story = xml.descendants().find(|n| n.attribute("id") == Some("story")).unwrap();
    let said: Vec<String> =
        story.descendants().filter(|n| n.has_tag_name("li")).map(text).collect();
    for name in names {
        let part = format!("({name})");
        assert_eq!(titles.iter().filter(|t| t.ends_with(&part)).count(), 1, "{titles:?}");
        assert_eq!(said.iter().filter(|t| t.contains(&part)).count(), 1, "{said:?}");
        assert!(page_of(Format::Markdown).contains(&part));
    }
    let links: Vec<&str> = elements(&xml, "a").filter_map(|a| a.attribute("href")).collect();
    assert_eq!(links, ["#run-1", "#run-2"]);
    for link in links {
        let id = link.trim_start_matches('#');
        assert!(xml.descendants().any(|n| n.attribute("id") == Some(id)), "{link} leads nowhere");
    }
}

#[test]
fn kernel_counters_of_a_sweep_stand_beside_their_run_and_zero_is_zero() {
    let mut sweep = value("rtt-flows");
    let runs = sweep["runs"].as_array_mut().unwrap();
    assert!(runs.len() > 2);
    for (n, run) in runs.iter_mut().enumerate() {
        let grown = serde_json::json!({ format!("Tcp.Made{n}"): 1000 + n });
        run["evidence"] = serde_json::json!({ "local": grown, "peer": {} });
    }
    let html = html(&sweep.to_string());
    let xml = Xml::parse(&html).unwrap();
    let rows = elements(&xml, "tr")
        .map(|r| r.children().filter(Node::is_element).map(text).collect::<Vec<_>>());
    let rows: Vec<Vec<String>> =
        rows.filter(|r| r.len() == 4 && r[1].starts_with("Tcp.Made")).collect();
    assert_eq!(rows.len(), sweep["runs"].as_array().unwrap().len());
    assert_eq!(rows[1][1..], ["Tcp.Made1", "1,001", "0"]);
    assert_ne!(rows[0][0], rows[1][0], "each row names its run");
}

#[test]
fn a_rate_that_was_not_kept_is_in_the_story() {
    let mut open = value("rtt-open");
    let run = &mut open["runs"][0];
    run["target_per_s"] = 50_000.into();
    run["transactions_per_s"] = 31_250.0.into();
    let honest = html(&open.to_string());
    assert!(!honest.contains("was not kept"));
    let warning = serde_json::json!({
        "code": "rate_not_kept", "rate_per_s": 50_000, "per_s": 31_250.0, "at_once": 1,
        "lag_ns": 5_000_000, "not_started": 0, "what": "request", "places": "flows",
        "message": "--rate 50000 was not reached",
    });
    open["runs"][0]["warnings"] = serde_json::json!([warning]);
    let html = html(&open.to_string());
    let xml = Xml::parse(&html).unwrap();
    let story = xml.descendants().find(|n| n.attribute("id") == Some("story")).map(text).unwrap();
    assert!(story.contains("the rate of 50,000/s was not kept: 31,250/s"), "{story}");
}
