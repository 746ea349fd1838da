#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use serde::Serialize;

use super::*;

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Pair(u8, &'static str);

#[derive(Serialize)]
struct Wrapped(f64);

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Bare,
    One(i64),
    Two(u8, u8),
    Named { left: Option<u8>, right: Vec<u8> },
    Nothing {},
}

#[derive(Serialize)]
#[serde(tag = "kind")]
enum Tagged {
    A { x: u8 },
    B,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Either {
    Number(u64),
    Text(String),
}

#[derive(Serialize)]
struct Flat {
    own: bool,
    #[serde(flatten)]
    more: BTreeMap<String, i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u8>,
}

#[derive(Serialize)]
struct All {
    scalars: (bool, i8, i64, u64, i128, f32, char),
    floats: Vec<f64>,
    texts: Vec<String>,
    none: Option<u8>,
    unit: (),
    unit_struct: Unit,
    pair: Pair,
    wrapped: Wrapped,
    kinds: Vec<Kind>,
    tagged: [Tagged; 2],
    either: Vec<Either>,
    flat: Flat,
    by_number: BTreeMap<i32, Vec<Vec<u8>>>,
    by_kind: BTreeMap<Kind, ()>,
    by_character: BTreeMap<char, BTreeMap<bool, u8>>,
    empty_map: BTreeMap<String, u8>,
    value: serde_json::Value,
}

fn all() -> All {
    let texts =
        ["", "plain", "\"quoted\" \\ /", "\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}", "ä€𝄞\u{2028}"];
    All {
        scalars: (true, -128, i64::MIN, u64::MAX, i128::MIN, 0.1, '"'),
        floats: vec![0.0, -0.0, 1.0, 1e300, 5e-324, f64::NAN, f64::INFINITY, 1.0 / 3.0],
        texts: texts.map(str::to_owned).to_vec(),
        none: None,
        unit: (),
        unit_struct: Unit,
        pair: Pair(7, "seven"),
        wrapped: Wrapped(1.5),
        kinds: vec![
            Kind::Bare,
            Kind::One(-1),
            Kind::Two(1, 2),
            Kind::Named { left: Some(1), right: vec![] },
            Kind::Nothing {},
        ],
        tagged: [Tagged::A { x: 1 }, Tagged::B],
        either: vec![Either::Number(3), Either::Text("three".to_owned())],
        flat: Flat { own: false, more: [("a".to_owned(), 1)].into(), skipped: None },
        by_number: [(-3, vec![vec![], vec![1, 2]]), (4, vec![])].into(),
        by_kind: [(Kind::Bare, ())].into(),
        by_character: [('x', [(true, 1)].into())].into(),
        empty_map: BTreeMap::new(),
        value: serde_json::json!({"a": [1, -2.5, {"b": null}], "c": "d"}),
    }
}

fn written(document: &impl Serialize, layout: Layout) -> (String, usize) {
    let (mut bytes, mut pieces) = (Vec::new(), 0);
    write(document, layout, &mut |piece| {
        bytes.extend_from_slice(piece);
        pieces += 1;
        Ok(())
    })
    .unwrap();
    (String::from_utf8(bytes).unwrap(), pieces)
}

#[test]
fn each_byte_is_as_serde_json_writes_it() {
    let document = all();
    assert_eq!(text(&document).unwrap(), serde_json::to_string(&document).unwrap());
    assert_eq!(written(&document, Layout::Line).0, serde_json::to_string(&document).unwrap());
    let pretty = serde_json::to_string_pretty(&document).unwrap();
    assert_eq!(written(&document, Layout::Indented).0, pretty);
    for small in [serde_json::json!([]), serde_json::json!({}), serde_json::json!([[], {}])] {
        let pretty = serde_json::to_string_pretty(&small).unwrap();
        assert_eq!(written(&small, Layout::Indented).0, pretty);
    }
}

#[test]
fn a_large_document_comes_in_pieces_and_is_the_same() {
    let many: Vec<All> = (0..200).map(|_| all()).collect();
    let (bytes, pieces) = written(&many, Layout::Line);
    assert_eq!(bytes, serde_json::to_string(&many).unwrap());
    let whole = bytes.len().div_ceil(64 << 10);
    assert!((whole / 2..=whole).contains(&pieces) && pieces > 2, "{pieces} of {}", bytes.len());
}

#[test]
fn a_full_disk_and_keys_that_are_no_text_are_errors() {
    let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error = write(&all(), Layout::Line, &mut |_| Err(full())).unwrap_err();
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::StorageFull);
    let many: Vec<All> = (0..200).map(|_| all()).collect();
    let mut calls = 0;
    let refuses = &mut |_: &[u8]| {
        calls += 1;
        Err(full())
    };
    assert!(matches!(write(&many, Layout::Line, refuses), Err(Error::Destination(_))));
    assert_eq!(calls, 1, "the first refusal ends it");
    let keys: BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
    assert_eq!(text(&keys).unwrap_err().to_string(), "key must be a string");
    assert_eq!(serde_json::to_string(&keys).unwrap_err().to_string(), "key must be a string");
}
