//! Replays the corpus: `seeds/<parser>/*` are real kernel files, and whatever the fuzzer found
//! since. Each is read whole, cut at every length (a file that shrinks while it is read), and
//! with each byte changed.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may read its own corpus"
)]

use std::{collections::BTreeSet, fs, path::PathBuf};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds"))
}

fn names(folder: &PathBuf) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

/// Lengths to cut at: all of a short file, and as many of a long one as stay quick.
fn lengths(len: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(len.div_ceil(400).max(1))
}

#[test]
fn every_parser_has_seeds_and_every_seed_a_parser() {
    let parsers: BTreeSet<String> = parse::PARSERS.iter().map(|p| p.0.to_owned()).collect();
    assert_eq!(names(&folder()), parsers, "folders of tests/seeds against parse::PARSERS");
    for parser in parsers {
        assert!(!names(&folder().join(&parser)).is_empty(), "{parser} has no seed");
    }
}

#[test]
fn no_seed_breaks_its_parser_whole_cut_or_changed() {
    for (name, parser) in parse::PARSERS {
        for seed in names(&folder().join(name)) {
            let mut bytes = fs::read(folder().join(name).join(&seed)).unwrap();
            // A panic's own message does not say which input it was.
            let at = |what: &str| println!("{name}/{seed} {what}");
            at("whole");
            parser(&bytes);
            for end in lengths(bytes.len()) {
                at(&format!("cut at {end}"));
                parser(&bytes[..end]);
            }
            for i in lengths(bytes.len()) {
                for new in [0x00, 0xff, b'9', b' ', b'\n', b':', b'-'] {
                    at(&format!("with byte {i} set to {new}"));
                    let old = std::mem::replace(&mut bytes[i], new);
                    parser(&bytes);
                    bytes[i] = old;
                }
            }
        }
    }
}
