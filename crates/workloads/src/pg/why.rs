//! Error texts: why a measurement cannot begin or continue, in one line each.

use super::{
    client::Broken,
    login::{Credentials, Refused},
    plan::Plan,
    wire::ServerError,
};
use model::Warning;
use traffic::Error;

/// Whether the error is temporary: the server is starting or has no free connection.
pub fn will_pass(error: &ServerError) -> bool {
    ["53", "57", "55", "58"].iter().any(|class| error.code.starts_with(class))
}

/// Error for a refused login.
pub fn refused(refused: &Refused, name: &str, who: &Credentials) -> Error {
    match refused {
        Refused::Server(e) if e.code.starts_with("28") => {
            Error::Denied(format!("{name}: {e}; {}", not_let_in(e)))
        }
        Refused::Server(e) if e.code == "3D000" => Error::Environment(format!(
            "{name}: {e}; name another: postgres://USER@HOST/DATABASE, which without one is the user's name"
        )),
        Refused::Server(e) => Error::Environment(format!("{name}: {e}")),
        Refused::NoPassword => Error::Denied(format!(
            "{name} asks for the password of {:?}, and there is none; give it by PGPASSWORD or \
             ~/.pgpass",
            who.user
        )),
        Refused::Unsupported(what) => {
            Error::Environment(format!("{name} asks for {what}, which is not supported"))
        }
        Refused::Unbound => Error::Denied(format!(
            "{name}: channel_binding=require, and the server does not tie the login to a TLS \
             connection (SCRAM-SHA-256-PLUS)"
        )),
        Refused::Nonsense(why) => Error::Environment(format!("{name}: {why}")),
    }
}

/// Error if both TLS and plain text failed: names the server and the advice once.
pub fn both(name: &str, first: &Error, second: &Error) -> Error {
    let (one, other) = (first.to_string(), second.to_string());
    let line = if one == other {
        one
    } else {
        let tails = one.match_indices("; ").map(|(at, _)| one.get(at..).unwrap_or_default());
        let advice = tails.into_iter().find(|tail| other.ends_with(tail)).unwrap_or_default();
        let one = one.strip_suffix(advice).unwrap_or(&one);
        let other = other.strip_prefix(name).and_then(|o| o.strip_prefix(": ")).unwrap_or(&other);
        format!("{one}; the other way: {other}")
    };
    match second {
        Error::Denied(_) => Error::Denied(line),
        _ => Error::Environment(line),
    }
}

/// Warning for a session without TLS, after trying TLS first gave the error `first`.
pub fn in_clear(first: &Error) -> Warning {
    Warning::InClear { why: first.to_string() }
}

/// Advice for an unknown user, or one not allowed from this host. The server's messages are
/// localized; if they are not recognized, the advice covers all cases.
fn not_let_in(e: &ServerError) -> &'static str {
    let says = |words: &str| e.message.contains(words);
    match e.code.as_str() {
        "28P01" => "the password comes from the connection string, PGPASSWORD or ~/.pgpass",
        _ if says("role \"") => "name another user: postgres://USER@HOST/DATABASE",
        _ if says("Peer authentication") || says("Ident authentication") => {
            "there it takes the user of this host who has the same name, and no password: run as that \
             user, or name a host, as host=127.0.0.1, that asks for a password"
        }
        _ => {
            "its pg_hba.conf says which user may come from where to which database, and whether with TLS \
             (sslmode=require) or without"
        }
    }
}

/// Error that stops all transactions.
pub fn broken(broken: &Broken, plan: &Plan) -> Error {
    let name = |script: usize| plan.scripts.get(script).map_or("", |s| s.asked.name.as_str());
    match broken {
        Broken::Script { script, at, why } => {
            let line = plan.scripts.get(*script).map_or(1, |s| s.script.line(*at));
            // The name may be meant to be set on the command line, so the file alone is not at
            // fault.
            let unset = why.split_once("undefined variable \"").map(|(_, rest)| rest);
            let unset = unset.and_then(|rest| rest.split('"').next());
            let hint = unset.map_or_else(String::new, |v| format!("; give it by --define {v}=…"));
            Error::Usage(format!("{}:{line}: {why}{hint}", name(*script)))
        }
        Broken::Server { statement, error, place } => {
            let statement = statement.and_then(|n| plan.statements.get(n));
            let at = statement.map_or_else(String::new, |s| {
                let place = match place {
                    Some((line, column)) => format!("{line}:{column}"),
                    None => s.line.to_string(),
                };
                format!("{}:{place}: {}: ", name(s.script), shortened(&s.shown))
            });
            // A variable without a value stays as written, as with pgbench, and is no valid SQL.
            let colon = error.code == "42601" && error.message.contains("\":\"");
            let unset = statement.filter(|s| colon && !s.variables.is_empty());
            match (unset, statement_failed(&at, error)) {
                (Some(s), Error::Environment(line)) => Error::Environment(format!(
                    "{line}; has :{} a value? \\set gives it one, or --define {}=…",
                    s.variables.join(", :"),
                    s.variables.first().map_or("", String::as_str)
                )),
                (_, other) => other,
            }
        }
    }
}

/// Error for a statement that will always fail.
pub fn statement_failed(at: &str, error: &ServerError) -> Error {
    let tables = error.code == "42P01" && error.message.contains("pgbench_");
    let hint = if tables { "; make pgbench's tables first, with --init" } else { "" };
    let line = format!("{at}{error}{hint}");
    match error.code.as_str() {
        "42501" => Error::Denied(line),
        _ => Error::Environment(line),
    }
}

fn shortened(sql: &str) -> String {
    match sql.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", sql.get(..end).unwrap_or(sql)),
        None => sql.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(code: &str, message: &str) -> Error {
        let error =
            ServerError { code: code.into(), message: message.into(), ..Default::default() };
        let who = Credentials {
            user: "me".into(),
            password: None,
            startup: vec![],
            binding: Default::default(),
        };
        refused(&Refused::Server(error), "db1:5432", &who)
    }

    #[test]
    fn what_both_ways_need_is_reported_once() {
        let rejected = |how: &str| reported("28000", &format!("pg_hba.conf rejects, {how}"));
        let Error::Denied(said) =
            both("db1:5432", &rejected("SSL encryption"), &rejected("no encryption"))
        else {
            panic!("it is denied")
        };
        assert!(said.starts_with("db1:5432: pg_hba.conf rejects, SSL encryption"), "{said}");
        assert!(said.contains("; the other way: ") && said.contains(", no encryption"), "{said}");
        for once in ["db1:5432", "which user may come from where", "sslmode=require"] {
            assert_eq!(said.matches(once).count(), 1, "{said}");
        }
        let gone = Error::Environment("db1:5432: reset".into());
        let said = both("db1:5432", &gone, &rejected("no encryption")).to_string();
        assert!(said.starts_with("db1:5432: reset; the other way: pg_hba.conf"), "{said}");
        let said = in_clear(&gone).to_string();
        assert!(
            said.contains("sslmode=require insists on TLS") && said.ends_with("reset"),
            "{said}"
        );
    }

    /// A correct password does not help a user who may not connect.
    #[test]
    fn the_advice_is_of_what_is_wrong() {
        let entry = "no pg_hba.conf entry for host \"10.0.0.1\", user \"me\", database \"d\", no encryption";
        for (code, message, advice) in [
            ("28P01", "password authentication failed for user \"me\"", "PGPASSWORD"),
            ("28000", entry, "sslmode=require"),
            ("28000", "role \"me\" does not exist", "name another user"),
            ("28000", "Peer authentication failed for user \"me\"", "run as that user"),
        ] {
            let Error::Denied(said) = reported(code, message) else { panic!("{message}") };
            assert!(said.contains(advice), "{said}");
            assert_eq!(said.contains("PGPASSWORD"), code == "28P01", "{said}");
        }
        let said = reported("3D000", "database \"me\" does not exist").to_string();
        assert!(said.contains("/DATABASE"), "{said}");
    }
}
