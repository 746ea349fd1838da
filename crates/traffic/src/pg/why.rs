//! Why a measurement cannot begin or go on, in one line each.

use super::{
    client::Broken,
    login::{Credentials, Refused},
    plan::Plan,
    wire::ServerError,
};
use crate::Error;

/// Whether a server that refuses a connection may take one later: it starts, or is full.
pub fn will_pass(error: &ServerError) -> bool {
    ["53", "57", "55", "58"].iter().any(|class| error.code.starts_with(class))
}

/// Why there is no session.
pub fn refused(refused: &Refused, name: &str, who: &Credentials) -> Error {
    match refused {
        Refused::Server(e) if e.code.starts_with("28") => Error::Denied(format!(
            "{name}: {e}; the password comes from the connection string, PGPASSWORD or ~/.pgpass"
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

/// Why no transaction can go on.
pub fn broken(broken: &Broken, plan: &Plan) -> Error {
    let name = |script: usize| plan.scripts.get(script).map_or("", |s| s.asked.name.as_str());
    match broken {
        Broken::Script { script, at, why } => {
            let line = plan.scripts.get(*script).map_or(1, |s| s.script.line(*at));
            // A name is not the file's fault alone: it may be given here.
            let unset = why.split_once("undefined variable \"").map(|(_, rest)| rest);
            let unset = unset.and_then(|rest| rest.split('"').next());
            let hint = unset.map_or_else(String::new, |v| format!("; give it by --define {v}=…"));
            Error::Usage(format!("{}:{line}: {why}{hint}", name(*script)))
        }
        Broken::Server { statement, error } => {
            let statement = statement.and_then(|n| plan.statements.get(n));
            let at = statement.map_or_else(String::new, |s| {
                format!("{}:{}: {}: ", name(s.script), s.line, shortened(&s.shown))
            });
            // What has no value stays as it is written, as with pgbench, and is no SQL.
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

/// What a statement came to that will fail each time.
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
