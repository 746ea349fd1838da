//! Tests of PostgreSQL transactions with a real server, which counts them too.

mod failures;
mod pgbench;

use std::{
    process::{Command, Output, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use crate::support::{NETWRIGHT, postgres::Postgres, serve::Serve};
use model::{
    Warning,
    measure::{PgDocument, PgInitDocument, PgRun},
};

/// One server for the tests that do not change it.
static SERVER: LazyLock<Postgres> = LazyLock::new(Postgres::start);

/// A database for one test.
struct Database {
    server: &'static Postgres,
    name: String,
    url: String,
}

impl Database {
    fn new(sql: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = &*SERVER;
        let name = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
        server.sql(&format!("create database {name}"));
        let url = format!("postgres://postgres@127.0.0.1:{}/{name}", server.port);
        let own = Self { server, name, url };
        own.sql(sql);
        own
    }

    /// The same with pgbench's tables, made by pgbench.
    fn with_tables() -> Self {
        let own = Self::new("");
        let mut pgbench = own.server.tool("pgbench");
        let out = pgbench.args(["-i", "-q", "-s", "1", &own.name]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        own
    }

    fn sql(&self, sql: &str) -> String {
        let out = self
            .server
            .tool("psql")
            .args(["-v", "ON_ERROR_STOP=1", "-XAtqc", sql, "-d", &self.name])
            .output()
            .unwrap();
        assert!(out.status.success(), "{sql}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    fn measure(&self, args: &[&str]) -> PgDocument {
        document(&measure(&[&[self.url.as_str()], args].concat()))
    }

    fn one(&self, args: &[&str]) -> PgRun {
        let mut document = self.measure(args);
        assert!(!document.interrupted, "{args:?}");
        let run = document.runs.remove(0);
        sound(&run);
        run
    }
}

/// `netwright measure pg --json`, without this process's PG… environment.
fn measure(args: &[&str]) -> Output {
    command(&[&["--json"], args].concat()).output().unwrap()
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(NETWRIGHT);
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("PG") {
            command.env_remove(key);
        }
    }
    command.env("HOME", "/nonexistent").args(["measure", "pg"]).args(args);
    command
}

fn document(out: &Output) -> PgDocument {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Checks that apply to every run.
fn sound(run: &PgRun) {
    // With a schedule the times include transactions that ended after the window.
    let late = if run.target_per_s.is_some() { run.clients } else { 0 };
    let times = run.transactions..=run.transactions + u64::from(late);
    assert!(times.contains(&run.latency_ns.count), "{run:?}");
    assert_eq!(run.failures.values().sum::<u64>(), run.failed);
    assert_eq!(run.scripts.iter().map(|s| s.transactions).sum::<u64>(), run.transactions);
    let (with, without) =
        (run.transactions_per_s_with_connecting, run.transactions_per_s_without_connecting);
    assert!(with <= run.transactions_per_s && run.transactions_per_s <= without, "{run:?}");
}

#[test]
fn what_a_script_or_an_option_lacks_is_said() {
    let own = Database::new("");
    let unset = script("select :who;\n");
    let division = script("\\set x 1 + :who\nselect :x;\n");
    for (args, code, words) in [
        (&["--script", path(&unset)][..], 4, "--define who="),
        (&["--script", path(&division)], 2, "--define who="),
        (&["--congestion", "nosuch"], 2, "this kernel has"),
        (&["--driver", "pgbench", "--pipeline"], 2, "startpipeline"),
        (&["--driver", "pgbench", "--duration", "2500ms"], 2, "--duration 3s"),
        (&["--threads", "2"], 2, "1 flow cannot"),
        (&["--init", "--flows", "4"], 2, "--flows"),
    ] {
        let out = measure(&[&[own.url.as_str()], args].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    // With the real pgbench the file is named, too.
    let fails = script("select 1/0;\n");
    let name = path(&fails);
    let out = measure(&[&own.url, "--driver", "pgbench", "--script", name, "--duration", "1s"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains(&format!("{name}: ")), "{said}");
}

#[test]
fn transactions_that_send_the_server_nothing_are_reported() {
    let own = Database::new("");
    let (silent, asks) = (script("\\sleep 1 ms\n"), script("\\sleep 1 ms\nselect 1;\n"));
    let of = |args: &[&str]| {
        let run = own.one(&[&["--duration", "1s"], args].concat());
        assert!(run.transactions > 0, "{run:?}");
        let about = run.warnings.iter().map(Warning::to_string);
        let about = about.filter(|w| w.contains("statement") || w.contains("answer"));
        about.collect::<Vec<_>>().join("; ")
    };
    for driver in ["netwright", "pgbench"] {
        let said = of(&["--driver", driver, "--script", path(&silent)]);
        assert!(said.starts_with("no transaction sent the server a statement"), "{said}");
        assert!(!said.contains("no answer"), "{said}");
        let said = of(&["--driver", driver, "--script", path(&silent), "--script", path(&asks)]);
        assert!(said.contains(" transactions sent the server no statement ("), "{said}");
        assert_eq!(of(&["--driver", driver, "--script", path(&asks)]), "");
    }
}

/// A script file of the test's own.
fn script(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn path(file: &tempfile::NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

#[test]
fn the_history_has_as_many_rows_as_transactions_were_counted() {
    let own = Database::with_tables();
    let mut counted = 0;
    for args in [
        &["--protocol", "simple"][..],
        &["--protocol", "extended", "--threads", "2"],
        &["--protocol", "prepared"],
        &["--protocol", "prepared", "--pipeline"],
        &["--protocol", "prepared", "--connect-each"],
        &["--protocol", "simple", "--rate", "500"],
    ] {
        let all = ["--script", "tpcb-like", "--transactions", "101", "--flows", "3"];
        // Avoids deadlocks in the server: none with one statement at a time.
        let run = own.one(&[&all, args].concat());
        assert_eq!((run.transactions, run.failed, run.unfinished), (101, 0, 0), "{args:?}");
        assert_eq!(run.statements.get(), Some(101 * 7), "{args:?}");
        // A client that connects slowly may miss some of them.
        let connects = if run.connect_each { 101..=101 } else { 1..=3 };
        assert!(connects.contains(&run.connect_ns.count), "{args:?}: {:?}", run.connect_ns);
        counted += run.transactions;
        assert_eq!(own.sql("select count(*) from pgbench_history"), counted.to_string());
    }
    let sums = own.sql(
        "select (select sum(delta) from pgbench_history) = (select sum(abalance) from \
         pgbench_accounts), (select sum(tbalance) from pgbench_tellers) = (select sum(bbalance) \
         from pgbench_branches), count(distinct aid) > 300 from pgbench_history",
    );
    assert_eq!(sums, "t|t|t");
}

#[test]
fn the_tables_are_as_pgbench_makes_them_and_pgbench_works_on_them() {
    let (theirs, ours) =
        (Database::with_tables(), Database::new("create table pgbench_tellers ()"));
    let out = command(&[&ours.url, "--init", "--scale", "1"]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(text.starts_with("Made pgbench's tables of scale 1: 100,000 accounts"), "{text}");
    // Replaces the existing tables; the output is JSON.
    let out = measure(&[&ours.url, "--init"]);
    let made: PgInitDocument = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((made.kind.as_str(), made.scale, made.accounts), ("pg_init", 1, 100_000));
    assert!(made.copy_ns.0 + made.keys_ns.0 <= made.took_ns.0 && made.copy_ns.0 > 0, "{made:?}");
    assert!(made.peer.program.starts_with("PostgreSQL ") && made.warnings.is_empty(), "{made:?}");
    for sql in [
        "select relname, reloptions, relkind from pg_class where relname like 'pgbench%' order by 1",
        "select attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull from \
         pg_attribute where attrelid::regclass::text like 'pgbench%' and attnum > 0 order by \
         attrelid::regclass::text, attnum",
        "select md5(string_agg(a::text, '|' order by aid)) from pgbench_accounts a",
        "select string_agg(t::text, '|' order by tid) from pgbench_tellers t",
        "select string_agg(b::text, '|' order by bid) from pgbench_branches b",
        "select count(*) from pgbench_history",
    ] {
        assert_eq!(ours.sql(sql), theirs.sql(sql), "{sql}");
    }
    let mut pgbench = ours.server.tool("pgbench");
    let out = pgbench.args(["-t", "50", "-c", "2", &ours.name]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let run = ours.one(&["--script", "tpcb-like", "--transactions", "50"]);
    assert_eq!(run.failed, 0);
    assert_eq!(ours.sql("select count(*) from pgbench_history"), "150");
}

#[test]
fn scripts_are_chosen_by_weight_and_compute_as_they_say() {
    let own = Database::new("create table seen (client int, n bigint, big bool)");
    let text = "\\set n random(1, 10) * :factor\n\\if :n > 500\n\\set big true\n\\else\n\
                \\set big false\n\\endif\nselect :n + 1 as next, 'x' as word \\gset my_\n\
                insert into seen values (:client_id, :my_next - 1, :big);\n";
    let file = script(text);
    for protocol in ["simple", "extended", "prepared"] {
        let args = ["--define", "factor=100", "--transactions", "400", "--flows", "4"];
        let weighted = [&format!("{}@3", path(&file)), "select1@1"];
        let more = ["--protocol", protocol, "--script", weighted[0], "--script", weighted[1]];
        let run = own.one(&[&args[..], &more].concat());
        assert_eq!(run.transactions, 400, "{protocol}");
        let seen = own.sql(
            "with d as (delete from seen returning *) select count(*), max(client) < 4, \
             bool_and(big = (n > 500)), min(n % 100), count(distinct n) from d",
        );
        let of_script = run.scripts[0].transactions;
        assert_eq!(seen, format!("{of_script}|t|t|0|10"), "{protocol}");
        assert!((240..360).contains(&of_script), "{of_script} of 400 at 3 to 1");
    }
}

#[test]
fn a_servers_sleep_and_a_scripts_are_recovered() {
    let own = Database::new("");
    let at_server = script("select 1;\nselect pg_sleep(0.02);\n");
    let args = ["--script", path(&at_server), "--transactions", "40", "--flows", "2"];
    let run = own.one(&[&args[..], &["--per-statement"]].concat());
    // On a busy machine the smallest counts: other load only adds.
    assert!((20_000_000..30_000_000).contains(&run.latency_ns.min), "{:?}", run.latency_ns);
    let [quick, slow] = &run.scripts[0].statements[..] else { panic!("{:?}", run.scripts) };
    assert!(quick.latency_ns.min < 10_000_000, "{quick:?}");
    assert!((20_000_000..30_000_000).contains(&slow.latency_ns.min), "{slow:?}");
    assert_eq!((slow.latency_ns.count, slow.sql.as_str()), (40, "select pg_sleep(0.02)"));
    let here = script("\\sleep 20 ms\nselect 1;\n");
    let run = own.one(&["--script", path(&here), "--transactions", "40", "--per-statement"]);
    assert!((20_000_000..30_000_000).contains(&run.latency_ns.min), "{:?}", run.latency_ns);
    assert!(run.scripts[0].statements[0].latency_ns.min < 10_000_000);
}

#[test]
fn a_stall_is_seen_by_all_the_transactions_that_the_schedule_had_in_it() {
    let own = Database::new("create sequence s");
    let stalls = script("select pg_sleep(case when nextval('s') = 200 then 0.5 else 0 end);\n");
    let run = own.one(&["--script", path(&stalls), "--rate", "200", "--duration", "3s"]);
    // On a busy machine the window ends late, when the last ones may not have begun.
    let due = run.window_ns.0 as f64 * 200.0 / 1e9;
    let reported = run.transactions + run.not_started.known().unwrap() + run.unfinished;
    assert!((reported as f64 - due).abs() <= 2.0, "every one that was due: {due} {run:?}");
    assert!(run.latency_ns.p90 > 100_000_000, "{:?}", run.latency_ns);
    assert!(run.latency_ns.max >= 490_000_000, "{:?}", run.latency_ns);
    let sent = run.latency_from_send_ns.as_ref().unwrap();
    assert!(sent.p90 < run.latency_ns.p90 / 2, "from sending a single one shows it: {sent:?}");
    assert_eq!(run.failed, 0);
}

#[test]
fn by_schedule_a_server_is_as_fast_as_it_is_however_much_is_asked() {
    let own = Database::new("");
    let sleeps = script("select pg_sleep(0.01);\n");
    let args = [own.url.as_str(), "--script", path(&sleeps), "--flows", "2"];
    crate::support::beyond::open_loop_keeps_to_its_capacity(200.0, 2.0, &|more| {
        serde_json::to_value(document(&measure(&[&args, more].concat()))).unwrap()
    });
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    let own = Database::new("");
    let child = command(&[&own.url, "--json", "--script", "select1", "--duration", "60s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(2000));
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) };
    let document = document(&child.wait_with_output().unwrap());
    assert!(document.interrupted && document.runs[0].transactions > 0);
}

#[test]
fn a_responder_beside_the_server_tells_what_its_host_did() {
    let (own, responder) = (Database::new(""), Serve::start(&[]));
    for (driver, duration, clients, runs) in
        [("netwright", "400ms", "1,2", 2), ("pgbench", "1s", "1", 1)]
    {
        let args = ["--script", "select1", "--duration", duration, "--driver", driver];
        let look = ["--responder", responder.target(), "--flows", clients];
        let document = own.measure(&[&args[..], &look].concat());
        assert_eq!(document.runs.len(), runs, "it looks on at every run");
        for run in &document.runs {
            let peer = run.cpu.peer.known().expect("the server's CPU");
            assert!(peer.host_busy_per_unit_ns.known().is_some_and(|ns| *ns > 0.0), "{peer:?}");
            assert!(peer.threads_ns.known().is_none(), "the server's are not the responder's");
            let longer = peer.window_ns.0 as f64 / run.cpu.local.window_ns.0 as f64;
            assert!((0.5..2.0).contains(&longer), "{peer:?} {:?}", run.cpu.local);
            assert!(
                run.warnings.iter().all(|w| !w.to_string().contains("responder")),
                "{:?}",
                run.warnings
            );
        }
    }
    let few = ["--script", "select1", "--transactions", "50"];
    let run = own.one(&few);
    assert!(serde_json::to_string(&run.cpu.peer).unwrap().contains("--responder"));
    let elsewhere = Serve::start(&["--bind", "127.0.0.2"]);
    let run = own.one(&[&few[..], &["--responder", elsewhere.target()]].concat());
    let reported = run.warnings.iter().any(|w| w.to_string().contains("is not at the server's"));
    assert!(reported, "{:?}", run.warnings);
    let nobody = [own.url.as_str(), "--responder", "127.0.0.1:1"];
    let out = measure(&[&nobody[..], &few].concat());
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(4) && said.contains("netwright serve"), "{said}");
}

#[test]
fn rounds_are_repeated_until_the_interval_is_narrow_or_it_says_why_not() {
    let own = Database::new("");
    let round = ["--script", "select1", "--duration", "300ms", "--warmup", "50ms"];
    // Too narrow to be reached: as many rounds as there is time for.
    let narrow = ["--precision", "0.1%", "--max-time", "1500ms"];
    let run = own.one(&[&round[..], &narrow].concat());
    let width = |run: &PgRun| {
        let interval = run.latency_p50_interval_ns.as_ref()?;
        Some((interval.high - interval.low) / 2.0 / interval.value)
    };
    let reported =
        |run: &PgRun, what: &str| run.warnings.iter().any(|w| w.to_string().starts_with(what));
    let reached = width(&run).is_some_and(|w| w <= 0.001);
    assert!(reported(&run, "±0.1% was not reached") || reached, "{:?}", run.warnings);
    assert!(run.connect_ns.count >= run.window_ns.0 / 400_000_000, "a connection each round");
    // Wide enough to be reached, unless the machine changes all the time.
    let run = own.one(&[&round[..], &["--precision", "50%", "--max-time", "30s"]].concat());
    let reached = width(&run).is_some_and(|w| w <= 0.5);
    assert_ne!(reported(&run, "±50% was not reached"), reached, "{run:?}");
    let both = [own.url.as_str(), "--precision", "2%", "--transactions", "5"];
    assert_eq!(measure(&both).status.code(), Some(2));
}

#[test]
fn a_result_is_run_again_and_reads_well() {
    let own = Database::new("create sequence s");
    let count = script("select nextval('s');\n");
    let (folder, args) = (tempfile::tempdir().unwrap(), ["--transactions", "100"]);
    let file = folder.path().join("result.json");
    let file = file.to_str().unwrap();
    let more = ["--script", path(&count), "--flows", "1,2", "--output", file];
    let out = measure(&[&[own.url.as_str()], &args[..], &more].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = crate::support::run(NETWRIGHT, &["measure", "--rerun", file]);
    assert_eq!(own.sql("select last_value from s"), "400");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["over TCP to postgres://", "LATENCY P50", "CPU PER TRANSACTION", "CLIENTS"] {
        assert!(flat.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let own = Database::new("create table locked (); create role guest login");
    let url = own.url.as_str();
    let guest = own.url.replace("postgres@", "guest@");
    // A closed port: one that was just free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("postgres://{free}/");
    let nobase = own.url.replace(&own.name, "nobase");
    let broken = script("select 1;\n\\set n 1 +\n");
    let open = script("begin;\nselect 1;\n");
    let wrong = script("select 1;\nselect nothing from nowhere;\n");
    let denied = script("select * from locked;\n");
    let zero = script("\\set n 0\n\\set m 1 / :n\n");
    let at = |file: &tempfile::NamedTempFile, place: &str| format!("{}:{place}", path(file));
    for (args, code, says) in [
        (&["db1"][..], 2, "postgres://USER@HOST:PORT/DATABASE".to_owned()),
        (&["postgres://a/?sslmode=on"], 2, "write disable, allow".into()),
        (&[url, "--script", path(&broken)], 2, at(&broken, "2:")),
        (&[url, "--script", path(&open)], 2, at(&open, "2: it ends within a transaction")),
        (&[url, "--script", path(&zero)], 2, at(&zero, "2: \\set m: division by zero")),
        (&[url, "--script", path(&wrong)], 4, at(&wrong, "2:21: select nothing from nowhere: ")),
        (&[url, "--script", path(&wrong), "--protocol", "prepared"], 4, "(42P01)".into()),
        (&[&guest, "--script", path(&denied)], 3, "permission denied".into()),
        (&[url, "--script", "tpcb"], 4, "nor a built-in".into()),
        (&[url, "--script", "select-only"], 4, "--init".into()),
        (&[url, "--script", "select1", "--flows", "1", "--threads", "2"], 2, "2 threads".into()),
        (&[url, "--script", "select1", "--pipeline"], 2, "--protocol".into()),
        (&[&nobody], 4, "connection refused".into()),
        (&["host=/nonexistent"], 4, "no server listens there".into()),
        (&["postgres://no-such-host.invalid/"], 4, "does not resolve".into()),
        (&[&nobase, "--script", "select1"], 4, "\"nobase\" does not exist".into()),
    ] {
        let out = command(args).args(["--duration", "1s"]).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(&says), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    }
}

#[test]
fn each_second_is_reported_while_it_goes_on_and_in_the_result() {
    let own = Database::new("");
    let args = [own.url.as_str(), "--script", "select1", "--duration", "3s", "--flows", "2"];
    let out = command(&[&args[..], &["--json", "-P", "1"]].concat()).output().unwrap();
    let document = document(&out);
    let run = &document.runs[0];
    let said = String::from_utf8_lossy(&out.stderr);
    let lines: Vec<&str> = said.lines().filter(|l| l.starts_with("progress: ")).collect();
    assert_eq!((lines.len(), run.intervals.len()), (3, 3), "{said}");
    assert!(lines[0].starts_with("progress: 1.") && lines[0].ends_with(", 0 failed"), "{said}");
    let sum: u64 = run.intervals.iter().map(|i| i.transactions).sum();
    // A few more are made between the first reading and the window, and at its end.
    assert!(sum.abs_diff(run.transactions) <= run.transactions / 50 + 50, "{sum} {run:?}");
    for i in &run.intervals {
        assert!((0.8..1.3).contains(&(i.end_s - i.start_s)), "{i:?}");
        // Little's law: each of two clients always has one transaction.
        let busy = i.latency_mean_ns.get().unwrap() as f64 / 1e9 * i.transactions_per_s;
        assert!((1.0..2.1).contains(&busy), "{i:?}");
    }
    // Not requested, so it is in the result alone.
    let out = command(&[&args[..], &["--json"]].concat()).output().unwrap();
    assert!(!String::from_utf8_lossy(&out.stderr).contains("progress"));
    let failing = script("select 1 / 0;\n");
    let args = [own.url.as_str(), "--script", path(&failing), "--duration", "1s", "--json"];
    let out = command(&args).output().unwrap();
    let document: PgDocument = serde_json::from_slice(&out.stdout).unwrap();
    for i in &document.runs[0].intervals {
        assert!(i.failed > 0 && i.transactions == 0 && i.latency_mean_ns.get().is_none(), "{i:?}");
    }
}
