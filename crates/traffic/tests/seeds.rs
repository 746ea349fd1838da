//! Replays the corpus: `seeds/<parser>/*`, and whatever the fuzzer found since, whole, cut at
//! every length, and with each byte changed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeSet, fs, path::Path};

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn no_seed_breaks_its_parser_whole_cut_or_changed() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds"));
    let parsers: BTreeSet<String> = traffic::PARSERS.iter().map(|p| p.0.to_owned()).collect();
    assert_eq!(names(folder), parsers, "folders of tests/seeds against traffic::PARSERS");
    for (name, parser) in traffic::PARSERS {
        let seeds = names(&folder.join(name));
        assert!(!seeds.is_empty(), "{name} has no seed");
        for seed in seeds {
            let mut bytes = fs::read(folder.join(name).join(&seed)).unwrap();
            println!("{name}/{seed}");
            parser(&bytes);
            (0..bytes.len()).for_each(|end| parser(&bytes[..end]));
            for i in 0..bytes.len() {
                for new in [0x00, 0xff, b'9', b' ', b'\n', b':', b'-'] {
                    let old = std::mem::replace(&mut bytes[i], new);
                    parser(&bytes);
                    bytes[i] = old;
                }
            }
        }
    }
}
