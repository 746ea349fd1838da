//! The script language of `measure pg` beside the real pgbench's.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use support::postgres::{Postgres, Setup};

#[test]
fn a_postgresql_of_the_tests_own_starts_again_and_asks_for_passwords_where_told() {
    let mut server = Postgres::with(&Setup {
        hba: "host all all 127.0.0.1/32 scram-sha-256",
        ..Setup::default()
    });
    server.sql("create role guest login password 'secret'; create table kept as select 7 as n");
    let ask = |password: &str| {
        let url = server.url("guest");
        let mut psql = server.tool("psql");
        psql.env("PGPASSWORD", password).args([&url, "-XAtc", "select current_user"]);
        psql.output().unwrap()
    };
    assert_eq!(ask("secret").stdout, b"guest\n");
    assert!(String::from_utf8_lossy(&ask("wrong").stderr).contains("password"));
    server.stop();
    server.run();
    assert_eq!(server.sql("select n from kept"), "7\n");
    let folder = server.folder().to_owned();
    drop(server);
    assert!(!folder.exists());
}
