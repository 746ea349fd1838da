//! One parser of the list, chosen by the environment variable `PARSER` (`traffic/control`): a new
//! one is fuzzed without a new target. Without it, prints the names.
#![no_main]

#[path = "../../crates/netwright/tests/support/parsers.rs"]
mod parsers;

use std::sync::OnceLock;

static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("PARSER").unwrap_or_default();
        for (of, all) in parsers::CRATES {
            for (parser, feed) in *all {
                match format!("{of}/{parser}") {
                    one if one == name => drop(CHOSEN.set(*feed)),
                    one if name.is_empty() => println!("{one}"),
                    _ => {}
                }
            }
        }
        if CHOSEN.get().is_none() {
            std::process::exit(if name.is_empty() { 0 } else { 2 });
        }
    },
    |bytes: &[u8]| {
        if let Some(parser) = CHOSEN.get() {
            parser(bytes);
        }
    }
);
