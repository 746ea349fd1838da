//! Every parser of outside bytes, by crate, for the tests and for `fuzz/`.

/// A parser's name, and the function that feeds it bytes.
pub type Parser = (&'static str, fn(&[u8]));

/// The crates that have parsers; their seeds are in `crates/CRATE/tests/seeds/PARSER`.
pub const CRATES: &[(&str, &[Parser])] = &[
    ("interop", interop::PARSERS),
    ("lab", lab::PARSERS),
    ("parse", parse::PARSERS),
    ("probe", probe::PARSERS),
    ("prove", prove::PARSERS),
    ("traffic", traffic::PARSERS),
    ("tune", tune::PARSERS),
    ("workloads", workloads::PARSERS),
];
