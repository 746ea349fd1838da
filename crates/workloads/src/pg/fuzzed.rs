//! Fuzz targets for a PostgreSQL server, scripts, pgbench and users' files.

use bytes::BytesMut;
use model::measure::PgProtocol;

use super::{
    address::Address,
    client::{Client, Next as Do},
    environment::Environment,
    login::{Credentials, Login, rounds},
    passfile,
    pgbench::{log, reported},
    plan::Plan,
    script::{Rng, Script, Vars, weighted},
    security::Binding,
    wire::{self, Frames, Next, ServerError},
};

/// Every message of a connection, fed in pieces of this size; bodies of kind `D` are skipped.
pub(super) fn all(bytes: &[u8], piece: usize) -> (Vec<(u8, Vec<u8>)>, bool) {
    let (mut frames, mut out) = (Frames::default(), vec![]);
    for mut input in bytes.chunks(piece.max(1)) {
        loop {
            match frames.next(&mut input, |k| k != b'D') {
                Next::Whole(k, b) => out.push((k, if k == b'D' { vec![] } else { b.into() })),
                Next::Kept(k) => out.push((k, frames.kept().into())),
                Next::Passed(k) => out.push((k, vec![])),
                Next::More => break,
                Next::Bad(_) => return (out, true),
            }
        }
    }
    (out, false)
}

/// The first byte is the size of the pieces. The rest must parse the same in pieces as in whole.
pub fn messages(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let whole = all(bytes, bytes.len());
    assert_eq!(all(bytes, 1 + usize::from(*piece)), whole);
    for (_, body) in whole.0 {
        let _ = (wire::columns(&body), wire::values(&body), ServerError::read(&body).to_string());
    }
}

/// A login. Skips more than a thousand hash rounds, which are slow by design.
pub fn login(bytes: &[u8]) {
    let Some((how, bytes)) = bytes.split_first() else { return };
    let tls = (how & 1 == 1).then(|| Login::over_tls((how & 2 == 2).then(|| vec![1; 32])));
    let mut login = tls.unwrap_or_default();
    let binding = [Binding::Prefer, Binding::Disable, Binding::Require][usize::from(how >> 2) % 3];
    let password = (how & 64 == 0).then(|| "secret".to_owned());
    let who = Credentials { user: "u".into(), password, startup: vec![], binding };
    let mut out = BytesMut::new();
    for (kind, body) in all(bytes, bytes.len()).0 {
        let costly = rounds(body.get(4..).unwrap_or_default());
        if costly.is_some_and(|n| n > 1000) || login.take(kind, &body, &who, &mut out).is_err() {
            return;
        }
    }
}

/// A server's answers to a script's transactions. The first byte selects the query protocol.
pub fn session(bytes: &[u8]) {
    const SCRIPT: &str =
        "\\set a random(1, 9)\nbegin;\nselect :a as b, 2 as c \\gset\nselect :b;\nend;\n";
    let Some((how, bytes)) = bytes.split_first() else { return };
    let protocol = [PgProtocol::Simple, PgProtocol::Extended, PgProtocol::Prepared];
    let protocol = protocol[usize::from(*how) % 3];
    let Ok(plan) = Plan::of_text(SCRIPT, protocol, 1 + u32::from(how >> 6)) else { return };
    let vars = Vars::predefined(0, 1, 1, 1);
    let mut client = Client::new(vars, Rng::new(1), 1, plan.statements.len());
    let (mut out, mut frames, mut input) = (BytesMut::new(), Frames::default(), bytes);
    client.begin(&plan, 0, 0);
    // Each step takes a message or ends a transaction: this many suffice for any input.
    for now in 0..1000u64 {
        match client.advance(&plan, now, &mut out) {
            Do::Await => {}
            Do::Sleep(_) => continue,
            Do::Over(_) => {
                client.begin(&plan, now, now);
                continue;
            }
            Do::Broken(_) => return,
        }
        out.clear();
        let (kind, body) = match frames.next(&mut input, |kind| client.wants(kind)) {
            Next::Whole(kind, body) => (kind, body),
            Next::Kept(kind) => (kind, frames.kept()),
            Next::Passed(kind) => (kind, &[][..]),
            Next::More | Next::Bad(_) => return,
        };
        if client.take(kind, body, &plan, |_, _| {}).is_err() {
            return;
        }
    }
}

pub fn script(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Script::parse("fuzzed", &text) {
        Err(why) => drop(why.to_string()),
        Ok(script) => {
            for at in 0..script.commands().len() {
                let _ = script.place(script.line(at));
            }
        }
    }
    let _ = weighted(&text);
}

pub fn address(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let none = Environment { variable: &|_| None, who: &|_| None };
    let _ = Address::of(&text, Some("secret"), &none);
    if let Ok((without, Some(_))) = super::without_password(&text) {
        // The text shown to users must not hold a password.
        let again = super::without_password(&without).ok().and_then(|(_, password)| password);
        assert_eq!(again, None, "{without:?}");
    }
}

pub fn passfile(bytes: &[u8]) {
    let lines = passfile::lines(&String::from_utf8_lossy(bytes));
    let _ = passfile::find(&lines, ["localhost", "5432", "postgres", "u"]);
}

/// pgbench's report and its log.
pub fn pgbench(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = (reported::read(&text), reported::complaints(&text));
    for line in text.lines() {
        for (lag, retries) in [(false, false), (true, true)] {
            let _ = log::line(line, log::Columns { lag, retries });
        }
    }
}
