//! Tests of measurements and their server, against known truths and real programs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod clients_mutated;
mod iperf3;
mod measure_bad_ends;
mod measure_connect;
mod measure_http;
mod measure_http_ends;
mod measure_https;
mod measure_offload;
mod measure_pg;
mod measure_pg_tls;
mod measure_redis;
mod measure_rtt;
mod mesh;
mod pg_script;
mod qperf;
mod serve_attacked;
mod serve_hostile;
mod serve_mutated;
mod stream;

#[path = "../support/mod.rs"]
mod support;
