//! Parses connection strings of both kinds into pairs of parameter and value.

use traffic::{Error, Result};

/// What begins a URL.
const SCHEMES: [&str; 3] = ["postgres://", "postgresql://", "pg://"];

/// The settings of a string, in order; a later value of a name wins.
///
/// # Errors
/// [`Error::Usage`], with the correct form.
pub fn settings(text: &str) -> Result<Vec<(String, String)>> {
    match SCHEMES.iter().find_map(|s| text.strip_prefix(s)) {
        Some(rest) => url(text, rest),
        None if text.contains("://") => Err(no_string(text)),
        None if text.contains('=') || text.trim().is_empty() => pairs(text),
        None => Err(no_string(text)),
    }
}

fn no_string(text: &str) -> Error {
    Error::Usage(format!(
        "{text:?} is no connection string; write postgres://USER@HOST:PORT/DATABASE or 'host=HOST \
         user=USER'"
    ))
}

/// The string without its password, and that password.
///
/// # Errors
/// As `settings`.
pub fn without_password(text: &str) -> Result<(String, Option<String>)> {
    let all = settings(text)?;
    let Some(password) = all.iter().rev().find(|(k, _)| k == "password").map(|(_, v)| v.clone())
    else {
        return Ok((text.to_owned(), None));
    };
    let is_url = SCHEMES.iter().any(|s| text.starts_with(s));
    let plain = if is_url { url_without(text) } else { pairs_without(&all) };
    Ok((plain, Some(password)))
}

fn url_without(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("postgres", text));
    let (before, query) = rest.split_once('?').map_or((rest, None), |(b, q)| (b, Some(q)));
    let (authority, path) = before.split_at(before.find('/').unwrap_or(before.len()));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => authority.to_owned(),
    };
    let rest: Vec<&str> = query
        .into_iter()
        .flat_map(|q| q.split('&'))
        .filter(|p| p.split('=').next().and_then(decoded).as_deref() != Some("password"))
        .collect();
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    format!("{scheme}://{authority}{path}{query}")
}

fn pairs_without(all: &[(String, String)]) -> String {
    let quoted = |v: &str| match v.is_empty() || v.contains([' ', '\'', '\\']) {
        true => format!("'{}'", v.replace('\\', "\\\\").replace('\'', "\\'")),
        false => v.to_owned(),
    };
    let rest: Vec<String> = all
        .iter()
        .filter(|(k, _)| k != "password")
        .map(|(k, v)| format!("{k}={}", quoted(v)))
        .collect();
    rest.join(" ")
}

fn url(text: &str, rest: &str) -> Result<Vec<(String, String)>> {
    // Not the text itself: it may hold a password.
    let shown = url_without(text);
    let wrong = |why: &str| {
        Error::Usage(format!("{shown}: {why}; write postgres://USER@HOST:PORT/DATABASE"))
    };
    let plain = |part: &str| {
        decoded(part).ok_or_else(|| wrong("after % come two digits of a hexadecimal number"))
    };
    let (before, query) = rest.split_once('?').map_or((rest, None), |(b, q)| (b, Some(q)));
    let (authority, database) = match before.split_once('/') {
        Some((authority, database)) => (authority, Some(database)),
        None => (before, None),
    };
    let mut all = vec![];
    let mut put = |key: &str, value: String| all.push((key.to_owned(), value));
    let (user, hosts) =
        authority.rsplit_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
    if let Some(user) = user {
        let (user, password) = user.split_once(':').map_or((user, None), |(u, p)| (u, Some(p)));
        put("user", plain(user)?);
        if let Some(password) = password {
            put("password", plain(password)?);
        }
    }
    if !hosts.is_empty() {
        let (mut names, mut ports) = (vec![], vec![]);
        for host in hosts.split(',') {
            let (name, port) = match host.strip_prefix('[') {
                Some(rest) => {
                    let (name, rest) = rest.split_once(']').ok_or_else(|| wrong("] is missing"))?;
                    match rest.strip_prefix(':') {
                        None if !rest.is_empty() => return Err(wrong("after ] comes a port")),
                        port => (name, port.unwrap_or("")),
                    }
                }
                None => match host.split_once(':') {
                    Some((_, port)) if port.contains(':') => {
                        return Err(wrong("an IPv6 address stands in brackets"));
                    }
                    Some((name, port)) => (name, port),
                    None => (host, ""),
                },
            };
            names.push(plain(name)?);
            ports.push(port);
        }
        put("host", names.join(","));
        if ports.iter().any(|p| !p.is_empty()) {
            put("port", ports.join(","));
        }
    }
    if let Some(database) = database.filter(|d| !d.is_empty()) {
        put("dbname", plain(database)?);
    }
    for pair in query.into_iter().flat_map(|q| q.split('&')).filter(|p| !p.is_empty()) {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| wrong("after ? come NAME=VALUE&…"))?;
        put(&plain(key)?, plain(value)?);
    }
    Ok(all)
}

/// Decodes percent-encoding; `None` if invalid.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|b| *b != 0)?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Parses `name = value other='it\'s'`.
fn pairs(text: &str) -> Result<Vec<(String, String)>> {
    let wrong = |why: &str| {
        Error::Usage(format!("the connection string: {why}; write 'host=HOST user=USER'"))
    };
    let mut all = vec![];
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(|| wrong("= is missing"))?;
        let key = key.trim_end();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(wrong("= must stand behind each name"));
        }
        let after = after.trim_start();
        let quoted = after.starts_with('\'');
        let mut chars = after.char_indices().skip(usize::from(quoted));
        let (mut value, mut end) = (String::new(), (!quoted).then_some(after.len()));
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => value.extend(chars.next().map(|(_, c)| c)),
                '\'' if quoted => {
                    end = Some(at + 1);
                    break;
                }
                c if !quoted && c.is_whitespace() => {
                    end = Some(at);
                    break;
                }
                c => value.push(c),
            }
        }
        let end = end.ok_or_else(|| wrong("a quote is not ended"))?;
        rest = after.get(end..).unwrap_or_default().trim_start();
        all.push((key.to_owned(), value));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        settings(text).unwrap().into_iter().map(|(k, v)| format!("{k}={v}")).collect()
    }

    #[test]
    fn both_kinds_of_strings() {
        assert_eq!(
            of("postgres://u%40x:p%2Fw@h:5433/d%20b?application_name=a%26b"),
            [
                "user=u@x",
                "password=p/w",
                "host=h",
                "port=5433",
                "dbname=d b",
                "application_name=a&b"
            ]
        );
        assert_eq!(of("pg://"), Vec::<String>::new());
        assert_eq!(of("postgresql://%2Ftmp/d"), ["host=/tmp", "dbname=d"]);
        assert_eq!(of("postgres:///d?host=/tmp"), ["dbname=d", "host=/tmp"]);
        assert_eq!(of("pg://[::1]:7,b"), ["host=::1,b", "port=7,"]);
        assert_eq!(
            of(r"host = a user='it\'s \\' x=b\ c y="),
            ["host=a", r"user=it's \", "x=b c", "y="]
        );
        assert_eq!(of("user='' host=h"), ["user=", "host=h"]);
    }

    #[test]
    fn no_result_and_no_error_has_a_password() {
        for (text, plain) in [
            ("pg://u:secret@h/d?x=1", "pg://u@h/d?x=1"),
            ("pg://u@h/d?password=secret&x=1", "pg://u@h/d?x=1"),
            ("pg://u@h?password=secret", "pg://u@h"),
            ("host=h password='secret' user='a b'", "host=h user='a b'"),
        ] {
            assert_eq!(without_password(text).unwrap(), (plain.into(), Some("secret".into())));
        }
        assert_eq!(without_password("pg://u@h").unwrap(), ("pg://u@h".into(), None));
        let why = settings("pg://u:secret@::1:5/").unwrap_err().to_string();
        assert!(why.contains("brackets") && !why.contains("secret"), "{why}");
    }

    #[test]
    fn what_is_none_is_refused_with_what_to_write() {
        for text in ["db1", "http://a/", "pg://[::1", "pg://a/%zz", "pg://a?x", "a b=c", "host='a"]
        {
            match settings(text) {
                Err(Error::Usage(why)) => assert!(why.contains("write"), "{text}: {why}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
