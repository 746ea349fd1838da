//! The experiment files shipped beside the documentation are valid.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{fs, path::Path};

use prove::{Experiment, spec};

#[test]
fn every_experiment_of_the_docs_is_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab");
    let mut seen = 0;
    for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if path.extension().is_some_and(|e| e == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let spec = spec::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            Experiment::check(spec, &name).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            seen += 1;
        }
    }
    assert!(seen >= 1);
}
