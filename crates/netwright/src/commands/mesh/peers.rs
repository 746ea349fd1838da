//! The list of peers, and which of them is this host.

use std::{fmt, net::IpAddr, path::PathBuf};

use model::mesh::graph;
use parse::peers::{MOST_BYTES, MOST_PEERS};
use probe::given;
use traffic::Target;

use super::args::MeshArgs;
use crate::failure::Failure;

/// Where the list comes from, and what makes the graph of it.
pub struct Peers {
    list: List,
    own: Option<String>,
    targets: usize,
    seed: u64,
}

enum List {
    File(PathBuf),
    Name(String, u16),
}

/// This host's place in the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// This host, as the list calls it.
    pub source: String,
    /// All peers in the list.
    pub peers: usize,
    pub targets: Vec<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, peers, targets } = self;
        match targets.as_slice() {
            [] => write!(f, "the list has no peer but {source}"),
            all => write!(f, "{source}, one of {peers} peers, measures {}", all.join(", ")),
        }
    }
}

impl Peers {
    /// The list of the flags.
    ///
    /// # Errors
    /// `dns:` without a name (exit code 2).
    pub fn of(args: &MeshArgs) -> Result<Self, Failure> {
        let list = match args.peers.strip_prefix("dns:") {
            None => List::File(args.peers.clone().into()),
            Some(name) => match name.parse()? {
                Target::Host(host, port) => List::Name(host, port.unwrap_or(traffic::PORT)),
                Target::Unix(_) => return Err(Failure::Usage("--peers dns:NAME: a name".into())),
            },
        };
        let targets = usize::from(args.targets);
        Ok(Self { list, own: args.own.clone(), targets, seed: args.seed })
    }

    /// The list now, and this host's place.
    ///
    /// # Errors
    /// The list cannot be read (exit code 3 or 4), has a line that is no peer, has no entry of this
    /// host (4), or several (2).
    pub fn place(&self) -> Result<Place, Failure> {
        let (name, entries) = match &self.list {
            List::File(path) => {
                let shown = path.display().to_string();
                let bytes = given::read(path, MOST_BYTES as u64);
                let bytes = bytes.map_err(|e| Failure::io(path, &e))?;
                let entries = parse::peers::parse(&bytes);
                let entries = entries.map_err(|e| Failure::Usage(format!("{shown}: {e}")))?;
                (shown, entries)
            }
            List::Name(host, port) => {
                let all = traffic::addresses(host, *port, None)?;
                let mut entries: Vec<String> = all.iter().map(ToString::to_string).collect();
                entries.sort();
                entries.dedup();
                (host.clone(), entries)
            }
        };
        if entries.len() > MOST_PEERS {
            let why = format!("{name}: {} addresses; at most {MOST_PEERS}", entries.len());
            return Err(Failure::Environment(why));
        }
        let source = own(&name, &entries, self.own.as_deref())?;
        let targets = graph::targets(&entries, &source, self.targets, self.seed);
        let targets = targets.into_iter().map(str::to_owned).collect();
        Ok(Place { source, peers: entries.len(), targets })
    }
}

/// The entry of this host. No name is looked up: with a thousand entries that would be a thousand
/// questions from each host.
fn own(list: &str, entries: &[String], given: Option<&str>) -> Result<String, Failure> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut found = vec![];
    for entry in entries {
        let Target::Host(host, _) = entry.parse::<Target>().map_err(|e| wrong(list, &e))? else {
            return Err(Failure::Usage(format!("{list}: {entry}: a Unix socket is no peer")));
        };
        let is = match (given, host.parse::<IpAddr>()) {
            (Some(given), _) => entry == given || host == given,
            (None, Ok(ip)) => traffic::is_here((ip, 0).into()),
            (None, Err(_)) => host == name || host.split('.').next() == name.split('.').next(),
        };
        if is {
            found.push(entry);
        }
    }
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(Failure::Environment(match given {
            Some(given) => format!("{list}: none of {} peers is --self {given}", entries.len()),
            None => format!(
                "{list}: none of {} peers has an address of this host or its name {name}; name the \
                 entry by --self",
                entries.len()
            ),
        })),
        [first, second, ..] => Err(Failure::Usage(format!(
            "{list}: {} peers are this host, such as {first} and {second}; choose one by --self",
            found.len()
        ))),
    }
}

fn wrong(list: &str, e: &traffic::Error) -> Failure {
    Failure::Usage(format!("{list}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entries: &[&str], given: Option<&str>) -> Result<String, String> {
        let entries: Vec<String> = entries.iter().map(|e| (*e).to_owned()).collect();
        own("list", &entries, given).map_err(|e| e.to_string())
    }

    #[test]
    fn a_host_is_found_by_its_address_its_name_or_as_named() {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let elsewhere = ["192.0.2.1", "198.51.100.7:7471", "no-such-host"];
        let with = |one| of(&[&elsewhere[..], &[one]].concat(), None);
        assert_eq!(with("127.0.0.1:7000").unwrap(), "127.0.0.1:7000");
        assert_eq!(with(&format!("{name}:7000")).unwrap(), format!("{name}:7000"));
        assert_eq!(of(&elsewhere, Some("198.51.100.7")).unwrap(), "198.51.100.7:7471");
        assert!(of(&elsewhere, None).unwrap_err().contains("name the entry by --self"));
        let two = of(&["127.0.0.1", "127.0.0.2"], None).unwrap_err();
        assert!(two.contains("127.0.0.1 and 127.0.0.2; choose one by --self"), "{two}");
        assert!(of(&["a:99999"], None).unwrap_err().contains("a port is a number"));
    }
}
