//! Tests of a server that refuses clients, statements or passwords, or disappears.

use std::{process::Stdio, time::Duration};

use super::{Database, command, document, measure, path, script, sound};
use crate::support::postgres::{Postgres, Setup};
use model::Warning;

#[test]
fn clients_that_the_server_does_not_admit_are_said_in_its_own_words() {
    let conf = "max_connections = 12\nsuperuser_reserved_connections = 3\n";
    let server = Postgres::with(&Setup { conf, ..Setup::default() });
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port);
    // A client that is not admitted takes a due transaction along, so that of a few all may fail.
    for more in [&[][..], &["--rate", "200"]] {
        let args = [&url, "--script", "select1", "--flows", "30", "--duration", "500ms"];
        let run = document(&measure(&[&args, more].concat())).runs.remove(0);
        assert!(run.transactions > 0, "{run:?}");
        let said = run.warnings.iter().map(Warning::to_string).collect::<Vec<_>>().join("; ");
        assert!(said.contains("× 53300: sorry, too many clients already"), "{more:?}: {said}");
        assert!(said.contains("of 30 clients were not connected"), "{more:?}: {said}");
        // The server admits 12 at most, and one may still belong to a client that just left.
        let served = said.split(" of 30 clients had no answer").next().unwrap_or_default();
        let silent = served.rsplit(' ').next().unwrap_or_default().parse::<u32>();
        assert!(silent.is_ok_and(|n| (18..30).contains(&n)), "{more:?}: {said}");
    }
}

#[test]
fn serialization_failures_count_or_are_tried_again() {
    let own = Database::new("create table one (n bigint); insert into one values (0)");
    let file = script(
        "begin isolation level repeatable read;\nselect n from one;\n\\sleep 1 ms\n\
         update one set n = n + 1;\nend;\n",
    );
    let base = ["--script", path(&file), "--transactions", "200", "--flows", "4", "--warmup", "1s"];
    let run = own.one(&base);
    assert!(run.failed > 0 && run.retried == 0, "{run:?}");
    assert_eq!(run.failures.keys().count(), 1, "{:?}", run.failures);
    assert!(run.failures.keys().all(|why| why.starts_with("40001: ")), "{:?}", run.failures);
    assert_eq!(run.transactions + run.failed, 200);
    assert_eq!(own.sql("select n from one"), run.transactions.to_string());
    let all = own.one(&[&base[..], &["--max-tries", "0", "--protocol", "prepared"]].concat());
    assert_eq!((all.transactions, all.failed), (200, 0), "{:?}", all.failures);
    assert!(all.retries >= all.retried && all.retried > 0);
    let n = (run.transactions + all.transactions).to_string();
    assert_eq!(own.sql("select n from one"), n);
}

#[test]
fn statements_that_fail_now_and_then_count_by_their_sqlstate() {
    let own = Database::new("create sequence s");
    let file = script("begin;\nselect 1 / (nextval('s') % 4);\nend;\n");
    for protocol in ["simple", "extended", "prepared"] {
        let args = ["--script", path(&file), "--transactions", "100", "--protocol", protocol];
        let run = own.one(&args);
        assert_eq!((run.transactions, run.failed), (75, 25), "{protocol}");
        assert_eq!(run.failures.get("22012: division by zero"), Some(&25), "{:?}", run.failures);
    }
}

#[test]
fn the_server_asks_for_passwords_and_gets_them() {
    let server = Postgres::with(&Setup {
        hba: "host all scram 127.0.0.1/32 scram-sha-256\nhost all old 127.0.0.1/32 md5\n\
              host all plain 127.0.0.1/32 password\nlocal all scram scram-sha-256",
        ..Setup::default()
    });
    server.sql(
        "create role scram login password 'se c:ret\\'; create role plain login password 'p'; \
         set password_encryption = 'md5'; create role old login password 'alt'",
    );
    let port = server.port.to_string();
    let url = |user: &str| format!("pg://{user}@127.0.0.1:{port}/postgres");
    let try_out = |target: &str, env: &[(&str, &str)]| {
        let mut command = command(&[target, "--script", "select1", "--transactions", "20"]);
        command.args(["--flows", "2", "--json"]).envs(env.iter().copied());
        command.output().unwrap()
    };
    for (target, password) in [
        (url("scram"), "se c:ret\\"),
        (url("old"), "alt"),
        (url("plain"), "p"),
        (format!("host={} port={port} user=scram", server.folder().display()), "se c:ret\\"),
    ] {
        let target = target.replace("user=scram", "user=scram dbname=postgres");
        let out = document(&try_out(&target, &[("PGPASSWORD", password)]));
        assert_eq!((out.runs[0].transactions, out.runs[0].failed), (20, 0));
        for wrong in [&[("PGPASSWORD", "wrong")][..], &[]] {
            let out = try_out(&target, wrong);
            let text = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), Some(3), "{target} {wrong:?}: {text}");
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(text.contains("password"), "{text}");
        }
    }
    // A password in the string is used, and in no result.
    let typed = url("scram").replace("scram@", "scram:se%20c%3Aret%5C@");
    let out = try_out(&typed, &[]);
    assert_eq!(document(&out).runs[0].transactions, 20);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(!text.contains("c:ret") && !text.contains("se%20c"), "a password is in the result");
    let file = script(&format!("127.0.0.1:{port}:*:old:alt\n"));
    let env = [("PGPASSFILE", path(&file)), ("PGUSER", "old"), ("PGPORT", &port)];
    let out = document(&try_out("host=127.0.0.1 dbname=postgres", &env));
    assert_eq!(out.runs[0].transactions, 20);
}

#[test]
fn a_server_that_restarts_in_the_midst_is_connected_to_again_and_its_failures_count() {
    let mut server = Postgres::start();
    let child = command(&[&server.url("postgres"), "--json", "--script", "select1"])
        .args(["--duration", "6s", "--flows", "2", "--protocol", "prepared"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    server.stop();
    server.run();
    let document = document(&child.wait_with_output().unwrap());
    let run = &document.runs[0];
    sound(run);
    assert!(run.failed > 0, "{:?}", run.failures);
    let named = |what: &str| run.failures.keys().any(|why| why.contains(what));
    assert!(named("ECONNREFUSED") || named("57P0"), "{:?}", run.failures);
    assert!(run.connect_ns.count >= 4, "each client was connected twice: {:?}", run.connect_ns);
    assert!(run.transactions > 20 && !document.interrupted);
}

#[test]
fn a_server_of_another_kind_is_recognised() {
    use crate::support::http::{Request, Server};
    let server = Server::start(|_: &Request, to| {
        use std::io::Write;
        let _ = to.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        false
    });
    let address = server.url("").replace("http://", "postgres://u@");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ssh = format!("postgres://u@{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::Write;
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n");
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    for (url, says) in [(ssh, "none of PostgreSQL's"), (address, "")] {
        let out = command(&[&format!("{url}?connect_timeout=1")]).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(4), "{text}");
        assert!(text.contains(says) && text.lines().count() == 1, "{text}");
    }
}
