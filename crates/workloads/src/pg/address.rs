//! Server, user and database: from a connection string, the environment, and libpq's defaults.
//!
//! **Source**: PostgreSQL's documentation, "libpq", "Connection Strings" and "Environment
//! Variables".

use std::{collections::BTreeMap, path::PathBuf};

use model::Warning;
use traffic::{Error, Result};

use super::{
    environment::{Environment, UserName},
    passfile,
    security::Security,
    strings,
};

/// Directories of a server's Unix socket, on Debian and in a build from source.
const FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Parameters of libpq, each with the environment variable of its default.
const KNOWN: [(&str, &str); 26] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("dbname", "PGDATABASE"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("client_encoding", "PGCLIENTENCODING"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("sslmode", "PGSSLMODE"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslpassword", ""),
    ("sslcrl", "PGSSLCRL"),
    ("sslcrldir", "PGSSLCRLDIR"),
    ("sslsni", "PGSSLSNI"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    ("requirepeer", "PGREQUIREPEER"),
    ("require_auth", "PGREQUIREAUTH"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
];

/// Parameters without effect on a measurement.
const IGNORED: [&str; 11] = [
    "fallback_application_name",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "gssencmode",
    "krbsrvname",
    "gsslib",
    "sslcompression",
    "load_balance_hosts",
];

/// Address of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    Unix(PathBuf),
    /// Name or address, and port number.
    Tcp(String, u16),
}

#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    pub host: Host,
    /// Name to check in the certificate.
    pub name: String,
    /// The password for this server, if there is one.
    pub password: Option<String>,
}

/// One or more servers, of which the first that answers is used, with user and database.
#[derive(Clone, PartialEq)]
pub struct Address {
    pub hosts: Vec<Server>,
    pub user: String,
    pub database: String,
    /// Further startup parameters for the server.
    pub parameters: Vec<(String, String)>,
    /// TLS mode and its files.
    pub security: Security,
    /// Requested connect timeout in seconds.
    pub timeout_s: Option<u64>,
    pub warnings: Vec<Warning>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Leaves out the passwords.
        let hosts: Vec<&Host> = self.hosts.iter().map(|s| &s.host).collect();
        f.debug_struct("Address").field("hosts", &hosts).field("user", &self.user).finish()
    }
}

impl Address {
    /// Interprets a connection string; `password` was part of it.
    ///
    /// # Errors
    /// [`Error::Usage`] for a string that libpq would refuse, or an option not supported here.
    pub fn of(text: &str, password: Option<&str>, environment: &Environment<'_>) -> Result<Self> {
        let given = strings::settings(text)?;
        for (key, _) in &given {
            let known = KNOWN.iter().any(|(k, _)| k == key) || IGNORED.contains(&key.as_str());
            if !known {
                return Err(Error::Usage(match key.as_str() {
                    "service" => "service files are not read; name the host itself".into(),
                    "ssl" => "ssl= is JDBC's; write sslmode=".into(),
                    _ => format!("{key:?} is no connection parameter that libpq knows"),
                }));
            }
        }
        let mut all: BTreeMap<&str, String> = BTreeMap::new();
        for (key, variable) in KNOWN {
            let typed = given.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.clone());
            if let Some(value) = typed.or_else(|| (environment.variable)(variable)) {
                all.insert(key, value);
            }
        }
        if let Some(password) = password {
            all.insert("password", password.into());
        }
        all.retain(|_, value| !value.is_empty());
        // Obsolete, but libpq still honors it.
        if (environment.variable)("PGREQUIRESSL").is_some_and(|v| v.starts_with('1')) {
            all.entry("sslmode").or_insert_with(|| "require".into());
        }
        build(&all, environment)
    }
}

fn build(all: &BTreeMap<&str, String>, environment: &Environment<'_>) -> Result<Address> {
    let usage = |why: String| Err(Error::Usage(why));
    if all.contains_key("require_auth") {
        return usage("require_auth: the server's choice is taken; leave it out".into());
    }
    if let Some(attrs) = all.get("target_session_attrs").filter(|a| *a != "any") {
        return usage(format!("target_session_attrs={attrs}: name the one server to measure"));
    }
    let Some(user) = all.get("user").cloned().or_else(|| (environment.who)(UserName::Name)) else {
        return usage("no user name: write postgres://USER@HOST/".into());
    };
    let database = all.get("dbname").unwrap_or(&user).clone();
    let mut warnings = vec![];
    let passwords = match all.get("password") {
        Some(_) => vec![],
        None => passfile::read(all.get("passfile"), environment, &mut warnings),
    };
    let mut hosts = vec![];
    for (name, host) in hosts_of(all)? {
        let password = all.get("password").cloned().or_else(|| {
            let port = match &host {
                Host::Unix(path) => path.extension()?.to_str()?.to_owned(),
                Host::Tcp(_, port) => port.to_string(),
            };
            passfile::find(&passwords, [&name, &port, &database, &user])
        });
        hosts.push(Server { host, name, password });
    }
    let mut parameters = vec![];
    for key in ["options", "application_name", "client_encoding"] {
        match (key, all.get(key)) {
            ("application_name", None) => parameters.push((key.into(), "netwright".into())),
            // This client only writes UTF-8.
            ("client_encoding", Some(e)) if !["auto", "UTF8", "utf8", "utf-8"].contains(&&**e) => {
                return usage(format!("client_encoding={e}: only UTF8 is written"));
            }
            ("client_encoding", _) | (_, None) => {}
            (_, Some(value)) => parameters.push((key.into(), value.clone())),
        }
    }
    let timeout_s = match all.get("connect_timeout").map(|t| (t, t.parse::<u64>())) {
        None | Some((_, Ok(0))) => None,
        Some((_, Ok(n))) => Some(n),
        Some((text, Err(_))) => return usage(format!("connect_timeout={text}: write seconds")),
    };
    let security = Security::of(all, environment, &mut warnings)?;
    Ok(Address { hosts, user, database, parameters, security, timeout_s, warnings })
}

/// The servers, each with its name in a password file.
fn hosts_of(all: &BTreeMap<&str, String>) -> Result<Vec<(String, Host)>> {
    let list = |key| all.get(key).map(|v: &String| v.split(',').collect::<Vec<_>>());
    let (names, addresses) = (list("host"), list("hostaddr"));
    let ports = list("port").unwrap_or_default();
    let count = addresses.as_ref().or(names.as_ref()).map_or(1, Vec::len);
    if names.as_ref().is_some_and(|n| n.len() != count) || (ports.len() > 1 && ports.len() != count)
    {
        return Err(Error::Usage("as many hosts, addresses and ports must be named".into()));
    }
    let mut out = vec![];
    for n in 0..count {
        let port = match ports.get(n).or(ports.first()).filter(|p| !p.is_empty()) {
            None => 5432,
            Some(text) => match text.trim().parse::<u16>() {
                Ok(port) if port > 0 => port,
                _ => return Err(Error::Usage(format!("port {text:?}: write 1 to 65535"))),
            },
        };
        let of = |l: &Option<Vec<&str>>| {
            l.as_ref().and_then(|l| l.get(n)).map(|s| s.trim().to_owned()).filter(|s| !s.is_empty())
        };
        let (name, address) = (of(&names), of(&addresses));
        let socket = |folder: &str| PathBuf::from(folder).join(format!(".s.PGSQL.{port}"));
        out.push(match (name, address) {
            (name, Some(address)) => {
                (name.unwrap_or_else(|| address.clone()), Host::Tcp(address, port))
            }
            (Some(folder), None) if folder.starts_with('/') => {
                let host = Host::Unix(socket(&folder));
                let usual = FOLDERS.contains(&folder.as_str());
                (if usual { "localhost".into() } else { folder }, host)
            }
            (Some(name), None) => (name.clone(), Host::Tcp(name, port)),
            (None, None) => {
                let found = FOLDERS.iter().map(|f| socket(f)).find(|s| s.exists());
                let host = found.map_or_else(|| Host::Tcp("localhost".into(), port), Host::Unix);
                ("localhost".into(), host)
            }
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pg::security::SslMode;

    fn of(text: &str, env: &[(&str, &str)]) -> Result<Address> {
        let variable =
            |name: &str| env.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned());
        let who = |what| Some(if what == UserName::Name { "me" } else { "/nonexistent" }.into());
        Address::of(text, None, &Environment { variable: &variable, who: &who })
    }

    fn places(a: &Address) -> Vec<(Host, Option<&str>)> {
        a.hosts.iter().map(|s| (s.host.clone(), s.password.as_deref())).collect()
    }

    fn tcp(host: &str, port: u16) -> Host {
        Host::Tcp(host.into(), port)
    }

    #[test]
    fn strings_go_before_the_environment_and_that_before_defaults() {
        let env = [("PGHOST", "env"), ("PGPORT", "7"), ("PGUSER", "eve"), ("PGPASSWORD", "geheim")];
        let a = of("postgres://db1/shop", &env).unwrap();
        assert_eq!(places(&a), [(tcp("db1", 7), Some("geheim"))]);
        assert_eq!((a.user.as_str(), a.database.as_str()), ("eve", "shop"));
        let a = of("postgres://", &env).unwrap();
        assert_eq!((a.hosts[0].host.clone(), a.database.as_str()), (tcp("env", 7), "eve"));
        let a = of("host=a,b port=1,2 user=u connect_timeout=3", &[]).unwrap();
        assert_eq!(places(&a), [(tcp("a", 1), None), (tcp("b", 2), None)]);
        assert_eq!((a.database.as_str(), a.timeout_s), ("u", Some(3)));
        let a = of("host=/run/x port=5433", &[]).unwrap();
        assert_eq!(a.hosts[0].host, Host::Unix("/run/x/.s.PGSQL.5433".into()));
        assert_eq!(a.user, "me");
        let a = of("host=name hostaddr=10.0.0.1", &[]).unwrap();
        assert_eq!(a.hosts[0].host, tcp("10.0.0.1", 5432));
        assert_eq!(a.hosts[0].name, "name");
        let a = of("host=a", &[("PGSSLMODE", "require")]).unwrap();
        assert_eq!(a.security.mode, SslMode::Require);
        let old = [("PGREQUIRESSL", "1")];
        assert_eq!(of("host=a", &old).unwrap().security.mode, SslMode::Require);
        assert_eq!(of("host=a sslmode=allow", &old).unwrap().security.mode, SslMode::Allow);
        assert_eq!(of("host=a", &[("PGREQUIRESSL", "0")]).unwrap().security.mode, SslMode::Prefer);
        assert!(!format!("{:?}", of("postgres://a", &env)).contains("geheim"));
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (text, says) in [
            ("postgres://a/?sslmode=on", "write disable"),
            ("host=a nonsense=1", "\"nonsense\""),
            ("service=x", "service files"),
            ("host=a port=0", "1 to 65535"),
            ("host=a,b port=1,2,3", "as many"),
            ("host=a connect_timeout=x", "seconds"),
        ] {
            match of(text, &[]) {
                Err(Error::Usage(why)) => assert!(why.contains(says), "{text}: {why}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
