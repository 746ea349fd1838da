//! Tests of the commands that read a host, and of every command's output: `inspect`, `snapshot`, `watch`,
//! `doctor`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod by_hand;
mod cli;
mod containers;
mod doctor_sockets;
mod export;
mod export_rules;
mod first_page;
mod fleet;
mod given;
mod history_queries;
mod kubernetes;
mod lint_files;
mod manuals;
mod planted_cpu;
mod planted_drops;
mod planted_lost;
mod planted_memory;
mod planted_queues;
mod planted_settings;
mod report;
mod schema;
mod smoke;
mod snapshot;
mod starved;
mod watch_movement;
mod watch_robust;
mod watch_serve;
mod watch_softirq;
mod watch_user;
mod watch_view;
mod watch_waits;
mod world_cpu;
mod world_irq;
mod world_links;
mod world_nic;
mod world_process;
mod world_sysctl;
mod world_sysctl_versions;
mod world_tuner;

#[path = "../support/mod.rs"]
mod support;

/// What `src/exit.rs`, which the module `cli` tests, needs of the program.
#[path = "../../src/failure.rs"]
#[allow(dead_code, reason = "only the panic hook is tried")]
mod failure;

/// Replaces the program's `output`, also for `src/exit.rs`.
mod output {
    pub fn note(line: &str) {
        eprintln!("netwright: {line}");
    }
}
