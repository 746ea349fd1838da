//! Entry points for the fuzzers: experiment files, records and workload output. None may panic on
//! any input.

use std::{path::Path, time::Duration};

use crate::{
    Experiment,
    child::{ChildUsage, EndedRun},
    evidence, figure, record, spec,
};

/// A parser's name, and the function that feeds it bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of outside bytes in this crate, in ascending order.
pub const PARSERS: &[Parser] = &[
    ("experiment", experiment),
    ("experiment_record", record),
    ("workload_output", workload_output),
];

fn experiment(bytes: &[u8]) {
    let Ok(spec) = spec::parse(&String::from_utf8_lossy(bytes)) else { return };
    assert!(spec.differences(&spec).is_empty());
    let _ = Experiment::check(spec, "fuzzed");
}

/// Parses a record from a file.
fn record(bytes: &[u8]) {
    let _ = record::parsed(Path::new("fuzzed"), bytes, false);
}

/// Reads figures from workload output: of a measurement of ours, and by each kind of metric.
fn workload_output(bytes: &[u8]) {
    const SPEC: &str = "command = \"w {v}\"\nruns = 40\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n\
        [[metric]]\nname = \"a\"\njson = \"runs.0.rtt_ns.p50\"\nbetter = \"lower\"\n\
        [[metric]]\nname = \"b\"\nregex = \"tps = ([0-9.eE+-]+)\"\nbetter = \"higher\"\n";
    let said = String::from_utf8_lossy(bytes).into_owned();
    let _ = evidence::of_ours(&said, "transaction");
    let Ok(experiment) =
        spec::parse(SPEC).map_err(drop).and_then(|s| Experiment::check(s, "x").map_err(drop))
    else {
        unreachable!("the experiment of this file is one");
    };
    let ended =
        EndedRun { said, exit_code: 0, took: Duration::from_secs(1), usage: ChildUsage::default() };
    let figures = figure::of_run(&experiment, &experiment.workload, (&ended, ""), "");
    assert!(figures.iter().flat_map(|f| f.values()).all(|f| f.is_finite()));
}
