//! Takes secrets out of command lines and documents. Better one word too many than a password.

use serde_json::Value;

/// Stands for a secret.
pub const HIDDEN: &str = "***";

/// Parts of a name that say that its value is a secret.
const NAMES: [&str; 8] =
    ["password", "passwd", "pwd", "secret", "token", "apikey", "api-key", "credential"];

/// Header fields whose value is a secret.
const HEADERS: [&str; 5] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-auth"];

/// A command line's words without secrets.
pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut next_is_secret = false;
    let hide = |word: &str| {
        let hidden = std::mem::take(&mut next_is_secret);
        next_is_secret = is_option(word);
        if hidden { HIDDEN.to_owned() } else { of_text(word) }
    };
    words.into_iter().map(hide).collect()
}

/// A JSON document without secrets; the very same text where it has none.
pub fn of_document(text: &str) -> String {
    let Ok(mut document) = serde_json::from_str::<Value>(text) else { return of_text(text) };
    match hide_within(&mut document) {
        true => document.to_string(),
        false => text.to_owned(),
    }
}

fn hide_within(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let clean = of_text(text);
            let changed = clean != *text;
            *text = clean;
            changed
        }
        Value::Array(list) => list.iter_mut().fold(false, |any, v| hide_within(v) | any),
        Value::Object(map) => map.values_mut().fold(false, |any, v| hide_within(v) | any),
        _ => false,
    }
}

/// A text without secrets: passwords in URLs, `NAME=SECRET`, `--password SECRET`, header fields.
pub fn of_text(text: &str) -> String {
    values(&options(&headers(&urls(text))))
}

/// `--password`, whose next word is the secret. Our own `--secret-file` names a file.
fn is_option(word: &str) -> bool {
    let plain = word.starts_with('-') && !word.contains('=') && !word.ends_with("-file");
    plain && (is_secret(word) || word == "--auth" || word == "--pass")
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let key = name.ends_with("access-key") || name.ends_with("private-key");
    // PGPASSWORD, REDISCLI_AUTH, MYSQL_PWD.
    key || name.ends_with("-auth") || NAMES.iter().any(|part| name.contains(part))
}

/// `postgres://user:password@host` keeps the user.
fn urls(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end =
            after.find(|c: char| c == '/' || c == '?' || c.is_whitespace() || "\"'<>".contains(c));
        // A password may hold a slash: the user information then ends at the last @ of the word.
        let word = after.split(|c: char| c.is_whitespace() || "\"'<>".contains(c)).next();
        let of_word = word.and_then(|w| w.rfind('@'));
        let of_host = after.get(..end.unwrap_or(after.len())).and_then(|a| a.rfind('@'));
        let at = of_host.or(of_word.filter(|at| after.get(..*at).is_some_and(|u| u.contains(':'))));
        let user = at.and_then(|at| after.get(..at));
        match user.and_then(|u| u.split_once(':')) {
            Some((name, _)) => {
                out.push_str(name);
                out.push(':');
                out.push_str(HIDDEN);
            }
            None => out.push_str(user.unwrap_or_default()),
        }
        rest = after.get(at.unwrap_or(0)..).unwrap_or_default();
    }
    out + rest
}

/// `Authorization: Bearer …` up to a quote or the line's end.
fn headers(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let named = |h: &str| lower.find(&format!("{h}:")).map(|at| at + h.len() + 1);
    let other = || {
        let colon = lower.find(": ")?;
        let name =
            lower.get(..colon)?.rsplit(|c: char| c.is_whitespace() || "\"'".contains(c)).next()?;
        is_secret(name).then_some(colon + 1)
    };
    let Some(from) = HEADERS.iter().find_map(|h| named(h)).or_else(other) else {
        return text.to_owned();
    };
    let (head, value) = text.split_at(from);
    let end = value.find(['"', '\'', '\n']).unwrap_or(value.len());
    let rest = headers(value.get(end..).unwrap_or_default());
    format!("{head} {HIDDEN}{rest}")
}

/// `--password SECRET` within one text, such as a shell's line.
fn options(text: &str) -> String {
    let mut out = String::new();
    let mut next_is_secret = false;
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        let hide = next_is_secret && !word.is_empty();
        out.push_str(if hide { HIDDEN } else { word });
        out.push_str(part.get(word.len()..).unwrap_or_default());
        if !word.is_empty() {
            next_is_secret = !hide && is_option(word);
        }
    }
    out
}

/// Hides the values of secrets in `PGPASSWORD=SECRET` and `?password=SECRET&`.
fn values(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('=') {
        out.push_str(before);
        out.push('=');
        let name = before.rsplit(|c: char| !(c.is_alphanumeric() || "_-".contains(c))).next();
        let is_file = name.is_some_and(|n| n.ends_with("-file"));
        rest = after;
        if name.is_some_and(is_secret) && !is_file && !after.is_empty() {
            let quote = after.chars().next().filter(|c| "\"'".contains(*c));
            let end = match quote {
                Some(q) => after.get(1..).and_then(|a| a.find(q)).map(|at| at + 2),
                None => after.find(|c: char| c.is_whitespace() || "&\"';".contains(c)),
            };
            out.push_str(HIDDEN);
            rest = after.get(end.unwrap_or(after.len())..).unwrap_or_default();
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_a_secret_is_left() {
        for (typed, kept) in [
            ("postgres://u:hunter2@db1/bench", "postgres://u:***@db1/bench"),
            ("postgres://u:hun/ter2@db1/bench", "postgres://u:***@db1/bench"),
            ("redis://:hunter2@cache:6379", "redis://:***@cache:6379"),
            ("http://u:hunter2@web1/?a=1@2", "http://u:***@web1/?a=1@2"),
            ("http://web1/x?password=hunter2&b=1", "http://web1/x?password=***&b=1"),
            ("Authorization: Bearer hunter2", "Authorization: ***"),
            ("X-Api-Key: hunter2", "X-Api-Key: ***"),
            ("curl -H 'Cookie: a=hunter2' http://w", "curl -H 'Cookie: ***' http://w"),
            ("PGPASSWORD=hunter2 pgbench -c 4", "PGPASSWORD=*** pgbench -c 4"),
            ("PGPASSWORD='hunter2 x' pgbench", "PGPASSWORD=*** pgbench"),
            ("mysql --password=hunter2 -u x", "mysql --password=*** -u x"),
            ("mysql --password hunter2 -u x", "mysql --password *** -u x"),
            ("REDISCLI_AUTH=hunter2 redis-cli", "REDISCLI_AUTH=*** redis-cli"),
        ] {
            let clean = of_text(typed);
            assert_eq!(clean, kept, "{typed}");
            assert!(!clean.contains("hunter2") && of_text(&clean) == clean, "{clean}");
        }
        let words = of_words(["measure", "rtt", "--auth", "hunter2", "--secret-file", "/run/s"]);
        assert_eq!(words, ["measure", "rtt", "--auth", "***", "--secret-file", "/run/s"]);
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        for text in [
            "measure rtt db1 --flows 4",
            "postgres://u@db1/bench?sslmode=require",
            "http://web1/index.html",
            "Content-Type: application/json",
            "p50=runs.0.rtt_ns.p50:lower",
            "net.ipv4.tcp_rmem=4096 131072 6291456",
            "fe80::1: no route",
            "übel: ä=ö://ü@",
        ] {
            assert_eq!(of_text(text), text);
        }
    }

    #[test]
    fn a_document_without_secrets_is_not_rewritten() {
        let plain = r#"{"b": 1.50, "a": [{"x": "y"}]}"#;
        assert_eq!(of_document(plain), plain);
        let with = r#"{"b":1.5,"request":{"headers":["Authorization: Basic aHVudGVyMg=="]}}"#;
        let clean = of_document(with);
        assert!(!clean.contains("aHVu") && clean.contains("***"), "{clean}");
    }
}
