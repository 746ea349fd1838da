//! Runs every command once with a release-like build: a panic aborts, and overflows and assertions
//! are unchecked. The other suites run the debug build; differences between the two show here. It is
//! also built as `make static` builds it, and installed where there is no library.

mod bare;
mod packages;
mod version;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::support::{
    NETWRIGHT, http, postgres::Postgres, redis::Redis, run, schema, serve::Serve, tuned::on_a_host,
};

/// Commands with subcommands of their own.
const FAMILIES: [&str; 4] = ["history", "lab", "measure", "tune"];

/// What the build is told: the same after each commit, so that only a change of the sources builds anew.
const COMMIT: &str = "5e0f";

/// The commands in a help text.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|l| *l != "Commands:").skip(1);
    let lines = lines.take_while(|l| !l.is_empty()).filter(|l| l.starts_with("  "));
    lines
        .filter_map(|l| l.strip_prefix("  "))
        .filter(|l| !l.starts_with(' '))
        .filter_map(|l| l.split(' ').next())
        .filter(|c| *c != "help")
        .map(str::to_owned)
        .collect()
}

/// What a build says of each thing that it made, as cargo's JSON messages; built once.
fn artifacts() -> &'static [serde_json::Value] {
    static BUILT: OnceLock<Vec<serde_json::Value>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let script = repository().join("scripts/static");
        let args = ["--profile", "smoke", "--message-format", "json-render-diagnostics"];
        let mut build = Command::new(script);
        build.args(args).env_remove("TARGET").env("NETWRIGHT_COMMIT", COMMIT);
        let out = build.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    })
}

/// The program as `make static` builds it, but cheaply (`[profile.smoke]`).
fn built() -> &'static Path {
    let mut programs = artifacts().iter().filter_map(|m| m["executable"].as_str());
    Path::new(programs.next_back().expect("no program was built"))
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The program, and the commands that were run.
struct Smoke {
    program: PathBuf,
    state: tempfile::TempDir,
    ran: BTreeSet<String>,
}

impl Smoke {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(&self.state).env("NETWRIGHT_STATE", self.state.path());
        command.env_remove("SSH_CONNECTION").env_remove("NETWRIGHT_SECRET");
        command
    }

    /// Runs a command that must end with one of these exit codes; returns its output.
    fn run(&mut self, args: &[&str], codes: &[i32]) -> String {
        let out = schema::ended(&mut self.command(args));
        let err = String::from_utf8_lossy(&out.stderr);
        let code = out.status.code().unwrap_or_else(|| panic!("{args:?}: {}: {err}", out.status));
        assert!(codes.contains(&code), "{args:?}: exit code {code}: {err}");
        self.name(args);
        String::from_utf8(out.stdout).unwrap()
    }

    fn name(&mut self, args: &[&str]) {
        let words = if FAMILIES.contains(&args[0]) { 2 } else { 1 };
        self.ran.insert(args[..words].join(" "));
    }

    fn looks(&mut self) {
        self.run(&["schema", "doctor"], &[0]);
        self.run(&["inspect", "--json"], &[0]);
        let own = std::process::id().to_string();
        self.run(&["place", "--json", "--pid", &own], &[0]);
        self.run(&["doctor", "--json", "--window", "300ms"], &[0]);
        self.run(&["watch", "--json", "--interval", "200ms", "--duration", "400ms"], &[0]);
        self.run(&["watch", "--serve", "0", "--no-bpf", "--duration", "400ms"], &[0]);
        self.run(&["export", "--once", "--interval", "200ms"], &[0]);
        self.run(&["snapshot", "-o", "host.tar.zst", "--window", "200ms"], &[0]);
        let of_snapshot = self.run(&["inspect", "--json", "--root", "host.tar.zst"], &[0]);
        assert!(of_snapshot.contains("\"nics\""), "{of_snapshot}");
        std::fs::write(self.state.path().join("old.conf"), "net.ipv4.tcp_sack = 0\n").unwrap();
        let judged = self.run(&["lint", "--json", "--root", "host.tar.zst", "old.conf"], &[1]);
        assert!(judged.contains("\"harmful\""), "{judged}");
    }

    fn changes(&mut self) {
        let changes = ["nic.v0.mtu=1400", "sysctl.net.core.somaxconn=8192"];
        self.run(&["tune", "profiles", "--json"], &[0]);
        self.run(&[&["tune", "plan", "--json"][..], &changes].concat(), &[0]);
        self.run(&[&["tune", "apply", "--json", "--confirm", "60s"][..], &changes].concat(), &[0]);
        let mtu = || std::fs::read_to_string("/sys/class/net/v0/mtu").unwrap();
        assert_eq!(mtu(), "1400\n");
        self.run(&["tune", "confirm", "--json"], &[0]);
        self.run(&["tune", "status", "--json"], &[0]);
        self.run(&["tune", "persist", "--dry-run", "--json"], &[0]);
        self.run(&["tune", "rollback", "--json"], &[0]);
        self.run(&["tune", "log", "--json"], &[0]);
        assert_eq!(mtu(), "1500\n");
    }

    fn traffic(&mut self) {
        let serve = Serve::of(self.command(&["serve", "--json", "--port", "0"]));
        self.name(&["serve"]);
        let short = ["--duration", "500ms", "--json"];
        for kind in ["rtt", "stream", "connect"] {
            self.run(&[&["measure", kind, serve.target()][..], &short].concat(), &[0]);
        }
        self.run(&["measure", "offload", serve.target(), "--json"], &[0]);
        std::fs::write(self.state.path().join("peers"), format!("me\n{}\n", serve.target()))
            .unwrap();
        self.run(&["mesh", "--peers", "peers", "--self", "me", "--once", "--json"], &[0]);
        let server = http::Server::start(http::plain);
        self.run(&[&["measure", "http", &server.url("/")][..], &short].concat(), &[0]);
        let database = Postgres::start();
        let select = ["--script", "select1"];
        let url = database.url("postgres");
        self.run(&[&["measure", "pg", &url][..], &select, &short].concat(), &[0]);
        let cache = Redis::start(&[]);
        self.run(&[&["measure", "redis", &cache.url()][..], &short].concat(), &[0]);
        let target = format!("rtt://{}", serve.target());
        // "Inconclusive" and "not better" are answers too.
        self.run(
            &["explain", &target, "--json", "--round", "30ms", "--duration", "500ms"],
            &[0, 1],
        );
    }

    fn experiments(&mut self) {
        let figure = ["--metric", "x=/x = ([0-9]+)/:higher", "--runs", "32", "--json"];
        let levels = ["--command", "echo x = {level}000", "--level", "1", "--level", "2"];
        self.run(
            &[&["prove", "--quiet", "--record", "r.jsonl"][..], &levels, &figure].concat(),
            &[0],
        );
        let workload = "echo x = $(cat /proc/sys/net/core/somaxconn)";
        let args = ["fix", "--yes", "--window", "200ms", "--command", workload];
        let more = ["--try", "sysctl.net.core.somaxconn=8192"];
        self.run(&[&args[..], &more, &figure].concat(), &[0]);
    }

    fn verdicts(&mut self) {
        for (name, from) in [("before", 100), ("after", 90)] {
            let rows: String = (from..from + 8).map(|n| format!("{n}\n")).collect();
            std::fs::write(self.state.path().join(name), rows).unwrap();
        }
        let args = ["compare", "before", "after", "--metric", "value:lower", "--json"];
        let document = self.run(&args, &[0]);
        assert!(document.contains("\"better\""), "{document}");
        std::fs::write(self.state.path().join("compare.json"), document).unwrap();
        let page = self.run(&["report", "compare.json"], &[0]);
        assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    }

    fn history(&mut self) {
        let own = ["--store", "history.sqlite"];
        self.run(&[&["doctor", "--window", "200ms", "--tag", "t"][..], &own].concat(), &[0]);
        let listed = self.run(&[&["history", "list", "--json"][..], &own].concat(), &[0]);
        assert!(listed.contains("\"tag\":\"t\""), "{listed}");
        self.run(&[&["history", "show", "1"][..], &own].concat(), &[0]);
        self.run(&[&["history", "diff", "1", "1"][..], &own].concat(), &[0]);
        self.run(&[&["history", "export", "-o", "runs.ndjson.gz"][..], &own].concat(), &[0]);
        self.run(&[&["history", "import", "runs.ndjson.gz"][..], &own].concat(), &[0]);
        self.run(&[&["history", "prune", "--keep", "0"][..], &own].concat(), &[0]);
    }

    fn lab(&mut self) {
        let name = format!("t{}-smoke", std::process::id());
        self.run(&["lab", "up", "pair", "-q", "--name", &name], &[0]);
        let listed = self.run(&["lab", "list"], &[0]);
        assert!(listed.contains(&name), "{listed}");
        let said = self.run(&["lab", "exec", &format!("{name}/left"), "--", "echo", "there"], &[0]);
        assert_eq!(said, "there\n");
        self.run(&["lab", "down", &name], &[0]);
    }
}

#[test]
fn every_command_works_as_released() {
    let (program, state) = (built().to_owned(), tempfile::tempdir().unwrap());
    let mut smoke = Smoke { program, state, ran: BTreeSet::new() };
    smoke.lab();
    on_a_host(|_| {
        smoke.looks();
        smoke.changes();
        smoke.traffic();
        smoke.experiments();
        smoke.verdicts();
        smoke.history();
    });
    let mut offered = BTreeSet::new();
    for command in commands(&run(NETWRIGHT, &["--help"])) {
        if FAMILIES.contains(&command.as_str()) {
            let of = commands(&run(NETWRIGHT, &[&command, "--help"]));
            offered.extend(of.into_iter().map(|c| format!("{command} {c}")));
        } else {
            offered.insert(command);
        }
    }
    assert_eq!(smoke.ran, offered, "what was run, against what `netwright --help` names");
    assert!(smoke.ran.len() > 20);
}

#[test]
fn as_released_a_panic_aborts() {
    // Checks that the profile differs from the debug build as the release does; otherwise this suite
    // would be pointless.
    let text = std::fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let profile = |name: &str| {
        let from = text.split(&format!("[profile.{name}]\n")).nth(1).unwrap();
        from.split("\n[").next().unwrap().to_owned()
    };
    let (smoke, release) = (profile("smoke"), profile("release"));
    for line in ["panic = \"abort\"", "strip = \"symbols\"", "debug = false"] {
        assert!(smoke.contains(line) && release.contains(line), "{line}: {smoke} and {release}");
    }
    for check in ["overflow-checks", "debug-assertions"] {
        assert!(smoke.contains(&format!("{check} = false")), "{check}: {smoke}");
        // Its default.
        assert!(!release.contains(check), "{check}: {release}");
    }
}
