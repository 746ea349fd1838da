//! Tests of PostgreSQL over TLS, compared with libpq's `psql`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
    sync::LazyLock,
};

use crate::support::{
    NETWRIGHT,
    postgres::{Postgres, Setup},
    tls::{Authority, signs_itself},
};
use model::{
    explain::ExplainDocument,
    measure::{PgDocument, Transport},
};

/// A server with TLS, and the folder of its certificates.
struct Secured {
    server: Postgres,
    folder: tempfile::TempDir,
}

static SECURED: LazyLock<Secured> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    authority.signs("server", "DNS:localhost,IP:127.0.0.1", 30);
    authority.signs("anna", "DNS:anna", 30);
    signs_itself(folder.path(), "other", "DNS:localhost");
    fs::write(folder.path().join("garbage.crt"), "no certificate\n").unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (key, certificate, ca) = (read("server.key"), read("server.crt"), read("ca.crt"));
    fs::set_permissions(folder.path().join("anna.key"), fs::Permissions::from_mode(0o600)).unwrap();
    let files =
        [("server.key", key.as_str()), ("server.crt", &certificate), ("authority.crt", &ca)];
    let hba = "hostssl all covered 127.0.0.1/32 trust\nhostnossl all bare 127.0.0.1/32 trust\n\
               hostssl all anna 127.0.0.1/32 cert\nhost all secret 127.0.0.1/32 scram-sha-256\n\
               host all digest 127.0.0.1/32 md5\nhost all either 127.0.0.1/32 trust";
    let conf = "ssl = on\nssl_ca_file = 'authority.crt'\npassword_encryption = 'scram-sha-256'";
    let server = Postgres::with(&Setup { hba, conf, files: &files });
    for user in ["covered", "bare", "anna", "either"] {
        server.sql(&format!("create role {user} login"));
    }
    server.sql("create role secret login password 'pw'");
    server.sql("set password_encryption = 'md5'; create role digest login password 'pw'");
    Secured { server, folder }
});

impl Secured {
    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn string(&self, user: &str, more: &str) -> String {
        format!("host=localhost port={} user={user} dbname=postgres {more}", self.server.port)
    }
}

/// The command without this process's PG… environment.
fn bare(mut command: Command, home: &Path) -> Command {
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("PG") {
            command.env_remove(key);
        }
    }
    command.env("HOME", home).env("PGPASSWORD", "pw");
    command
}

fn measure(string: &str, home: &Path, more: &[&str]) -> Output {
    let mut command = bare(Command::new(NETWRIGHT), home);
    command.args(["measure", "pg", string, "--json", "-4", "--script", "select1"]);
    command.args(["--transactions", "20", "--warmup", "50ms"]).args(more).output().unwrap()
}

fn document(out: &Output) -> PgDocument {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Whether libpq gets a session, and whether it uses TLS.
fn libpq(string: &str, home: &Path) -> Option<bool> {
    let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    let mut psql = bare(Command::new(crate::support::postgres::tool("psql")), home);
    let out = psql.args(["-XAtwc", sql, "-d", string]).output().unwrap();
    out.status.success().then(|| out.stdout.starts_with(b"t"))
}

fn nowhere() -> &'static Path {
    Path::new("/nonexistent")
}

#[test]
fn each_sslmode_does_what_libpq_does_with_it() {
    let own = &*SECURED;
    let (root, other) = (own.file("ca.crt"), own.file("other.crt"));
    let (missing, garbage) = (own.file("missing.crt"), own.file("garbage.crt"));
    for user in ["either", "covered", "bare"] {
        for mode in ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] {
            for trusted in [None, Some(&root), Some(&other), Some(&missing), Some(&garbage)] {
                // Without TLS the trusted certificates do not matter.
                if mode == "disable" && trusted.is_some() {
                    continue;
                }
                // An unreadable file matters where libpq would use it.
                let unread = trusted.is_some_and(|t| [&missing, &garbage].contains(&t));
                let matters = user == "either" || mode == "prefer";
                if unread && !(matters && ["prefer", "require", "verify-ca"].contains(&mode)) {
                    continue;
                }
                let named = trusted.map_or(String::new(), |f| format!(" sslrootcert={f}"));
                let string = own.string(user, &format!("sslmode={mode}{named}"));
                let theirs = libpq(&string, nowhere());
                let out = measure(&string, nowhere(), &[]);
                let ours = out.status.success().then(|| {
                    let run = document(&out).runs.remove(0);
                    assert_eq!((run.transactions, run.failed), (20, 0), "{string}");
                    let verified = trusted.is_some_and(|t| *t != missing);
                    assert!(run.tls.as_ref().is_none_or(|t| t.verified == verified), "{run:?}");
                    // Both are reported: a failed TLS handshake, and a missing file.
                    let reported =
                        |what: &str| run.warnings.iter().any(|w| w.to_string().contains(what));
                    let in_clear = mode == "prefer" && run.tls.is_none();
                    assert_eq!(
                        reported("the connection is in clear"),
                        in_clear,
                        "{string}: {run:?}"
                    );
                    let lost = trusted == Some(&missing);
                    assert_eq!(
                        reported("the certificate is not checked"),
                        lost,
                        "{string}: {run:?}"
                    );
                    run.tls.is_some()
                });
                let why = String::from_utf8_lossy(&out.stderr);
                assert_eq!(ours, theirs, "{string}: {why}");
                assert!(ours.is_some() || why.lines().count() == 1, "{why}");
                assert!(ours.is_some() || matches!(out.status.code(), Some(3 | 4)), "{why}");
            }
        }
    }
}

#[test]
fn a_certificate_for_another_name_does_for_verify_ca_alone() {
    let own = &*SECURED;
    let root = own.file("ca.crt");
    // The certificate is for localhost and 127.0.0.1.
    let port = own.server.port;
    let at = |host: &str, mode: &str| {
        format!(
            "host={host} hostaddr=127.0.0.1 port={port} user=either dbname=postgres \
             sslmode={mode} sslrootcert={root}"
        )
    };
    for (host, mode, fits) in [
        ("localhost", "verify-full", true),
        ("127.0.0.1", "verify-full", true),
        ("elsewhere.example", "verify-ca", true),
        ("elsewhere.example", "verify-full", false),
        // No certificate can match this name.
        ("fe80::1%eth0", "verify-ca", true),
        ("fe80::1%eth0", "verify-full", false),
    ] {
        let out = measure(&at(host, mode), nowhere(), &[]);
        let why = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.success(), fits, "{host} {mode}: {why}");
        assert_eq!(libpq(&at(host, mode), nowhere()).is_some(), fits, "{host} {mode}");
        let says = if host.contains('%') { (2, "which this is not") } else { (4, "localhost") };
        assert!(fits || out.status.code() == Some(says.0) && why.contains(says.1), "{why}");
    }
    let prefers = at("fe80::1%eth0", "prefer");
    let run = document(&measure(&prefers, nowhere(), &[])).runs.remove(0);
    assert!(run.tls.is_some_and(|t| t.verified), "{:?}", run.warnings);
    assert_eq!(libpq(&prefers, nowhere()), Some(true));
}

#[test]
fn the_variable_of_old_that_demands_tls_is_minded() {
    let own = &*SECURED;
    for (user, value, more) in
        [("bare", "1", ""), ("bare", "0", ""), ("either", "1", ""), ("bare", "1", "sslmode=prefer")]
    {
        let string = own.string(user, more);
        let asked = |mut command: Command, args: &[&str]| {
            command.env("PGREQUIRESSL", value).args(args).output().unwrap()
        };
        let psql = bare(Command::new(crate::support::postgres::tool("psql")), nowhere());
        let theirs = asked(psql, &["-XAtwc", "select 1", "-d", &string]).status.success();
        let args = ["measure", "pg", &string, "--script", "select1", "--transactions", "20"];
        let ours = asked(bare(Command::new(NETWRIGHT), nowhere()), &args);
        assert_eq!(ours.status.success(), theirs, "{user} {value} {more}: {ours:?}");
        assert_eq!(theirs, user == "either" || value == "0" || !more.is_empty());
    }
}

#[test]
fn the_result_tells_of_tls_and_the_server_saw_it_on_every_connection() {
    let own = &*SECURED;
    let seen = "create table if not exists seen as select version, cipher, 0 as n from \
                pg_stat_ssl limit 0; truncate seen; grant all on seen to either";
    own.server.sql(seen);
    let script = tempfile::NamedTempFile::new().unwrap();
    let insert = "insert into seen select version, cipher, 1 from pg_stat_ssl where pid = \
                  pg_backend_pid();\n";
    fs::write(script.path(), insert).unwrap();
    for (more, handshakes) in [(&["--flows", "3"][..], 3), (&["--connect-each"], 60)] {
        let mut command = bare(Command::new(NETWRIGHT), nowhere());
        let string = own.string("either", "sslmode=require");
        command.args(["measure", "pg", &string, "--json", "--transactions", "60", "--script"]);
        let out = command.arg(script.path()).args(more).output().unwrap();
        let run = document(&out).runs.remove(0);
        let tls = run.tls.as_ref().unwrap();
        assert_eq!(run.transactions, 60);
        // A client that connects slowly may miss some of them.
        assert!((1..=handshakes).contains(&tls.handshakes), "{tls:?}");
        let took = run.tls_handshake_ns.as_ref().unwrap();
        assert_eq!(took.count, tls.handshakes);
        assert!(took.min > 0 && took.min < run.connect_ns.min, "{took:?}");
        // The server says TLSv1.3.
        let version = tls.version.replace("TLS ", "TLSv");
        let theirs = own.server.sql("select version, cipher, count(*) from seen group by 1, 2");
        assert_eq!(theirs.trim(), format!("{version}|{}|60", tls.cipher));
        own.server.sql("truncate seen");
    }
    let string = own.string("either", "sslmode=require");
    let mut command = bare(Command::new(NETWRIGHT), nowhere());
    command.args(["measure", "pg", &string, "--script", "select1", "--transactions", "20"]);
    let text = String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned();
    assert!(text.contains("TLS HANDSHAKE") && text.contains("TLS 1.3, TLS_AES"), "{text}");
}

#[test]
fn logins_are_tied_to_the_connection_where_that_is_asked_for() {
    let own = &*SECURED;
    for (user, more) in [
        ("secret", "sslmode=require channel_binding=require"),
        ("secret", "sslmode=require channel_binding=prefer"),
        ("secret", "sslmode=require channel_binding=disable"),
        ("secret", "sslmode=disable channel_binding=prefer"),
        ("secret", "sslmode=disable channel_binding=require"),
        ("digest", "sslmode=require channel_binding=require"),
        ("digest", "sslmode=require"),
        ("either", "sslmode=require channel_binding=require"),
    ] {
        let string = own.string(user, more);
        let out = measure(&string, nowhere(), &[]);
        let why = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.success(), libpq(&string, nowhere()).is_some(), "{string}: {why}");
        if !out.status.success() {
            assert!(why.contains("channel_binding=require"), "{why}");
            assert_eq!(out.status.code(), Some(3), "{why}");
        }
    }
    let string = own.string("secret", "sslmode=require channel_binding=require");
    assert!(measure(&string, nowhere(), &[]).status.success(), "the first of them does go");
}

#[test]
fn certificates_of_our_own_and_those_at_home_are_used() {
    let own = &*SECURED;
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".postgresql");
    fs::create_dir(&folder).unwrap();
    let files = format!("sslcert={} sslkey={}", own.file("anna.crt"), own.file("anna.key"));
    let without = own.string("anna", "sslmode=require");
    let out = measure(&without, home.path(), &[]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("valid client certificate"), "{out:?}");
    let named = own.string("anna", &format!("sslmode=require {files}"));
    assert!(document(&measure(&named, home.path(), &[])).runs[0].tls.is_some());
    for (from, to) in
        [("anna.crt", "postgresql.crt"), ("anna.key", "postgresql.key"), ("ca.crt", "root.crt")]
    {
        fs::copy(own.file(from), folder.join(to)).unwrap();
    }
    let run = document(&measure(&without, home.path(), &[])).runs.remove(0);
    // `require` with a root certificate is `verify-ca`, as in libpq.
    assert!(run.tls.unwrap().verified);
    fs::set_permissions(folder.join("postgresql.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let out = measure(&without, home.path(), &[]);
    assert_eq!(out.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&out.stderr).contains("chmod 600"), "{out:?}");
}

/// Encryption at both ends cannot be separated from the server's service time.
#[test]
fn what_is_explained_under_tls_is_said_to_be() {
    let own = &*SECURED;
    for (mode, reported) in [("", true), ("?sslmode=disable", false)] {
        let url = format!("{}{mode}", own.server.url("either"));
        let explain = |more: &[&str]| {
            let args = ["explain", &url, "--script", "select1", "--duration", "1s"];
            let mut command = bare(Command::new(NETWRIGHT), nowhere());
            command.args(args).args(["--round", "60ms"]).args(more).output().unwrap()
        };
        // On a busy machine a round may be empty.
        let document = (0..5).find_map(|_| {
            serde_json::from_slice::<ExplainDocument>(&explain(&["--json"]).stdout).ok()
        });
        let warnings = document.expect("nothing was ever answered").warnings;
        let about: Vec<_> =
            warnings.iter().filter(|w| w.to_string().contains("sslmode=disable")).collect();
        assert_eq!(about.len(), usize::from(reported), "{url}: {warnings:?}");
    }
}

#[test]
fn a_server_without_tls_or_that_is_none_is_said() {
    let server = Postgres::start();
    let string = |mode: &str| format!("{}?sslmode={mode}", server.url("postgres"));
    assert!(document(&measure(&string("prefer"), nowhere(), &[])).runs[0].tls.is_none());
    let out = measure(&string("require"), nowhere(), &[]);
    let why = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(4) && why.contains("does not support TLS"), "{why}");
    // Over its Unix socket there is no TLS, whatever is requested.
    let folder = server.folder().display().to_string();
    let unix = format!("host={folder} port={} user=postgres sslmode=require", server.port);
    let d = document(&measure(&unix, nowhere(), &[]));
    assert!(d.runs[0].tls.is_none());
    assert_eq!(d.request.common.transport, Transport::Unix);
    assert_eq!(libpq(&unix, nowhere()), Some(false));
}
