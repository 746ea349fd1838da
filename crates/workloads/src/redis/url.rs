//! Redis URLs: server, credentials and database.

use traffic::{
    Error, Result, Target,
    engine::reach::{Server, name_of},
};

use crate::http::url::unescaped;

/// Default port of a Redis server.
const PORT: u16 = 6379;

/// A server from a URL: `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`, `rediss://…`, or
/// `unix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisUrl {
    pub tls: bool,
    at: Target,
    user: Option<String>,
    password: Option<String>,
    database: Option<u32>,
    /// The URL without its password, for results.
    pub shown: String,
}

impl RedisUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// The error, without any part of a password.
    pub fn of(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::Usage(format!(
                "this is no Redis URL: {why}; write redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]"
            ))
        };
        if text.starts_with("unix:") {
            let (at, shown) = (text.parse()?, text.into());
            return Ok(Self { tls: false, at, user: None, password: None, database: None, shown });
        }
        let (tls, rest) = match text.split_once("://") {
            Some(("redis", rest)) => (false, rest),
            Some(("rediss", rest)) => (true, rest),
            Some(_) => return Err(wrong("only redis, rediss and unix:PATH are supported")),
            None => return Err(wrong("redis:// is missing")),
        };
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, place) = place.rsplit_once('@').map_or((None, place), |(w, p)| (Some(w), p));
        let plain = |part: &str| -> Result<Option<String>> {
            let bytes = unescaped(part).map_err(wrong)?;
            let text = String::from_utf8(bytes).map_err(|_| wrong("a user is UTF-8"))?;
            Ok(Some(text).filter(|t| !t.is_empty()))
        };
        let (user, password) = match who.map(|w| w.split_once(':').unwrap_or((w, ""))) {
            Some((user, password)) => (plain(user)?, plain(password)?),
            None => (None, None),
        };
        let database = match path {
            "" => None,
            n => Some(n.parse().map_err(|_| wrong("a database is a number"))?),
        };
        let Target::Host(host, port) = place.parse()? else {
            return Err(wrong("the host is missing"));
        };
        let at = Target::Host(host, Some(port.unwrap_or(PORT)));
        let shown = format!(
            "redis{}://{}{at}{}",
            if tls { "s" } else { "" },
            user.as_ref().map_or_else(String::new, |u| format!("{u}@")),
            database.map_or_else(String::new, |n| format!("/{n}"))
        );
        Ok(Self { tls, at, user, password, database, shown })
    }

    /// Host name or address, and port; `None` for a Unix socket.
    pub fn host(&self) -> Option<(&str, u16)> {
        match &self.at {
            Target::Host(host, port) => Some((host, port.unwrap_or(PORT))),
            Target::Unix(_) => None,
        }
    }

    /// The server in the form that [`traffic::engine::reach`] connects to.
    pub fn server(&self) -> Server<'_> {
        let plain = "is it a port without, for redis://?";
        match &self.at {
            Target::Host(host, port) => Server {
                host,
                port: port.unwrap_or(PORT),
                socket: None,
                name: self.at.to_string(),
                plain,
            },
            Target::Unix(path) => Server {
                host: "localhost",
                port: 0,
                socket: Some(path),
                name: name_of(path),
                plain,
            },
        }
    }

    /// First commands of a connection, and the number of replies to them. `PING` is last, so that a
    /// server that requires a password reports it.
    pub fn greeting(&self, password: Option<&str>) -> (String, u32) {
        let mut all = vec![];
        if let Some(password) = self.password.as_deref().or(password) {
            all.push(
                [vec!["AUTH"], self.user.as_deref().into_iter().collect(), vec![password]].concat(),
            );
        }
        let database = self.database.map(|n| n.to_string());
        all.extend(database.iter().map(|n| vec!["SELECT", n]));
        all.push(vec!["PING"]);
        let word = |w: &&str| format!("${}\r\n{w}\r\n", w.len());
        let command =
            |c: &Vec<&str>| format!("*{}\r\n{}", c.len(), c.iter().map(word).collect::<String>());
        (all.iter().map(command).collect(), all.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_who_and_which_database_and_show_no_password() {
        let url = RedisUrl::of("rediss://u:p%40@[::1]:7000/3").unwrap();
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("u"), Some("p@")));
        assert_eq!(url.shown, "rediss://u@[::1]:7000/3");
        let (greeting, n) = url.greeting(Some("other"));
        assert_eq!(n, 3);
        assert!(greeting.starts_with(
            "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$2\r\np@\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
        ));
        let url = RedisUrl::of("redis://:p@h").unwrap();
        assert_eq!((url.shown.as_str(), url.greeting(None).1), ("redis://h:6379", 2));
        let url = RedisUrl::of("unix:/run/redis.sock").unwrap();
        assert_eq!(
            url.greeting(Some("p")).0,
            "*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n*1\r\n$4\r\nPING\r\n"
        );
        for wrong in ["h:6379", "http://h", "redis://h/x", "redis://", "redis://:secret@h:x/"] {
            let why = RedisUrl::of(wrong).unwrap_err().to_string();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
