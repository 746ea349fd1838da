//! One parser of `parse::PARSERS` or `traffic::PARSERS`, chosen by the environment variable `PARSER`: a new parser is
//! fuzzed without a new target. Without it, prints the names.
#![no_main]

use std::sync::OnceLock;

static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("PARSER").unwrap_or_default();
        let parsers = || parse::PARSERS.iter().chain(traffic::PARSERS);
        match parsers().find(|p| p.0 == name) {
            Some((_, parser)) => drop(CHOSEN.set(*parser)),
            None => {
                for (name, _) in parsers() {
                    println!("{name}");
                }
                std::process::exit(if name.is_empty() { 0 } else { 2 });
            }
        }
    },
    |bytes: &[u8]| {
        if let Some(parser) = CHOSEN.get() {
            parser(bytes);
        }
    }
);
